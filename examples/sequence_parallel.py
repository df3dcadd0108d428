"""Verify a layer with Megatron's sequence parallelism, loss and gradients: `python examples/sequence_parallel.py`.

Between layers each of 4 devices has a quarter of the tokens, normalizes these, and gathers all for the matrices, which
are split; a reduce-scatter brings each device its tokens back. The second version forgets that each device has seen a
quarter of the tokens when the gradient of the norm's scale is to be that of all.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from shared import expect, floats, mesh

import hlo_verify

MESH = mesh(model=4)
SPECS = {"scale": P(), "up": P(None, "model"), "down": P("model")}


def norm(scale: jax.Array, x: jax.Array) -> jax.Array:
    return x * lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale


def reference(weights: Any, x: jax.Array) -> jax.Array:
    y = x + jax.nn.silu(norm(weights["scale"], x) @ weights["up"]) @ weights["down"]
    return jnp.sum(y**2)


def local(weights: Any, x: jax.Array) -> jax.Array:
    """A device's part of the loss."""
    tokens = lax.all_gather(norm(weights["scale"], x), "model", tiled=True)
    part = jax.nn.silu(tokens @ weights["up"]) @ weights["down"]
    y = x + lax.psum_scatter(part, "model", tiled=True)
    return jnp.sum(y**2)


def on_a_device(summed: bool, weights: Any, x: jax.Array) -> Any:
    value, gradients = jax.value_and_grad(local)(weights, x)
    if summed:
        gradients["scale"] = lax.psum(gradients["scale"], "model")
    return lax.psum(value, "model"), gradients


def main() -> None:
    shapes = {"scale": (64,), "up": (64, 256), "down": (256, 64)}
    weights = {name: floats(*shape) for name, shape in shapes.items()}
    x = floats(32, 64)
    for summed in (True, False):
        specs = {"in_specs": (SPECS, P("model")), "out_specs": (P(), SPECS), "check_vma": False}
        step = jax.shard_map(partial(on_a_device, summed), mesh=MESH, **specs)
        report = hlo_verify.check(jax.value_and_grad(reference), step, weights, x)
        expect("PROVED" if summed else "REFUTED", report)


if __name__ == "__main__":
    main()
