"""Verify a pipeline that works forward and backward in turn (1F1B): `python examples/one_forward_one_backward.py`.

Each of 2 devices has one layer. As soon as the last device has a microbatch's loss, the gradient goes back, while the
next one comes: no device keeps more than a few microbatches. Each adds up the gradients of its own layer. The second
version computes a gradient from the inputs of the microbatch that came last, and not of the one that the gradient is
of.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from shared import expect, floats, mesh

import hlo_verify

STAGES, MICROBATCHES, ROWS, WIDTH = 2, 4, 8, 16
MESH = mesh(stage=STAGES)


def layer(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w)


def reference(weights: jax.Array, x: jax.Array) -> jax.Array:
    for w in weights:
        x = layer(w, x)
    return jnp.sum(x**2)


def on_a_device(right: bool, weights: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    first, w = lax.axis_index("stage") == 0, weights[0]
    parts = x.reshape(MICROBATCHES, ROWS, WIDTH)
    total, gradient = jnp.zeros(()), jnp.zeros_like(w)
    here = back = jnp.zeros((ROWS, WIDTH))
    kept: list[jax.Array] = []
    for turn in range(MICROBATCHES + 2):
        given = jnp.where(first, parts[min(turn, MICROBATCHES - 1)], here)
        kept.append(given)
        there = layer(w, given)
        if 1 <= turn <= MICROBATCHES:  # the last device's loss of microbatch turn - 1
            total += jnp.where(first, 0.0, jnp.sum(there**2))
        # backward: the last device of what it has just done, the first one of what came two turns ago
        of = jnp.where(first, kept[max(turn - 2, 0)] if right else given, given)
        _, pull = jax.vjp(layer, w, of)
        by_w, by_x = pull(jnp.where(first, back, 2 * there))
        works = jnp.where(first, 2 <= turn <= MICROBATCHES + 1, 1 <= turn <= MICROBATCHES)
        gradient += jnp.where(works, by_w, 0.0)
        here = lax.ppermute(there, "stage", [(0, 1)])
        back = lax.ppermute(by_x, "stage", [(1, 0)])
    return lax.psum(total, "stage"), gradient[None]


def main() -> None:
    weights = floats(STAGES, WIDTH, WIDTH)
    x = floats(MICROBATCHES * ROWS, WIDTH)
    for right in (True, False):
        specs = {"in_specs": (P("stage"), P()), "out_specs": (P(), P("stage")), "check_vma": False}
        step = jax.shard_map(partial(on_a_device, right), mesh=MESH, **specs)
        report = hlo_verify.check(jax.value_and_grad(reference), step, weights, x)
        expect("PROVED" if right else "REFUTED", report)


if __name__ == "__main__":
    main()
