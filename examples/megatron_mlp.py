"""Verify Megatron's MLP, loss and gradients: `python examples/megatron_mlp.py`.

The first matrix is split by columns and the second by rows, over 4 devices, so that one sum over the devices is all
that the layer communicates. The second version adds the bias on each device before that sum: it counts four times.
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
SPECS = {"up": P(None, "model"), "gate": P("model"), "down": P("model"), "bias": P()}


def reference(weights: Any, x: jax.Array) -> jax.Array:
    hidden = jax.nn.gelu(x @ weights["up"] + weights["gate"])
    return x + hidden @ weights["down"] + weights["bias"]


def on_a_device(once: bool, weights: Any, x: jax.Array) -> jax.Array:
    part = jax.nn.gelu(x @ weights["up"] + weights["gate"]) @ weights["down"]
    if once:
        return x + lax.psum(part, "model") + weights["bias"]
    return x + lax.psum(part + weights["bias"], "model")


def step(layer: Any, weights: Any, x: jax.Array) -> Any:
    """The loss, and its gradients by the weights and by what the layer is given."""
    return jax.value_and_grad(lambda weights, x: jnp.mean(layer(weights, x) ** 2), argnums=(0, 1))(weights, x)


def main() -> None:
    shapes = {"up": (64, 256), "gate": (256,), "down": (256, 64), "bias": (64,)}
    weights = {name: floats(*shape) for name, shape in shapes.items()}
    x = floats(32, 64)
    for once in (True, False):
        layer = jax.shard_map(partial(on_a_device, once), mesh=MESH, in_specs=(SPECS, P()), out_specs=P())
        report = hlo_verify.check(partial(step, reference), partial(step, layer), weights, x)
        expect("PROVED" if once else "REFUTED", report)


if __name__ == "__main__":
    main()
