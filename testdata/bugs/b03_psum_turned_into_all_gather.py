"""Partial products are gathered instead of summed, and the first of them is kept: shapes fit.

Every device goes on with the partial product of model rank 0.
Origin: seen in hand-written tensor parallelism, where one helper gathers the outputs of all split layers.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
IN = (P("data"), P(None, "model"), P("model", None))
OUT = P("data")
ARGUMENTS = (("f32", (8, 16)), ("f32", (16, 32)), ("f32", (32, 16)))
CODE = "HV002"


def reference(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    hidden = jax.nn.gelu(x @ w1)
    return jnp.tanh(x + hidden @ w2)


def right(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    partial = jax.nn.gelu(x @ w1) @ w2
    output = lax.psum(partial, "model")
    return jnp.tanh(x + output)


def wrong(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    partial = jax.nn.gelu(x @ w1) @ w2
    output = lax.all_gather(partial, "model", axis=0, tiled=True)[: partial.shape[0]]  # BUG
    return jnp.tanh(x + output)
