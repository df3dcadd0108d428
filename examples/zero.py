"""Verify the stages of ZeRO with optax, a step of AdamW each: `python examples/zero.py`.

Over 4 devices the batch is split; in stage 1 also the optimizer's state, in stage 2 gradients as well, in stage 3
weights too. Each device updates a quarter of the weights. The reference is the step of one device that has it all.

Each stage has a mistake of its own. In stage 1 a device updates its quarter by the gradient of its own batch, in stage
2 gradients are summed where their mean is meant, which Adam nearly hides, and in stage 3 they are summed once more,
where differentiating through the gathered weights has done it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import PartitionSpec as P
from shared import expect, floats, mesh

import hlo_verify

DEVICES = 4
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


def stage_1(right: bool, weights: Any, memory: Any, x: jax.Array, y: jax.Array) -> Any:
    """Every device has all gradients, and the optimizer's state of its quarter."""
    gradients = jax.grad(loss)(weights, x, y)
    gradients = jax.tree.map(own, lax.pmean(gradients, "data") if right else gradients)
    parts, memory = updated(jax.tree.map(own, weights), memory, gradients)
    return jax.tree.map(gathered, parts), memory


def stage_2(right: bool, weights: Any, memory: Any, x: jax.Array, y: jax.Array) -> Any:
    """Gradients, too, are those of a quarter alone."""
    scattered = partial(lax.psum_scatter, axis_name="data", tiled=True)
    gradients = jax.tree.map(lambda g: scattered(g) / (DEVICES if right else 1), jax.grad(loss)(weights, x, y))
    parts, memory = updated(jax.tree.map(own, weights), memory, gradients)
    return jax.tree.map(gathered, parts), memory


def stage_3(right: bool, weights: Any, memory: Any, x: jax.Array, y: jax.Array) -> Any:
    """A device has a quarter of everything, and gathers weights where it needs them."""
    gradients = jax.grad(lambda parts: loss(jax.tree.map(gathered, parts), x, y) / DEVICES)(weights)
    return updated(weights, memory, gradients if right else lax.psum(gradients, "data"))


def main() -> None:
    weights = {"up": floats(16, 32), "down": floats(32, 16)}
    memory = jax.eval_shape(OPTIMIZER.init, weights)
    split = jax.tree.map(lambda leaf: P("data") if leaf.ndim else P(), memory)
    for stage in (stage_1, stage_2, stage_3):
        held = P("data") if stage is stage_3 else P()
        specs = {"in_specs": (held, split, P("data"), P("data")), "out_specs": (held, split), "check_vma": False}
        for right in (True, False):
            step = jax.shard_map(partial(stage, right), mesh=mesh(data=DEVICES), **specs)
            report = hlo_verify.check(reference, step, weights, memory, floats(16, 16), floats(16, 16))
            expect("PROVED" if right else "REFUTED", report, f"{stage.__name__}{'' if right else ', wrong'}")


if __name__ == "__main__":
    main()
