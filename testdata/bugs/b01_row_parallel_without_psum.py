"""A row-parallel matmul whose partial products are never summed.

Each device holds columns of the activations and rows of the weight, so its product is one addend of the layer's output.
Origin: the first case of every study of tensor-parallel bugs (GraphGuard, TrainVerify); Megatron-LM's RowParallelLinear
without its reduce.
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
    hidden = jax.nn.gelu(x @ w1)
    output = lax.psum(hidden @ w2, "model")
    return jnp.tanh(x + output)


def wrong(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    hidden = jax.nn.gelu(x @ w1)
    output = hidden @ w2  # BUG
    return jnp.tanh(x + output)
