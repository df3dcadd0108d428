"""The operator before a column-parallel matmul is the identity forward and should sum gradients backward, and does not.

A two-layer perceptron split over its hidden dimension, with the gradients of its input and both weights. The input's
gradient is a partial sum on each device.
Origin: the operator f of Megatron-LM (copy_to_tensor_model_parallel_region), which returned the gradient unreduced in
https://github.com/NovaSky-AI/SkyRL/pull/1886; the same confusion in https://github.com/jax-ml/jax/issues/3970.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
IN = (P("data"), P("data"), P(None, "model"), P("model", None))
OUT = (P("data"), P(None, "model"), P("model", None))
ARGUMENTS = (("f32", (8, 16)), ("f32", (8, 16)), ("f32", (16, 32)), ("f32", (32, 16)))
CODE = "HV002"

Gradients = tuple[jax.Array, jax.Array, jax.Array]


@jax.custom_vjp
def enter(x: jax.Array) -> jax.Array:
    """Identity forward, sum over model backward."""
    return x


enter.defvjp(lambda x: (x, None), lambda _, gradient: (lax.psum(gradient, "model"),))


@jax.custom_vjp
def enter_unreduced(x: jax.Array) -> jax.Array:
    """Identity both ways."""
    return x


enter_unreduced.defvjp(lambda x: (x, None), lambda _, gradient: (gradient,))


@jax.custom_vjp
def leave(x: jax.Array) -> jax.Array:
    """Sum over model forward, identity backward."""
    return lax.psum(x, "model")


leave.defvjp(lambda x: (lax.psum(x, "model"), None), lambda _, gradient: (gradient,))


def sum_over_data(gradients: Gradients) -> Gradients:
    x, *weights = gradients
    w1, w2 = lax.psum(weights, "data")
    return x, w1, w2


def reference(x: jax.Array, y: jax.Array, w1: jax.Array, w2: jax.Array) -> Gradients:
    def loss(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
        output = jnp.tanh(x @ w1) @ w2
        return jnp.sum((x + output - y) ** 2)

    return jax.grad(loss, argnums=(0, 1, 2))(x, w1, w2)


def right(x: jax.Array, y: jax.Array, w1: jax.Array, w2: jax.Array) -> Gradients:
    def loss(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
        hidden = jnp.tanh(enter(x) @ w1)
        output = leave(hidden @ w2)
        return jnp.sum((x + output - y) ** 2)

    return sum_over_data(jax.grad(loss, argnums=(0, 1, 2))(x, w1, w2))


def wrong(x: jax.Array, y: jax.Array, w1: jax.Array, w2: jax.Array) -> Gradients:
    def loss(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
        hidden = jnp.tanh(enter_unreduced(x) @ w1)  # BUG
        output = leave(hidden @ w2)
        return jnp.sum((x + output - y) ** 2)

    return sum_over_data(jax.grad(loss, argnums=(0, 1, 2))(x, w1, w2))
