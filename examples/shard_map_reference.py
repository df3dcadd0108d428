"""Verify a shard_map program against its plain reference: `python examples/shard_map_reference.py`.

The second version averages where it should sum: JAX's own check of varying axes accepts it,
as the result does not vary over the mesh.
"""

from __future__ import annotations

import sys
from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
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
    placed = [NamedSharding(MESH, spec) for spec in SPECS]

    def lowered(function: object) -> jax.stages.Lowered:
        jitted = jax.jit(function, in_shardings=placed, out_shardings=NamedSharding(MESH, P()))
        return jitted.trace(*shapes).lower(lowering_platforms=("cpu",))

    verdicts = {}
    for function in (right, wrong):
        report = hlo_verify.verify(lowered(reference), lowered(function))
        verdicts[function] = report.verdict
        print(f"{function.__name__}: {report.verdict}")
        for result in report.results:
            if result.finding is not None:
                print(f"  {result.finding.location}: {result.reason}")
    as_expected = verdicts[right] == "PROVED" and verdicts[wrong] != "PROVED"
    return 0 if as_expected else 1


if __name__ == "__main__":
    sys.exit(main())
