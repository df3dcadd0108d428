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


def add(one: Gradients, other: Gradients) -> Gradients:
    return jax.tree.map(jnp.add, one, other)


def mean(total: Gradients) -> Gradients:
    return jax.tree.map(lambda each: each / (3 * 8), total)


def reference(w: jax.Array, bias: jax.Array, x: jax.Array, y: jax.Array) -> Gradients:
    return mean(gradient(w, bias, x.reshape(24, 8), y.reshape(24, 16)))


def right(w: jax.Array, bias: jax.Array, x: jax.Array, y: jax.Array) -> Gradients:
    total = gradient(w, bias, x[0], y[0])
    for turn in range(1, 3):
        total = add(total, gradient(w, bias, x[turn], y[turn]))
    return mean(lax.psum(total, "data"))


def wrong(w: jax.Array, bias: jax.Array, x: jax.Array, y: jax.Array) -> Gradients:
    total = add(gradient(w, bias, x[0], y[0]), gradient(w, bias, x[1], y[1]))
    total = lax.psum(total, "data")
    last = gradient(w, bias, x[2], y[2])
    return mean(add(total, last))  # BUG
