"""The square of a squared-ReLU perceptron is the identity on one tensor-parallel rank.

Origin: a fused activation with a fallback on some devices (other kernels on one node of a mixed cluster), where the
fallback is plain ReLU; squared ReLU is the activation of Primer and of Nemotron.
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
    hidden = jax.nn.relu(x @ w1)
    return x + jnp.square(hidden) @ w2


def right(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    hidden = jax.nn.relu(x @ w1)
    activated = jnp.square(hidden)
    return x + lax.psum(activated @ w2, "model")


def wrong(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    hidden = jax.nn.relu(x @ w1)
    activated = jnp.where(lax.axis_index("model") == 2, hidden, jnp.square(hidden))  # BUG
    return x + lax.psum(activated @ w2, "model")
