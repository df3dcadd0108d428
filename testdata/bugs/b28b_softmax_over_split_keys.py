"""Attention over keys that are split normalizes the weights of each rank's keys by themselves, and averages.

Every rank's weights add up to one, so the mean of the ranks' outputs looks like attention; it is that of no softmax.

Origin: seen in hand-written context parallelism and split-KV decoding, which must combine the ranks' maxima and sums
(FlashDecoding's second step).
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"heads": 2, "context": 4}
IN = (P(None, "heads", None), P("context", "heads", None), P("context", "heads", None))
OUT = P(None, "heads", None)
ARGUMENTS = (("f32", (4, 4, 8)), ("f32", (16, 4, 8)), ("f32", (16, 4, 8)))
CODE = "HV002"


def scores(q: jax.Array, k: jax.Array) -> jax.Array:
    return jnp.einsum("qhd,khd->hqk", q, k) / jnp.sqrt(q.shape[-1])


def reference(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores(q, k), axis=-1), v)


def right(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    s = scores(q, k)
    largest = lax.pmax(jnp.max(s, axis=-1, keepdims=True), "context")
    weights = jnp.exp(s - largest)
    total = lax.psum(jnp.sum(weights, axis=-1, keepdims=True), "context")
    return lax.psum(jnp.einsum("hqk,khd->qhd", weights / total, v), "context")


def wrong(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    weights = jax.nn.softmax(scores(q, k), axis=-1)  # BUG
    return lax.pmean(jnp.einsum("hqk,khd->qhd", weights, v), "context")
