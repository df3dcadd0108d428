"""Verify a shard_map program against its plain reference: `python examples/shard_map_reference.py`.

The second version averages where it should sum: JAX's own check of varying axes accepts it,
as the result does not vary over the mesh.
"""

from __future__ import annotations

import sys
from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify

MESH = AbstractMesh((8,), ("model",), axis_types=(AxisType.Auto,))
SPECS = (P(), P(None, "model"), P("model", None))


def reference(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    return jnp.tanh(x @ up) @ down


@partial(jax.shard_map, mesh=MESH, in_specs=SPECS, out_specs=P())
def right(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    return jax.lax.psum(jnp.tanh(x @ up) @ down, "model")


@partial(jax.shard_map, mesh=MESH, in_specs=SPECS, out_specs=P())
def wrong(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    return jax.lax.pmean(jnp.tanh(x @ up) @ down, "model")


def main() -> int:
    shapes = [jax.ShapeDtypeStruct(size, jnp.float32) for size in ((512, 4096), (4096, 16384), (16384, 4096))]
    verdicts = []
    for function in (right, wrong):
        report = hlo_verify.check(reference, function, *shapes)
        verdicts.append(str(report.verdict))
        print(report)
    return 0 if verdicts == ["PROVED", "REFUTED"] else 1


if __name__ == "__main__":
    sys.exit(main())
