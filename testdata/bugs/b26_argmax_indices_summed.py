"""Greedy decoding over a split vocabulary adds the ranks' best indices instead of taking the best rank's.

Origin: seen in hand-written vocabulary-parallel sampling: psum is the collective at hand, and tests with one rank pass.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
IN = (P("data", None), P(None, "model"))
OUT = P("data")
ARGUMENTS = (("f32", (8, 8)), ("f32", (8, 32)))
CODE = "HV004"


def best(hidden: jax.Array, unembedding: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The best token of this rank's part of the vocabulary, numbered in the whole, and its logit."""
    logits = hidden @ unembedding
    first = lax.axis_index("model") * unembedding.shape[1]
    return first + jnp.argmax(logits, axis=-1), jnp.max(logits, axis=-1)


def reference(hidden: jax.Array, unembedding: jax.Array) -> jax.Array:
    return jnp.argmax(hidden @ unembedding, axis=-1)


def right(hidden: jax.Array, unembedding: jax.Array) -> jax.Array:
    token, logit = best(hidden, unembedding)
    winner = logit == lax.pmax(logit, "model")
    vocabulary = lax.axis_size("model") * unembedding.shape[1]
    return lax.pmin(jnp.where(winner, token, vocabulary), "model")


def wrong(hidden: jax.Array, unembedding: jax.Array) -> jax.Array:
    token, _ = best(hidden, unembedding)
    return lax.psum(token, "model")  # BUG
