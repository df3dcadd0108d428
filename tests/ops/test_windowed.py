"""Windowed einsums are proved for rings of any size, and refuted where a window, a step or a turn is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.ops.windowed import contracting, filling, scattering, texts
from tests.support.lowering import Placed, floats

FORMS = [contracting, filling, scattering]


@pytest.mark.drawn(5)
@pytest.mark.parametrize("n", [4, 8, 64])
@pytest.mark.parametrize("form", FORMS)
def test_proved(form: Callable[..., Any], n: int) -> None:
    assert hlo_verify.verify(*texts(form, n), refute=False).verdict is Verdict.PROVED


@pytest.mark.drawn(4)
@pytest.mark.parametrize("function", [jnp.tanh, jnp.log, lambda x: jnp.log(x) / x], ids=["tanh", "log", "log x / x"])
@pytest.mark.parametrize("form", FORMS)
def test_what_goes_round_may_be_no_number(form: Callable[..., Any], function: Any) -> None:
    """Where it is none, it is none in the logical module either."""
    report = hlo_verify.verify(*texts(form, 8, of=(function, function)), refute=False)
    assert report.verdict is Verdict.PROVED


def long(x: jax.Array) -> jax.Array:
    """So long that two windows of it together have a name, and it alone has none."""
    return x * jnp.sin(x) * jnp.cos(x) + x * jnp.tanh(x)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("form", FORMS)
def test_windows_are_seen_in_what_has_a_name(form: Callable[..., Any]) -> None:
    assert hlo_verify.verify(*texts(form, 8, of=(long, long)), refute=False).verdict is Verdict.PROVED
    wrong = hlo_verify.verify(*texts(form, 8, of=(long, long), off=1), refute=False)
    assert wrong.verdict is Verdict.UNKNOWN


SPOILED = {
    "0 * log x": lambda x: x + 0 * jnp.log(x),
    "log x - log x": lambda x: x + jnp.log(x) - jnp.log(x),
    "x / x": lambda x: x * (x / x),
}
"""What is x for positive numbers and none for some others."""


@pytest.mark.drawn(1)
@pytest.mark.parametrize("function", SPOILED.values(), ids=SPOILED.keys())
@pytest.mark.parametrize("form", FORMS)
def test_what_a_device_makes_no_number_before_it_goes_round_stays_none(form: Callable[..., Any], function: Any) -> None:
    report = hlo_verify.verify(*texts(form, 8, of=(lambda x: x, function)), refute=False)
    assert report.verdict is Verdict.UNKNOWN


@pytest.mark.drawn(2)
@pytest.mark.parametrize("n", [4, 8])
@pytest.mark.parametrize("wrong", [{"off": 1}, {"off": 2}, {"turns": -1}, {"turns": 1}, {"unpassed": True}], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_refuted(form: Callable[..., Any], wrong: dict[str, Any], n: int) -> None:
    if form is filling and wrong == {"turns": 1}:
        pytest.skip("one turn more writes the same windows again")
    assert hlo_verify.verify(*texts(form, n, **wrong)).verdict is Verdict.REFUTED


ROWS = 100
"""Of the result, and as many turns: more than are unrolled."""


def writing(row: Callable[[Any], Any], turns: int = ROWS, start: float = 0.0) -> Callable[[jax.Array], jax.Array]:
    """Turn t writes its row of the argument to a row of the result."""

    def function(x: jax.Array) -> jax.Array:
        def turn(t: Any, out: jax.Array) -> jax.Array:
            return lax.dynamic_update_slice_in_dim(out, lax.dynamic_slice_in_dim(x, t, 1), row(t), 0)

        return lax.fori_loop(0, turns, turn, jnp.full((ROWS, x.shape[1]), start, jnp.float32))

    return function


def but_the_last(x: jax.Array) -> jax.Array:
    return jnp.where(jnp.arange(ROWS)[:, None] < ROWS - 1, x[:ROWS], 0)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("function", SPOILED.values(), ids=SPOILED.keys())
def test_what_a_turn_makes_no_number_stays_none(function: Any) -> None:
    def spoiled(x: jax.Array) -> jax.Array:
        def turn(t: Any, out: jax.Array) -> jax.Array:
            return lax.dynamic_update_slice_in_dim(out, function(lax.dynamic_slice_in_dim(x, t, 1)), t, 0)

        return lax.fori_loop(0, ROWS, turn, jnp.zeros((ROWS, x.shape[1]), jnp.float32))

    columns = P(None, "x")
    placed = Placed(AbstractMesh((3,), ("x",)), columns, columns, floats((2 * ROWS, 9)))
    assert hlo_verify.verify(*placed.pair(lambda x: x[:ROWS], spoiled), refute=False).verdict is Verdict.UNKNOWN


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("loop", "whole", "expected"),
    [
        (writing(lambda t: t), lambda x: x[:ROWS], Verdict.PROVED),
        (writing(lambda t: t, start=1.0), lambda x: x[:ROWS], Verdict.PROVED),
        (writing(lambda t: ROWS - 1 - t), lambda x: x[:ROWS][::-1], Verdict.PROVED),
        (writing(lambda t: t, ROWS - 1, 1.0), but_the_last, Verdict.UNKNOWN),
        (writing(lambda t: t // 2, 2 * ROWS), lambda x: x[::2] + x[1::2], Verdict.UNKNOWN),
        (writing(lambda t: t % ROWS, 2 * ROWS), lambda x: x[:ROWS] + x[ROWS:], Verdict.UNKNOWN),
    ],
    ids=["once", "over what was there", "downwards", "all but one", "two by two", "twice over"],
)
def test_what_is_written_is_added_up_only_where_all_is_written_once(loop: Any, whole: Any, expected: Verdict) -> None:
    columns = P(None, "x")
    placed = Placed(AbstractMesh((3,), ("x",)), columns, columns, floats((2 * ROWS, 9)))
    assert hlo_verify.verify(*placed.pair(whole, loop), refute=False).verdict is expected
