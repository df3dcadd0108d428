"""Factors of symmetric matrices, which libraries make symmetric once more: `(k + k.T) / 2` is k."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict

Function = Callable[[jax.Array], jax.Array]
MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
N = 8


def by_differences(x: jax.Array) -> jax.Array:
    return ((x[:, None] - x[None]) ** 2).sum(-1)


def by_products(x: jax.Array, cross: float = 2.0) -> jax.Array:
    """A device's rows of it."""
    every = lax.all_gather(x, "x", tiled=True)
    return (x * x).sum(1)[:, None] - cross * x @ every.T + (every * every).sum(1)


def factor(scores: jax.Array, jitter: float = 0.1) -> jax.Array:
    return jnp.linalg.cholesky(jnp.exp(-0.5 * scores) + jitter * jnp.eye(N))


def on_devices(local: Function, jitter: float = 0.1) -> Function:
    def part(x: jax.Array) -> jax.Array:
        return factor(lax.all_gather(local(x), "x", tiled=True), jitter)

    return jax.shard_map(part, mesh=MESH, in_specs=P("x"), out_specs=P(), check_vma=False)


CASES: dict[str, tuple[Function, bool]] = {
    "of distances": (on_devices(by_products), True),
    "of other products": (on_devices(lambda x: by_products(x, 1.9)), False),
    "with more beside": (on_devices(by_products, 0.2), False),
    "of a device's rows": (on_devices(lambda x: by_products(x)[::-1]), False),
}


@pytest.mark.parametrize("name", CASES)
def test_factors_of_what_is_made_symmetric(name: str) -> None:
    split, is_same = CASES[name]
    shape = jax.ShapeDtypeStruct((N, 2), jnp.float32)
    report = hlo_verify.check(lambda x: factor(by_differences(x)), split, shape, refute=False)
    assert (report.verdict is Verdict.PROVED) is is_same
