"""A vocabulary-parallel embedding whose ranks look tokens up as if they held the next rank's rows.

Origin: seen in hand-written vocabulary parallelism; NVIDIA/Megatron-LM issue 926 asks what the offset is for.
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
    local = clipped(tokens) - (lax.axis_index("model") + 1) * table.shape[0]  # BUG
    return lax.psum(jnp.where(held(local, table), rows_of(local, table), 0.0), "model")
