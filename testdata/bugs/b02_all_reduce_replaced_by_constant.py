"""The all_reduce of a row-parallel matmul is replaced by a constant, so that the layer adds nothing to the residual.

Origin: a communicator that does nothing, written to profile or to debug on one device, left in for all; the loss of a
residual network still falls, as the other layers learn.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
IN = (P("data"), P(None, "model"), P("model", None))
OUT = P("data")
ARGUMENTS = (("f32", (8, 16)), ("f32", (16, 32)), ("f32", (32, 16)))
CODE = "HV007"


def reference(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    hidden = jax.nn.silu(x @ w1)
    return jnp.tanh(x + hidden @ w2)


def right(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    partial = jax.nn.silu(x @ w1) @ w2
    output = lax.psum(partial, "model")
    return jnp.tanh(x + output)


def wrong(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    partial = jax.nn.silu(x @ w1) @ w2
    output = jnp.zeros_like(partial)  # BUG
    return jnp.tanh(x + output)
