"""Verify ring attention against plain attention: `python examples/ring_attention.py`.

The sequence is split over 4 devices. Keys and values go around a ring while each device keeps a running maximum, sum
and weighted sum of its queries, as online softmax does. The second version rescales the weighted sum by the new maximum
and forgets to rescale the sum of weights: for scores that are alike nobody sees it.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify

DEVICES = 4
MESH = AbstractMesh((DEVICES,), ("ring",), axis_types=(AxisType.Auto,))
ROUND = [(n, (n + 1) % DEVICES) for n in range(DEVICES)]


def reference(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jax.nn.softmax(q @ k.T, axis=-1) @ v


def ring(rescale: bool, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    def turn(carried: Any, _: None) -> Any:
        k, v, most, weight, found = carried
        scores = q @ k.T
        new = jnp.maximum(most, scores.max(axis=-1))
        factor, weights = jnp.exp(most - new), jnp.exp(scores - new[:, None])
        weight = (weight * factor if rescale else weight) + weights.sum(axis=-1)
        found = found * factor[:, None] + weights @ v
        k, v = (lax.ppermute(each, "ring", ROUND) for each in (k, v))
        return (k, v, new, weight, found), None

    empty = jnp.full(q.shape[0], -jnp.inf), jnp.zeros(q.shape[0]), jnp.zeros_like(q)
    (_, _, _, weight, found), _ = lax.scan(turn, (k, v, *empty), length=DEVICES)
    return found / weight[:, None]


def on_devices(rescale: bool) -> Any:
    split = P("ring")
    return jax.shard_map(partial(ring, rescale), mesh=MESH, in_specs=split, out_specs=split, check_vma=False)


def main() -> int:
    shapes = [jax.ShapeDtypeStruct((64, 16), jnp.float32)] * 3
    verdicts = []
    for rescale in (True, False):
        report = hlo_verify.check(reference, on_devices(rescale), *shapes)
        verdicts.append(str(report.verdict))
        print(report)
    return 0 if verdicts == ["PROVED", "REFUTED"] else 1


if __name__ == "__main__":
    sys.exit(main())
