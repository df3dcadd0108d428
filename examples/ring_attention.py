"""Verify ring attention against plain attention, and its gradients: `python examples/ring_attention.py`.

The sequence is split over devices. Keys and values go around a ring while each device keeps a running maximum, sum and
weighted sum of its queries, as online softmax does. One wrong version rescales the weighted sum by the new maximum and
forgets the sum of weights: for scores that are alike nobody sees it. The other one is right but for its gradients: it
holds back those that flow through the weights.

The layer is compared on 4 devices, and its gradients on 2, where that takes seconds: with 4 devices it is several times
as much, and with 8 they are not proved (docs/limits.md).
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


def reference(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jax.nn.softmax(q @ k.T, axis=-1) @ v


def ring(devices: int, mistake: str, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    to_the_next = [(n, (n + 1) % devices) for n in range(devices)]

    def turn(carried: Any, _: None) -> Any:
        k, v, most, weight, found = carried
        scores = q @ k.T
        new = lax.stop_gradient(jnp.maximum(most, scores.max(axis=-1)))  # any number would do
        factor, weights = jnp.exp(most - new), jnp.exp(scores - new[:, None])
        if mistake == "held back":
            weights = lax.stop_gradient(weights)
        weight = (weight if mistake == "not rescaled" else weight * factor) + weights.sum(axis=-1)
        found = found * factor[:, None] + weights @ v
        k, v = (lax.ppermute(each, "ring", to_the_next) for each in (k, v))
        return (k, v, new, weight, found), None

    empty = jnp.full(q.shape[0], -jnp.inf), jnp.zeros(q.shape[0]), jnp.zeros_like(q)
    (_, _, _, weight, found), _ = lax.scan(turn, (k, v, *empty), length=devices)
    return found / weight[:, None]


def on_devices(devices: int, mistake: str = "") -> Any:
    split = {"in_specs": P("ring"), "out_specs": P("ring"), "check_vma": False}
    return jax.shard_map(partial(ring, devices, mistake), mesh=mesh(ring=devices), **split)


def gradients(layer: Any) -> Any:
    return jax.value_and_grad(lambda q, k, v: jnp.mean(layer(q, k, v) ** 2), argnums=(0, 1, 2))


def main() -> None:
    large, small = [floats(64, 16)] * 3, [floats(16, 8)] * 3
    expect("PROVED", hlo_verify.check(reference, on_devices(4), *large), "Attention")
    expect("REFUTED", hlo_verify.check(reference, on_devices(4, "not rescaled"), *large), "Weights not rescaled")
    for mistake in ("", "held back"):
        report = hlo_verify.check(gradients(reference), gradients(on_devices(2, mistake)), *small)
        title = f"Gradients, weights {mistake}" if mistake else "Gradients"
        expect("REFUTED" if mistake else "PROVED", report, title)


if __name__ == "__main__":
    main()
