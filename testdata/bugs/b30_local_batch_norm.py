"""Batch normalization over this rank's images where the statistics of the whole batch are meant; gradients too.

Origin: every data-parallel framework's default (hence PyTorch's SyncBatchNorm and Flax's `BatchNorm(axis_name=...)`),
and a bug wherever the model was tuned with the statistics of the whole batch.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 8}
WEIGHTS = {"w": P(), "scale": P(), "bias": P()}
IN = (WEIGHTS, P("data"), P("data"))
OUT = (P(), WEIGHTS)
ARGUMENTS = (
    {"w": ("f32", (6, 6)), "scale": ("f32", (6,)), "bias": ("f32", (6,))},
    ("f32", (16, 4, 4, 6)),
    ("f32", (16, 4, 4, 6)),
)
CODE = "HV002"

Weights = dict[str, jax.Array]


def normalize(weights: Weights, x: jax.Array, mean: jax.Array, variance: jax.Array) -> jax.Array:
    return jax.nn.relu((x - mean) * lax.rsqrt(variance + 1e-3) * weights["scale"] + weights["bias"])


def reference(weights: Weights, images: jax.Array, target: jax.Array) -> tuple[jax.Array, Weights]:
    def loss(weights: Weights) -> jax.Array:
        x = images @ weights["w"]
        mean = jnp.mean(x, axis=(0, 1, 2))
        variance = jnp.mean((x - mean) ** 2, axis=(0, 1, 2))
        return jnp.sum((normalize(weights, x, mean, variance) - target) ** 2)

    return jax.value_and_grad(loss)(weights)


def right(weights: Weights, images: jax.Array, target: jax.Array) -> tuple[jax.Array, Weights]:
    def loss(weights: Weights) -> jax.Array:
        x = images @ weights["w"]
        mean = lax.pmean(jnp.mean(x, axis=(0, 1, 2)), "data")
        variance = lax.pmean(jnp.mean((x - mean) ** 2, axis=(0, 1, 2)), "data")
        return jnp.sum((normalize(weights, x, mean, variance) - target) ** 2)

    return lax.psum(jax.value_and_grad(loss)(weights), "data")


def wrong(weights: Weights, images: jax.Array, target: jax.Array) -> tuple[jax.Array, Weights]:
    def loss(weights: Weights) -> jax.Array:
        x = images @ weights["w"]
        mean = jnp.mean(x, axis=(0, 1, 2))  # BUG
        variance = jnp.mean((x - mean) ** 2, axis=(0, 1, 2))
        return jnp.sum((normalize(weights, x, mean, variance) - target) ** 2)

    return lax.psum(jax.value_and_grad(loss)(weights), "data")
