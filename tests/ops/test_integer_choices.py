"""Absolute values and bounds of integers, written as choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

MESH = AbstractMesh((4,), ("x",))
Body = Callable[..., Any]


def verdict(reference: Body, local: Body, dtype: str) -> Verdict:
    pair = Placed(MESH, P("x"), P("x"), [jax.ShapeDtypeStruct((8,), dtype)]).pair(reference, local)
    return hlo_verify.verify(*pair, refute=False).verdict


RIGHT: dict[str, tuple[Body, Body]] = {
    "absolute value": (jnp.abs, lambda x: jnp.where(x < 0, -x, x)),
    "absolute value, from zero on": (jnp.abs, lambda x: jnp.where(x >= 0, x, -x)),
    "bounds": (lambda x: jnp.clip(x, 0, 5), lambda x: jnp.where(x < 0, 0, jnp.where(x > 5, 5, x))),
    "bounds, the other first": (lambda x: jnp.clip(x, -2, 5), lambda x: jnp.where(x >= 5, 5, jnp.where(x < -2, -2, x))),
    "a bound and a choice": (lambda x: jnp.clip(x, 0, 5), lambda x: jnp.where(x < 0, 0, jnp.minimum(x, 5))),
    "one more than compared": (lambda x: jnp.maximum(x, 4), lambda x: jnp.where(x > 3, x, 4)),
}
WRONG: dict[str, tuple[Body, Body]] = {
    "opposite of an absolute value": (jnp.abs, lambda x: jnp.where(x < 0, x, -x)),
    "no opposite": (jnp.abs, lambda x: jnp.where(x < 0, -1 - x, x)),
    "a gap": (lambda x: jnp.clip(x, 0, 5), lambda x: jnp.where(x < 0, 0, jnp.where(x > 6, 5, x))),
    "a lower bound": (lambda x: jnp.clip(x, 0, 5), lambda x: jnp.where(x < 0, 0, jnp.where(x > 3, 5, x))),
    "two more than compared": (lambda x: jnp.maximum(x, 5), lambda x: jnp.where(x > 3, x, 5)),
    "the other side": (lambda x: jnp.maximum(x, 4), lambda x: jnp.where(x < 4, x, 4)),
}


@pytest.mark.parametrize("dtype", ["int32", "int8"])
@pytest.mark.parametrize("name", RIGHT)
def test_a_choice_between_an_integer_and_its_bound(name: str, dtype: str) -> None:
    assert verdict(*RIGHT[name], dtype) is Verdict.PROVED


@pytest.mark.parametrize("name", WRONG)
def test_other_choices(name: str) -> None:
    assert verdict(*WRONG[name], "int32") is not Verdict.PROVED
