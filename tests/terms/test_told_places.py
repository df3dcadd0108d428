"""What rows look up of their group is the group's, and a group without rows has nothing to look up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.ops import segment_sum
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict, verify
from tests.support.lowering import Placed

MESH = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))
SHAPES = jax.ShapeDtypeStruct((16, 3), jnp.float32), jax.ShapeDtypeStruct((16,), jnp.int32)
GROUPS = 5
Function = Callable[[Any, Any], Any]


def by_group(x: Any, g: Any) -> Any:
    return segment_sum(x, g, GROUPS)


def total(x: Any, g: Any) -> Any:
    return lax.psum(by_group(x, g), "d")


def ones(x: Any) -> Any:
    return jnp.ones(x.shape)


def softmax(x: Any, g: Any) -> Any:
    e = jnp.exp(x)
    return by_group(e / by_group(e, g)[g] * x, g)


def mean(x: Any, g: Any) -> Any:
    return by_group(x / by_group(ones(x), g)[g], g)


def roots(x: Any, g: Any) -> Any:
    return by_group(x * lax.rsqrt(by_group(ones(x), g))[g], g)


def logarithms(x: Any, g: Any) -> Any:
    return by_group(x - jnp.log(by_group(jnp.exp(x), g))[g], g)


def rooted(x: Any, g: Any, none: float = 0.0) -> Any:
    n = total(ones(x), g)
    return jnp.where(n > 0, total(x, g) * lax.rsqrt(jnp.where(n > 0, n, 1)), none)


def less_logarithms(x: Any, g: Any, least: float = 0.0) -> Any:
    z = total(jnp.exp(x), g)
    return total(x, g) - total(ones(x), g) * jnp.log(jnp.where(z > 0, z, 1) if least == 0 else z)


RIGHT: dict[str, tuple[Function, Function]] = {
    "softmax": (
        softmax,
        lambda x, g: total(jnp.exp(x) * x, g) / jnp.where((z := total(jnp.exp(x), g)) == 0, 1, z),
    ),
    "softmax, 0 of none": (
        softmax,
        lambda x, g: jnp.where((z := total(jnp.exp(x), g)) > 0, total(jnp.exp(x) * x, g) / z, 0),
    ),
    "mean": (mean, lambda x, g: total(x, g) / jnp.maximum(total(ones(x), g), 1)),
    "roots": (roots, rooted),
    "logarithms": (logarithms, less_logarithms),
}
WRONG: dict[str, tuple[Function, Function]] = {
    "softmax, no number of none": (softmax, lambda x, g: total(jnp.exp(x) * x, g) / total(jnp.exp(x), g)),
    "softmax, 1 of none": (
        softmax,
        lambda x, g: jnp.where((z := total(jnp.exp(x), g)) > 0, total(jnp.exp(x) * x, g) / z, 1),
    ),
    "softmax of its own": (
        softmax,
        lambda x, g: total(jnp.exp(x) * x, g) / jnp.where((z := by_group(jnp.exp(x), g)) == 0, 1, z),
    ),
    "mean, no number of none": (mean, lambda x, g: total(x, g) / total(ones(x), g)),
    "mean of two at least": (mean, lambda x, g: total(x, g) / jnp.maximum(total(ones(x), g), 2)),
    "roots, 1 of none": (roots, lambda x, g: rooted(x, g, 1.0)),
    "roots, no number of none": (roots, lambda x, g: total(x, g) * lax.rsqrt(total(ones(x), g))),
    "logarithms, no number of none": (logarithms, lambda x, g: less_logarithms(x, g, -1)),
}
"""Among them what is one where each group has a row."""


def verdict(whole: Function, local: Function) -> Verdict:
    pair = Placed(MESH, P("d"), P(), SHAPES).pair(whole, local)
    return verify(*pair, assume={"g": (0, GROUPS)}, refute=False).verdict


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_looked_up_of_a_group(name: str) -> None:
    assert verdict(*RIGHT[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", WRONG)
def test_groups_without_rows(name: str) -> None:
    assert verdict(*WRONG[name]) is not Verdict.PROVED
