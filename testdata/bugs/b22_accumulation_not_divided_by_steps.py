"""Gradients are accumulated over microbatches, and the sum is used as if it were the mean.

Every microbatch's loss is a mean over its rows, so the gradient of the whole batch's mean is the mean of theirs.

Origin: gradient accumulation that divides by the wrong number, as in Hugging Face Transformers until 2024
(huggingface.co/blog/gradient_accumulation); GraphGuard (arXiv 2508.09505).
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 4}
IN = (P(), P(), P("data"), P("data"))
OUT = (P(), P())
ARGUMENTS = (("f32", (8, 16)), ("f32", (16, 4)), ("f32", (32, 8)), ("f32", (32, 4)))
CODE = "HV006"

STEPS = 4

Weights = tuple[jax.Array, jax.Array]


def loss(weights: Weights, x: jax.Array, y: jax.Array) -> jax.Array:
    hidden, out = weights
    return jnp.mean((jax.nn.silu(x @ hidden) @ out - y) ** 2)


def accumulated(weights: Weights, x: jax.Array, y: jax.Array) -> Weights:
    """The sum of the gradients of `STEPS` microbatches."""

    def step(total: Weights, batch: tuple[jax.Array, jax.Array]) -> tuple[Weights, None]:
        gradient = jax.grad(loss)(weights, *batch)
        return jax.tree.map(jnp.add, total, gradient), None

    batches = (x.reshape(STEPS, -1, x.shape[-1]), y.reshape(STEPS, -1, y.shape[-1]))
    return lax.scan(step, jax.tree.map(jnp.zeros_like, weights), batches)[0]


def reference(hidden: jax.Array, out: jax.Array, x: jax.Array, y: jax.Array) -> Weights:
    return jax.grad(loss)((hidden, out), x, y)


def right(hidden: jax.Array, out: jax.Array, x: jax.Array, y: jax.Array) -> Weights:
    total = accumulated((hidden, out), x, y)
    mean = jax.tree.map(lambda g: g / STEPS, total)
    return lax.pmean(mean, "data")


def wrong(hidden: jax.Array, out: jax.Array, x: jax.Array, y: jax.Array) -> Weights:
    total = accumulated((hidden, out), x, y)
    return lax.pmean(total, "data")  # BUG
