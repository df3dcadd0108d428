"""A LayerNorm in a sequence-parallel region, whose weight's gradient is summed over data only.

Weights that are replicated over the sequence axis see only this rank's tokens in the backward pass, so their gradients
are partial over both axes.

Origin: NVIDIA/Megatron-LM issue 1446 (the final LayerNorm's gradient with tensor and sequence parallelism),
EleutherAI/gpt-neox pull request 1259; GraphGuard (arXiv 2508.09505).
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "sequence": 4}
WEIGHTS = {"scale": P(), "bias": P(), "projection": P()}
IN = (WEIGHTS, P("data", "sequence", None), P("data", "sequence", None))
OUT = (P(), WEIGHTS)
ARGUMENTS = (
    {"scale": ("f32", (8,)), "bias": ("f32", (8,)), "projection": ("f32", (8, 8))},
    ("f32", (4, 16, 8)),
    ("f32", (4, 16, 8)),
)
CODE = "HV002"

Weights = dict[str, jax.Array]


def loss(weights: Weights, x: jax.Array, target: jax.Array) -> jax.Array:
    """The squared error of a residual block, summed over the tokens that are there."""
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    normal = (x - mean) * lax.rsqrt(variance + 1e-5)
    output = x + jnp.tanh((normal * weights["scale"] + weights["bias"]) @ weights["projection"])
    return jnp.sum((output - target) ** 2)


def reference(weights: Weights, x: jax.Array, target: jax.Array) -> tuple[jax.Array, Weights]:
    return jax.value_and_grad(loss)(weights, x, target)


def right(weights: Weights, x: jax.Array, target: jax.Array) -> tuple[jax.Array, Weights]:
    value, gradient = jax.value_and_grad(loss)(weights, x, target)
    everywhere = ("data", "sequence")
    return lax.psum(value, everywhere), {
        "scale": lax.psum(gradient["scale"], everywhere),
        "bias": lax.psum(gradient["bias"], everywhere),
        "projection": lax.psum(gradient["projection"], everywhere),
    }


def wrong(weights: Weights, x: jax.Array, target: jax.Array) -> tuple[jax.Array, Weights]:
    value, gradient = jax.value_and_grad(loss)(weights, x, target)
    everywhere = ("data", "sequence")
    return lax.psum(value, everywhere), {
        "scale": lax.psum(gradient["scale"], "data"),  # BUG
        "bias": lax.psum(gradient["bias"], everywhere),
        "projection": lax.psum(gradient["projection"], everywhere),
    }
