"""A hand-written sparse embedding gradient adds up the rows of repeated tokens, but not those of other data shards.

Tokens are repeated within a shard and across shards; the scatter-add sums up the former only.

Origin: seen in hand-written sparse embedding gradients: the scatter-add looks like the sum that is needed.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 4, "model": 2}
IN = (P(None, "model"), P("model", None), P("data", None), P("data", None, None))
OUT = (P(None, "model"), P("model", None))
ARGUMENTS = (("f32", (12, 8)), ("f32", (8, 6)), ("i32", (8, 4), 12), ("f32", (8, 4, 6)))
CODE = "HV002"


def head(rows: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.tanh(rows) @ w


def reference(table: jax.Array, w: jax.Array, tokens: jax.Array, target: jax.Array) -> tuple[jax.Array, jax.Array]:
    tokens = jnp.clip(tokens, 0, table.shape[0] - 1)
    output, backward = jax.vjp(head, table[tokens], w)
    rows, gradient = backward(output - target)
    return jnp.zeros_like(table).at[tokens].add(rows), gradient


def right(table: jax.Array, w: jax.Array, tokens: jax.Array, target: jax.Array) -> tuple[jax.Array, jax.Array]:
    tokens = jnp.clip(tokens, 0, table.shape[0] - 1)
    output, backward = jax.vjp(head, table[tokens], w)
    rows, gradient = backward(lax.psum(output, "model") - target)
    mine = jnp.zeros_like(table).at[tokens].add(rows)
    return lax.psum(mine, "data"), lax.psum(gradient, "data")


def wrong(table: jax.Array, w: jax.Array, tokens: jax.Array, target: jax.Array) -> tuple[jax.Array, jax.Array]:
    tokens = jnp.clip(tokens, 0, table.shape[0] - 1)
    output, backward = jax.vjp(head, table[tokens], w)
    rows, gradient = backward(lax.psum(output, "model") - target)
    mine = jnp.zeros_like(table).at[tokens].add(rows)  # BUG
    return mine, lax.psum(gradient, "data")
