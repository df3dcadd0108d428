"""A vocabulary-parallel embedding in which ranks do not blank the rows of tokens that are not theirs.

Indices are clipped to the rank's rows, so a foreign token adds its first or last row to the sum.

Origin: seen in hand-written vocabulary parallelism; Megatron-LM's `VocabParallelEmbedding` masks what it looks up for
this reason.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
IN = (P("data", None), P("model", None))
OUT = P("data", None, None)
ARGUMENTS = (("i32", (4, 8), 32), ("f32", (32, 8)))
CODE = "HV005"

VOCABULARY = 32


def clipped(tokens: jax.Array) -> jax.Array:
    return jnp.clip(tokens, 0, VOCABULARY - 1)


def rows_of(local: jax.Array, table: jax.Array) -> jax.Array:
    """The row of each token that this rank holds; of others its first or last row."""
    return table[jnp.clip(local, 0, table.shape[0] - 1)]


def held(local: jax.Array, table: jax.Array) -> jax.Array:
    """Which tokens' rows this rank holds."""
    return ((local >= 0) & (local < table.shape[0]))[..., None]


def reference(tokens: jax.Array, table: jax.Array) -> jax.Array:
    return table[clipped(tokens)]


def right(tokens: jax.Array, table: jax.Array) -> jax.Array:
    local = clipped(tokens) - lax.axis_index("model") * table.shape[0]
    return lax.psum(jnp.where(held(local, table), rows_of(local, table), 0.0), "model")


def wrong(tokens: jax.Array, table: jax.Array) -> jax.Array:
    local = clipped(tokens) - lax.axis_index("model") * table.shape[0]
    return lax.psum(rows_of(local, table), "model")  # BUG
