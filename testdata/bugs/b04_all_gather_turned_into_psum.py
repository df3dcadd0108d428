"""Columns of a column-parallel matmul are summed instead of gathered, and the sum is repeated: shapes fit.

Origin: seen in hand-written tensor parallelism (gather_output of Megatron-LM's ColumnParallelLinear done with the other
collective); the counterpart of gathering what should be summed.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
IN = (P("data"), P(None, "model"), P("model"), P())
OUT = P("data")
ARGUMENTS = (("f32", (8, 16)), ("f32", (16, 32)), ("f32", (32,)), ("f32", (32, 8)))
CODE = "HV004"


def reference(x: jax.Array, w: jax.Array, bias: jax.Array, head: jax.Array) -> jax.Array:
    hidden = jnp.tanh(x @ w + bias)
    return jax.nn.softmax(hidden @ head)


def right(x: jax.Array, w: jax.Array, bias: jax.Array, head: jax.Array) -> jax.Array:
    columns = jnp.tanh(x @ w + bias)
    hidden = lax.all_gather(columns, "model", axis=1, tiled=True)
    return jax.nn.softmax(hidden @ head)


def wrong(x: jax.Array, w: jax.Array, bias: jax.Array, head: jax.Array) -> jax.Array:
    columns = jnp.tanh(x @ w + bias)
    hidden = jnp.tile(lax.psum(columns, "model"), (1, 4))  # BUG
    return jax.nn.softmax(hidden @ head)
