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


DISTANCES: dict[str, Callable[..., Any]] = {
    "to what is before": lambda i, j: jnp.where(i >= j, i - j, 0),
    "to what is behind": lambda i, j: jnp.where(j >= i, j - i, 0),
    "to what is before, from one on": lambda i, j: jnp.where(i > j, i - j, 0),
    "no less than three behind": lambda i, j: jnp.where(i - j < -3, -3, i - j),
}
"""Differences of two indices, of which a condition may hold the opposite."""


@pytest.mark.parametrize("name", DISTANCES)
def test_a_bound_of_a_difference_whichever_way_it_is_asked(name: str) -> None:
    distance = DISTANCES[name]

    def whole(x: Any) -> Any:
        return x + distance(*jnp.indices((8, 8), dtype="int32"))

    def part(x: Any, shift: int = 0) -> Any:
        i, j = jnp.indices((2, 8), dtype="int32")
        return x + distance(i + 2 * jax.lax.axis_index("x") + shift, j)

    placed = Placed(MESH, P("x"), P("x"), [jax.ShapeDtypeStruct((8, 8), "int32")])
    assert hlo_verify.verify(*placed.pair(whole, part), refute=False).verdict is Verdict.PROVED
    wrong = placed.pair(whole, lambda x: part(x, 1))
    assert hlo_verify.verify(*wrong, refute=False).verdict is not Verdict.PROVED


def test_an_opposite_that_wraps_is_no_bound() -> None:
    """Of -128, in 8 bits, the opposite is -128, which is no more than 3."""
    assert verdict(lambda x: jnp.maximum(x, -3), lambda x: jnp.where(-x <= 3, x, -3), "int8") is not Verdict.PROVED


Two = Callable[[Any, Any], Any]
HERE = (6, -3, 120, -128, 0, 1, 5, 127)
COMPARED: dict[str, tuple[Two, Two]] = {
    "least": (jnp.minimum, lambda x, y: jnp.where(x < y, x, y)),
    "least, or equal": (jnp.minimum, lambda x, y: jnp.where(x <= y, x, y)),
    "least, the other way": (jnp.minimum, lambda x, y: jnp.where(x > y, y, x)),
    "greatest": (jnp.maximum, lambda x, y: jnp.where(x >= y, x, y)),
    "greatest, the other way": (jnp.maximum, lambda x, y: jnp.where(y > x, y, x)),
    "least of what is added up": (lambda x, y: jnp.minimum(x + y, y), lambda x, y: jnp.where(x + y < y, x + y, y)),
}
OTHERS: dict[str, tuple[Two, Two]] = {
    "the other one": (jnp.minimum, lambda x, y: jnp.where(x < y, y, x)),
    "greatest for least": (jnp.minimum, lambda x, y: jnp.where(x > y, x, y)),
    "one more": (jnp.minimum, lambda x, y: jnp.where(x < y + 1, x + 1, y)),
    "two apart": (jnp.minimum, lambda x, y: jnp.where(x + 1 < y, x, y)),
    "beyond": (jnp.minimum, lambda x, y: jnp.where(x - 2 < y, x, y)),
    "a difference that wraps": (jnp.minimum, lambda x, y: jnp.where(x - y < 0, x, y)),
    "a sum that wraps": (lambda x, y: jnp.minimum(x + y, y), lambda x, y: jnp.where(x < 0, x + y, y)),
}


def verdict_of_two(whole: Two, local: Two, dtype: str, with_places: bool) -> Verdict:
    """Of two arguments, or of one and of places, less four."""
    arguments = [jax.ShapeDtypeStruct((8,), dtype)] * 2
    if not with_places:
        return verdict_of(Placed(MESH, P("x"), P("x"), arguments).pair(whole, local))

    def part(x: Any) -> Any:
        return local(x, (jnp.arange(2) + 2 * jax.lax.axis_index("x") - 4).astype(dtype))

    placed = Placed(MESH, P("x"), P("x"), arguments[:1])
    return verdict_of(placed.pair(lambda x: whole(x, (jnp.arange(8) - 4).astype(dtype)), part))


def verdict_of(pair: tuple[str, str]) -> Verdict:
    return hlo_verify.verify(*pair, refute=False).verdict


@pytest.mark.parametrize("with_places", [False, True])
@pytest.mark.parametrize("name", COMPARED)
def test_a_choice_between_two_that_are_compared(name: str, with_places: bool) -> None:
    x, y = (jnp.array(each, "int8") for each in (HERE, HERE[::-1]))
    assert (COMPARED[name][0](x, y) == COMPARED[name][1](x, y)).all()
    assert verdict_of_two(*COMPARED[name], "int8", with_places) is Verdict.PROVED


@pytest.mark.parametrize("with_places", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_other_choices_of_two(name: str, with_places: bool) -> None:
    every = jnp.arange(-128, 128)
    x, y = (each.ravel().astype("int8") for each in jnp.meshgrid(every, jnp.arange(-4, 4) if with_places else every))
    assert (OTHERS[name][0](x, y) != OTHERS[name][1](x, y)).any()
    assert verdict_of_two(*OTHERS[name], "int8", with_places) is not Verdict.PROVED
