"""Verify what XLA's partitioner makes of an annotated jit, without any device: `python examples/annotated_jit.py`.

A layer with a residual, its weights over one mesh axis and its batch over another. The 64 devices
need not exist: the function is lowered for an abstract mesh, and `check` has the XLA in jaxlib
partition it in a child process. What it makes of it is compared with the function without any sharding.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlo_verify

MESH = AbstractMesh((8, 8), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))


def place(*spec: str | None) -> NamedSharding:
    return NamedSharding(MESH, P(*spec))


def loss(w1: jax.Array, w2: jax.Array, x: jax.Array) -> jax.Array:
    hidden = jax.nn.silu(x @ w1)
    return jnp.mean((x + hidden @ w2) ** 2)


def main() -> int:
    weights = place(None, "model"), place("model", None)
    train = jax.jit(
        jax.value_and_grad(loss, argnums=(0, 1)),
        in_shardings=(*weights, place("data", None)),
        out_shardings=(place(), weights),
    )
    shapes = [jax.ShapeDtypeStruct(size, jnp.float32) for size in ((4096, 16384), (16384, 4096), (1024, 4096))]
    report = hlo_verify.check(jax.value_and_grad(loss, argnums=(0, 1)), train, *shapes)
    print(report)
    return 0 if report.verdict is hlo_verify.Verdict.PROVED else 1


if __name__ == "__main__":
    sys.exit(main())
