"""Verify the stages of ZeRO with optax, a step of AdamW each: `python examples/zero.py`.

Over 4 devices the batch is split; in stage 1 also the optimizer's state, in stage 2 gradients as well, in stage 3
weights too. Each device updates a quarter of the weights. The reference is the step of one device that has it all. The
wrong version, of stage 2, sums gradients where their mean is meant, which Adam nearly hides.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify

DEVICES = 4
MESH = AbstractMesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))
OPTIMIZER = optax.adamw(1e-2)


def loss(weights: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((jax.nn.gelu(x @ weights["up"]) @ weights["down"] - y) ** 2)


def updated(weights: Any, memory: Any, gradients: Any) -> Any:
    updates, memory = OPTIMIZER.update(gradients, memory, weights)
    return optax.apply_updates(weights, updates), memory


def reference(weights: Any, memory: Any, x: jax.Array, y: jax.Array) -> Any:
    return updated(weights, memory, jax.grad(loss)(weights, x, y))


def own(whole: jax.Array) -> jax.Array:
    """The device's quarter of the rows."""
    rows = whole.shape[0] // DEVICES
    return lax.dynamic_slice_in_dim(whole, lax.axis_index("data") * rows, rows)


def gathered(part: jax.Array) -> jax.Array:
    return lax.all_gather(part, "data", tiled=True)


def on_a_device(stage: int, mean: bool, weights: Any, memory: Any, x: jax.Array, y: jax.Array) -> Any:
    whole = jax.tree.map(gathered, weights) if stage == 3 else weights
    gradients = jax.grad(loss)(whole, x, y)
    if stage == 1:
        gradients = jax.tree.map(lambda g: own(lax.psum(g, "data")), gradients)
    else:
        gradients = jax.tree.map(lambda g: lax.psum_scatter(g, "data", tiled=True), gradients)
    gradients = jax.tree.map(lambda g: g / DEVICES, gradients) if mean else gradients
    parts, memory = updated(weights if stage == 3 else jax.tree.map(own, weights), memory, gradients)
    return (parts if stage == 3 else jax.tree.map(gathered, parts)), memory


def main() -> int:
    shapes = {"up": (16, 32), "down": (32, 16)}
    weights = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}
    memory = jax.eval_shape(OPTIMIZER.init, weights)
    x = jax.ShapeDtypeStruct((16, 16), jnp.float32)
    split = jax.tree.map(lambda leaf: P("data") if leaf.ndim else P(), memory)
    verdicts = []
    for stage, mean in ((1, True), (2, True), (3, True), (2, False)):
        held = P("data") if stage == 3 else P()
        specs = {"in_specs": (held, split, P("data"), P("data")), "out_specs": (held, split), "check_vma": False}
        step = jax.shard_map(partial(on_a_device, stage, mean), mesh=MESH, **specs)
        report = hlo_verify.check(reference, step, weights, memory, x, x)
        verdicts.append(str(report.verdict))
        print(f"Stage {stage}:\n{report}")
    return 0 if verdicts == ["PROVED"] * 3 + ["REFUTED"] else 1


if __name__ == "__main__":
    sys.exit(main())
