"""Scatters whose updates are split over devices: one device alone has what was there before, the others nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict, check

MESH = AbstractMesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
ARGUMENTS = (
    jax.ShapeDtypeStruct((5,), jnp.float32),
    jax.ShapeDtypeStruct((8,), jnp.int32),
    jax.ShapeDtypeStruct((8,), jnp.float32),
)
LEAVES: dict[str, float] = {"min": jnp.inf, "max": -jnp.inf, "add": 0.0, "multiply": 1.0}
JOINS: dict[str, Callable[..., Any]] = {"min": lax.pmin, "max": lax.pmax, "add": lax.psum}


def whole(function: str) -> Callable[..., Any]:
    return lambda a, b, c: getattr(a.at[b], function)(c, mode="drop")


@pytest.mark.drawn(4)
@pytest.mark.parametrize("axes", [("x",), ("y", "x")])
@pytest.mark.parametrize("function", LEAVES)
def test_what_xla_makes_of_them(function: str, axes: tuple[str, ...]) -> None:
    where = tuple(NamedSharding(MESH, spec) for spec in (P(), P(axes), P(axes)))
    placed = jax.jit(whole(function), in_shardings=where, out_shardings=where[0])
    assert check(whole(function), placed, *ARGUMENTS).verdict is Verdict.PROVED


def distributed(function: str, leaves: float, has: Callable[[Any, Any], Any], join: Any) -> Callable[..., Any]:
    def local(a: Any, b: Any, c: Any) -> Any:
        base = jnp.where(has(lax.axis_index("y"), lax.axis_index("x")), a, leaves)
        return join(getattr(base.at[b], function)(c, mode="drop"), ("x", "y"))

    specs = (P(), P(("y", "x")), P(("y", "x")))
    return jax.shard_map(local, mesh=MESH, in_specs=specs, out_specs=P(), check_vma=False)


def verdict(function: str, by: Callable[..., Any]) -> Verdict:
    return check(whole(function), by, *ARGUMENTS).verdict


@pytest.mark.parametrize("function", JOINS)
def test_what_a_person_makes_of_them(function: str) -> None:
    by = distributed(function, LEAVES[function], lambda y, x: 2 * y + x == 0, JOINS[function])
    assert verdict(function, by) is Verdict.PROVED


@pytest.mark.parametrize("function", ["min", "max"])
def test_several_may_have_what_was_there(function: str) -> None:
    by = distributed(function, LEAVES[function], lambda y, x: 2 * y + x <= 2, JOINS[function])
    assert verdict(function, by) is Verdict.PROVED


@pytest.mark.parametrize("function", JOINS)
def test_nobody_has_what_was_there(function: str) -> None:
    by = distributed(function, LEAVES[function], lambda y, x: 2 * y + x > 3, JOINS[function])
    assert verdict(function, by) is not Verdict.PROVED


@pytest.mark.parametrize("function", ["min", "max"])
def test_what_others_have_is_not_nothing(function: str) -> None:
    by = distributed(function, 0.0, lambda y, x: 2 * y + x == 0, JOINS[function])
    assert verdict(function, by) is not Verdict.PROVED


def test_two_have_what_is_added_to() -> None:
    by = distributed("add", 0.0, lambda y, x: 2 * y + x <= 1, lax.psum)
    assert verdict("add", by) is not Verdict.PROVED


@pytest.mark.parametrize("function", ["min", "max"])
def test_updates_of_one_axis_are_not_all(function: str) -> None:
    by = distributed(
        function, LEAVES[function], lambda y, x: 2 * y + x == 0, lambda p, axes: JOINS[function](p, axes[:1])
    )
    assert verdict(function, by) is not Verdict.PROVED
