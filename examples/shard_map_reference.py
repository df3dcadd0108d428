"""Verify a shard_map program against its plain reference: `python examples/shard_map_reference.py`.

The second version averages where it should sum: JAX's own check of varying axes accepts it,
as the result does not vary over the mesh.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
from shared import expect, floats, mesh

import hlo_verify

MESH = mesh(model=8)
SPECS = (P(), P(None, "model"), P("model", None))


def reference(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    return jnp.tanh(x @ up) @ down


@partial(jax.shard_map, mesh=MESH, in_specs=SPECS, out_specs=P())
def right(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    return jax.lax.psum(jnp.tanh(x @ up) @ down, "model")


@partial(jax.shard_map, mesh=MESH, in_specs=SPECS, out_specs=P())
def wrong(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    return jax.lax.pmean(jnp.tanh(x @ up) @ down, "model")


def main() -> None:
    shapes = [floats(*size) for size in ((512, 4096), (4096, 16384), (16384, 4096))]
    for function in (right, wrong):
        report = hlo_verify.check(reference, function, *shapes)
        expect("PROVED" if function is right else "REFUTED", report)


if __name__ == "__main__":
    main()
