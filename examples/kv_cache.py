"""Verify a step of decoding whose cache is split over the sequence: `python examples/kv_cache.py`.

Each of 8 devices holds the keys and values of 64 positions. The one that holds the new position writes to it; all look
at what they hold, and put their parts of the softmax together. The question is about positions that are in the cache,
which `assume` says. The second version compares positions with what a device holds as if all held the first 64.
"""

from __future__ import annotations

import sys
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify

DEVICES, LENGTH, WIDTH = 8, 512, 32
MESH = AbstractMesh((DEVICES,), ("sequence",), axis_types=(AxisType.Auto,))


def reference(keys: jax.Array, values: jax.Array, q: jax.Array, k: jax.Array, v: jax.Array, position: jax.Array):
    keys = lax.dynamic_update_index_in_dim(keys, k, position, 0)
    values = lax.dynamic_update_index_in_dim(values, v, position, 0)
    scores = jnp.where(jnp.arange(LENGTH) <= position, keys @ q, -jnp.inf)
    return keys, values, jax.nn.softmax(scores) @ values


def on_a_device(
    offset: bool, keys: jax.Array, values: jax.Array, q: jax.Array, k: jax.Array, v: jax.Array, position: jax.Array
):
    held = jnp.arange(LENGTH // DEVICES)
    held += lax.axis_index("sequence") * len(held)
    here = (held == position)[:, None]
    keys, values = jnp.where(here, k, keys), jnp.where(here, v, values)
    seen = held if offset else jnp.arange(LENGTH // DEVICES)
    scores = jnp.where(seen <= position, keys @ q, -jnp.inf)
    weights = jnp.exp(scores - lax.pmax(scores.max(), "sequence"))
    found, total = lax.psum((weights @ values, weights.sum()), "sequence")
    return keys, values, found / total


def main() -> int:
    cache, one = jax.ShapeDtypeStruct((LENGTH, WIDTH), jnp.float32), jax.ShapeDtypeStruct((WIDTH,), jnp.float32)
    args = cache, cache, one, one, one, jax.ShapeDtypeStruct((), jnp.int32)
    split, whole = P("sequence"), P()
    specs = (split, split, whole, whole, whole, whole), (split, split, whole)
    verdicts = []
    for offset in (True, False):
        step = jax.shard_map(
            partial(on_a_device, offset), mesh=MESH, in_specs=specs[0], out_specs=specs[1], check_vma=False
        )
        report = hlo_verify.check(reference, step, *args, assume={"position": (0, LENGTH)})
        verdicts.append(str(report.verdict))
        print(report)
    return 0 if verdicts == ["PROVED", "REFUTED"] else 1


if __name__ == "__main__":
    sys.exit(main())
