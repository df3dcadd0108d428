"""Verify a pipeline of stages, GPipe's way, loss and gradients: `python examples/gpipe.py`.

Each of 4 devices has one layer. Microbatches go from device to device; in each turn all devices work, on another one
each, and what they do in the first and last turns on nothing is dropped. The second version begins to keep results a
turn too early, so that the last microbatch is missing and a wrong one is in front.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from shared import expect, floats, mesh

import hlo_verify

STAGES, MICROBATCHES, ROWS, WIDTH = 4, 4, 8, 16
MESH = mesh(stage=STAGES)
ON = [(n, n + 1) for n in range(STAGES - 1)]


def layer(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w)


def reference(weights: jax.Array, x: jax.Array) -> jax.Array:
    for w in weights:
        x = layer(w, x)
    return jnp.mean(x**2)


def on_a_device(late: int, weights: jax.Array, x: jax.Array) -> jax.Array:
    stage, w = lax.axis_index("stage"), weights[0]
    parts = x.reshape(MICROBATCHES, ROWS, WIDTH)
    here, total = jnp.zeros((ROWS, WIDTH)), jnp.zeros(())
    for turn in range(MICROBATCHES + STAGES - 1):
        given = parts[min(turn, MICROBATCHES - 1)]
        there = layer(w, jnp.where(stage == 0, given, here))
        if late <= turn < late + MICROBATCHES:
            total += jnp.where(stage == STAGES - 1, jnp.mean(there**2), 0.0)
        here = lax.ppermute(there, "stage", ON)
    return lax.psum(total, "stage") / MICROBATCHES


def main() -> None:
    weights = floats(STAGES, WIDTH, WIDTH)
    x = floats(MICROBATCHES * ROWS, WIDTH)
    for late in (STAGES - 1, STAGES - 2):
        specs = {"in_specs": (P("stage"), P()), "out_specs": P(), "check_vma": False}
        loss = jax.shard_map(partial(on_a_device, late), mesh=MESH, **specs)
        report = hlo_verify.check(jax.value_and_grad(reference), jax.value_and_grad(loss), weights, x)
        expect("PROVED" if late == STAGES - 1 else "REFUTED", report)


if __name__ == "__main__":
    main()
