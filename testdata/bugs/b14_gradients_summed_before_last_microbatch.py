"""Gradients are summed over data before the last microbatch is accumulated, which stays with each device.

Data parallelism with accumulated gradients: the loss is the mean over all microbatches of all devices.
Origin: https://github.com/InfiniTensor/InfiniTrain/pull/213 and https://github.com/huggingface/picotron/pull/5 (the
reduction of gradients is launched by a microbatch that is not the last).
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 4}
IN = (P(), P(), P(None, "data"), P(None, "data"))
OUT = (P(), P())
ARGUMENTS = (("f32", (8, 16)), ("f32", (16,)), ("f32", (3, 8, 8)), ("f32", (3, 8, 16)))
CODE = "HV002"

Gradients = tuple[jax.Array, jax.Array]


def gradient(w: jax.Array, bias: jax.Array, x: jax.Array, y: jax.Array) -> Gradients:
    """Of the squared error, summed over the rows of x."""
    return jax.grad(lambda w, bias: jnp.sum((jnp.tanh(x @ w + bias) - y) ** 2), argnums=(0, 1))(w, bias)


def accumulated(w: jax.Array, bias: jax.Array, x: jax.Array, y: jax.Array) -> Gradients:
    """The gradients of all microbatches x[m], y[m] of this device, one after the other."""

    def step(total: Gradients, microbatch: tuple[jax.Array, jax.Array]) -> tuple[Gradients, None]:
        return jax.tree.map(jnp.add, total, gradient(w, bias, *microbatch)), None

    start = jax.tree.map(jnp.zeros_like, (w, bias))
    return lax.scan(step, start, (x, y))[0]


def mean(total: Gradients) -> Gradients:
    return jax.tree.map(lambda each: each / (3 * 8), total)


def reference(w: jax.Array, bias: jax.Array, x: jax.Array, y: jax.Array) -> Gradients:
    return mean(gradient(w, bias, x.reshape(24, 8), y.reshape(24, 16)))


def right(w: jax.Array, bias: jax.Array, x: jax.Array, y: jax.Array) -> Gradients:
    total = accumulated(w, bias, x, y)
    return mean(lax.psum(total, "data"))


def wrong(w: jax.Array, bias: jax.Array, x: jax.Array, y: jax.Array) -> Gradients:
    total = lax.psum(accumulated(w, bias, x[:-1], y[:-1]), "data")
    last = gradient(w, bias, x[-1], y[-1])  # BUG
    return mean(jax.tree.map(jnp.add, total, last))
