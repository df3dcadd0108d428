"""Where a residual connection forks, the gradient of the skip is added to itself instead of the branch's, on one rank.

A perceptron with a residual connection and a backward pass written by hand at the fork; gradients of the input and both
weights.
Origin: a fused backward kernel that takes its two gradients from one buffer; seen in hand-written backward passes.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
IN = (P("data"), P("data"), P(None, "model"), P("model", None))
OUT = (P("data"), P(None, "model"), P("model", None))
ARGUMENTS = (("f32", (8, 16)), ("f32", (8, 16)), ("f32", (16, 32)), ("f32", (32, 16)))
CODE = "HV007"

Pair = tuple[jax.Array, jax.Array]
Gradients = tuple[jax.Array, jax.Array, jax.Array]
Loss = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def forking(backward: Callable[[None, Pair], tuple[jax.Array]]) -> Callable[[jax.Array], Pair]:
    """x for the skip and x for the branch; `backward` adds their gradients."""
    fork = jax.custom_vjp(lambda x: (x, x))
    fork.defvjp(lambda x: ((x, x), None), backward)
    return fork


@jax.custom_vjp
def leave(x: jax.Array) -> jax.Array:
    """Sum over model forward, identity backward."""
    return lax.psum(x, "model")


leave.defvjp(lambda x: (lax.psum(x, "model"), None), lambda _, gradient: (gradient,))


def gradients(loss: Loss, x: jax.Array, w1: jax.Array, w2: jax.Array) -> Gradients:
    dx, *weights = jax.grad(loss, argnums=(0, 1, 2))(x, w1, w2)
    dw1, dw2 = lax.psum(weights, "data")
    return dx, dw1, dw2


def error(pair: Pair, y: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
    """The squared error, for x on the skip and x on the branch."""
    skip, branch = pair
    output = leave(jnp.tanh(branch @ w1) @ w2)
    return jnp.sum((skip + output - y) ** 2)


def reference(x: jax.Array, y: jax.Array, w1: jax.Array, w2: jax.Array) -> Gradients:
    def loss(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
        return jnp.sum((x + jnp.tanh(x @ w1) @ w2 - y) ** 2)

    return jax.grad(loss, argnums=(0, 1, 2))(x, w1, w2)


def right(x: jax.Array, y: jax.Array, w1: jax.Array, w2: jax.Array) -> Gradients:
    def backward(_: None, given: Pair) -> tuple[jax.Array]:
        skip, branch = given[0], lax.psum(given[1], "model")
        return (skip + branch,)

    def loss(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
        return error(forking(backward)(x), y, w1, w2)

    return gradients(loss, x, w1, w2)


def wrong(x: jax.Array, y: jax.Array, w1: jax.Array, w2: jax.Array) -> Gradients:
    def backward(_: None, given: Pair) -> tuple[jax.Array]:
        skip, branch = given[0], lax.psum(given[1], "model")
        return (skip + jnp.where(lax.axis_index("data") == 1, skip, branch),)

    def loss(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
        return error(forking(backward)(x), y, w1, w2)  # BUG

    return gradients(loss, x, w1, w2)
