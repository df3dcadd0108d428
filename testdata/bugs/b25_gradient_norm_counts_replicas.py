"""The norm for gradient clipping sums the squares over tensor parallelism, replicated parameters included.

A matrix that is split adds the squares of its parts; a bias that every rank holds must count once.

Origin: NVIDIA-NeMo/RL pull request 3788 (gradients that tensor parallelism replicates were counted `tp_size` times),
ROCm/TransformerEngine pull request 715.
"""

from collections.abc import Iterable

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
GRADIENTS = {"up": P(None, "model"), "down": P("model", None), "bias": P(), "scale": P()}
IN = (GRADIENTS,)
OUT = GRADIENTS
ARGUMENTS = ({"up": ("f32", (8, 32)), "down": ("f32", (32, 8)), "bias": ("f32", (8,)), "scale": ("f32", (8,))},)
CODE = "HV004"

LARGEST = 1.0

Gradients = dict[str, jax.Array]


def squares(gradients: Iterable[jax.Array]) -> jax.Array:
    return sum(jnp.sum(g**2) for g in gradients)


def clipped(gradients: Gradients, total: jax.Array) -> Gradients:
    """Scaled so that their norm, whose square is `total`, is at most `LARGEST`."""
    factor = jnp.minimum(1.0, LARGEST / jnp.sqrt(total))
    return jax.tree.map(lambda g: g * factor, gradients)


def reference(gradients: Gradients) -> Gradients:
    return clipped(gradients, squares(gradients.values()))


def right(gradients: Gradients) -> Gradients:
    split = squares([gradients["up"], gradients["down"]])
    replicated = squares([gradients["bias"], gradients["scale"]])
    return clipped(gradients, lax.psum(split, "model") + replicated)


def wrong(gradients: Gradients) -> Gradients:
    split = squares([gradients["up"], gradients["down"]])
    replicated = squares([gradients["bias"], gradients["scale"]])
    return clipped(gradients, lax.psum(split + replicated, "model"))  # BUG
