"""Ring attention whose keys go round the ring one way and whose values go the other way.

After the first step the weights of one rank's keys are applied to the values of another.

Origin: seen in hand-written ring attention with separate sends for keys and values.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"heads": 2, "ring": 4}
SPEC = P("ring", "heads", None)
IN = (SPEC, SPEC, SPEC)
OUT = SPEC
ARGUMENTS = (("f32", (16, 2, 8)), ("f32", (16, 2, 8)), ("f32", (16, 2, 8)))
CODE = "HV003"

RING = MESH["ring"]
NEXT = [(i, (i + 1) % RING) for i in range(RING)]
PREVIOUS = [(j, i) for i, j in NEXT]

Carried = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]


def scores(q: jax.Array, k: jax.Array) -> jax.Array:
    return jnp.einsum("qhd,khd->hqk", q, k) / jnp.sqrt(q.shape[-1])


def reference(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores(q, k), axis=-1), v)


def start(q: jax.Array, k: jax.Array, v: jax.Array) -> Carried:
    """No key seen: the greatest score, the sum of weights, the weighted sum of values; the first keys and values."""
    length, heads, width = q.shape
    total, output = jnp.zeros((heads, length)), jnp.zeros((heads, length, width))
    return jnp.full_like(total, -jnp.inf), total, output, k, v


def attended(q: jax.Array, carried: Carried) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Online softmax: what the keys that are here add, after a rescale to the new greatest score."""
    largest, total, output, k, v = carried
    s = scores(q, k)
    larger = jnp.maximum(largest, jnp.max(s, axis=-1))
    weights, rescale = jnp.exp(s - larger[..., None]), jnp.exp(largest - larger)
    total = total * rescale + jnp.sum(weights, axis=-1)
    output = output * rescale[..., None] + jnp.einsum("hqk,khd->hqd", weights, v)
    return larger, total, output


def right(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    def turn(_: Any, carried: Carried) -> Carried:
        next_k = lax.ppermute(carried[3], "ring", NEXT)
        next_v = lax.ppermute(carried[4], "ring", NEXT)
        return *attended(q, carried), next_k, next_v

    _, total, output, _, _ = lax.fori_loop(0, RING, turn, start(q, k, v))
    return jnp.einsum("hqd->qhd", output / total[..., None])


def wrong(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    def turn(_: Any, carried: Carried) -> Carried:
        next_k = lax.ppermute(carried[3], "ring", PREVIOUS)  # BUG
        next_v = lax.ppermute(carried[4], "ring", NEXT)
        return *attended(q, carried), next_k, next_v

    _, total, output, _, _ = lax.fori_loop(0, RING, turn, start(q, k, v))
    return jnp.einsum("hqd->qhd", output / total[..., None])
