"""Pooling over shards, forward and backward, where windows end at shards or reach past them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict

MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
ROWS = jax.ShapeDtypeStruct((16, 3), "float32")


def pool(x: Any, size: int, stride: int, way: str = "max") -> Any:
    function, start = {"max": (lax.max, -jnp.inf), "min": (lax.min, jnp.inf), "sum": (lax.add, 0.0)}[way]
    return lax.reduce_window(x, start, function, (size, 1), (stride, 1), "VALID")


def gradient(x: Any, size: int, stride: int) -> Any:
    """Of the sum of squares of the greatest."""
    return jax.grad(lambda x: jnp.sum(pool(x, size, stride) ** 2))(x)


def verdict(whole: Callable[..., Any], local: Callable[..., Any]) -> Verdict:
    mapped = jax.shard_map(local, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    traced = [jax.jit(function).trace(ROWS) for function in (whole, mapped)]
    return hlo_verify.verify(*traced, devices=4, refute=False).verdict


@pytest.mark.parametrize("size", [1, 2, 4])
def test_gradients_of_windows_that_end_at_shards(size: int) -> None:
    assert verdict(lambda x: gradient(x, size, size), lambda x: gradient(x, size, size)) is Verdict.PROVED


@pytest.mark.parametrize(("size", "stride"), [(2, 4), (4, 2), (2, 1)])
def test_gradients_of_other_windows(size: int, stride: int) -> None:
    assert verdict(lambda x: gradient(x, 2, 2), lambda x: gradient(x, size, stride)) is not Verdict.PROVED


def reaching(way: str, size: int, off: int = 0) -> Callable[..., Any]:
    """Windows one element apart: the last ones read the first rows of the next shard, of which the last has none."""

    def local(x: Any) -> Any:
        d = lax.axis_index("x")
        following = lax.ppermute(x[off : size - 1 + off], "x", [(k + 1, k) for k in range(3)])
        nothing = {"max": -jnp.inf, "min": jnp.inf, "sum": 0.0}[way]
        return pool(jnp.concatenate([x, jnp.where(d < 3, following, nothing)]), size, 1, way)

    return local


def padded(way: str, size: int) -> Callable[..., Any]:
    nothing = {"max": -jnp.inf, "min": jnp.inf, "sum": 0.0}[way]
    return lambda x: pool(jnp.pad(x, ((0, size - 1), (0, 0)), constant_values=nothing), size, 1, way)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("way", ["max", "min", "sum"])
def test_windows_that_reach_into_the_next_shard(way: str, size: int) -> None:
    assert verdict(padded(way, size), reaching(way, size)) is Verdict.PROVED
    assert verdict(padded(way, size), reaching(way, size, off=1)) is not Verdict.PROVED
