"""Tables are fitted exactly, or stay tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr, tables
from tests.support.evaluate import Evaluator
from tests.support.expressions import many

Draw = Any
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24)


def table(draw: Draw, size: int) -> npt.NDArray[np.int64]:
    """A permutation of digits, a rotation of one or of two, a permutation, or anything."""
    kind = draw(st.sampled_from(("digits", "rotation", "ring", "permutation", "anything", "constant")))
    v = np.arange(size)
    if kind == "constant":
        return np.full(size, draw(st.integers(-3, 3)))
    if kind == "permutation":
        return np.array(draw(st.permutations(range(size))))
    if kind == "anything":
        return np.array(draw(st.lists(st.integers(-20, 20), min_size=size, max_size=size)))
    if kind == "ring":
        return two_digits(draw, size)
    low = draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
    radix = draw(st.sampled_from([n for n in range(1, size // low + 1) if size // low % n == 0]))
    digit = v // low % radix
    if kind == "rotation":
        return v + ((digit + draw(st.integers(0, radix))) % radix - digit) * low
    a, b, c, k = (draw(st.integers(-6, 6)) for _ in range(4))
    return a * (v % low) + b * digit + c * (v // (low * radix)) + k


def two_digits(draw: Draw, size: int) -> npt.NDArray[np.int64]:
    """A rotation of the places that two digits count together, in either order."""
    divisors = [n for n in range(1, size + 1) if size % n == 0]
    low = draw(st.sampled_from(divisors))
    radix = draw(st.sampled_from([n for n in divisors if size // low % n == 0]))
    low_above = draw(st.sampled_from([n for n in divisors if n % (low * radix) == 0]))
    above = draw(st.sampled_from([n for n in divisors if size // low_above % n == 0]))
    (first, m), (second, n) = draw(st.permutations([(low, radix), (low_above, above)]))
    v, step = np.arange(size), draw(st.integers(0, m * n))
    one, other = v // first % m, v // second % n
    moved = (one + m * other + step) % (m * n)
    return v + first * (moved % m - one) + second * (moved // m - other)


@many
@given(data=st.data())
def test_rings_of_two_digits(data: st.DataObject) -> None:
    size = data.draw(st.sampled_from(SIZES))
    values = two_digits(data.draw, size)
    v = expr.var("x", 0, size)
    found = tables.ring(values, v)
    if (values == np.arange(size)).all():
        assert found is None
        return
    assert found is not None
    turns, after = data.draw(st.integers(0, size)), np.arange(size)
    for _ in range(turns):
        after = values[after]
    reached = Evaluator({}).index(found.turned(expr.constant(turns)), {v: np.arange(size)})
    assert np.array_equal(np.broadcast_to(reached, (size,)), after)


@many
@given(data=st.data())
def test_fit(data: st.DataObject) -> None:
    v = expr.var("x", "fit", data.draw(st.sampled_from(SIZES)))
    values = table(data.draw, v.size)
    known = np.array(data.draw(st.lists(st.booleans(), min_size=v.size, max_size=v.size)))
    known = known if data.draw(st.booleans()) else np.ones(v.size, dtype=bool)
    fitted = tables.fit(values, v, known)
    found = np.broadcast_to(Evaluator({}).index(fitted, {v: np.arange(v.size)}), v.size)
    assert (found == values)[known].all(), (fitted, values, known)
    whole = tables.fit(values, v)
    assert (Evaluator({}).index(whole, {v: np.arange(v.size)}) == values).all(), (whole, values)


@pytest.mark.parametrize(("outer", "radix", "low"), [(2, 4, 1), (3, 4, 2), (1, 6, 4), (5, 3, 1)])
@pytest.mark.parametrize("step", [1, 2])
def test_the_places_of_an_axis_that_is_turned_are_no_table(outer: int, radix: int, low: int, step: int) -> None:
    size = outer * radix * low
    v = expr.var("x", "turned", size)
    values = (np.arange(size) // low + step) % radix
    found = tables.fit(values, v)
    assert not tables.asks_table(found)
    assert (Evaluator({}).index(found, {v: np.arange(size)}) == values).all()


@many
@given(data=st.data())
def test_evaluate(data: st.DataObject) -> None:
    v = expr.var("x", "evaluate", data.draw(st.sampled_from(SIZES)))
    e = expr.of_var(v)
    for _ in range(3):
        m = data.draw(st.sampled_from((1, 2, 3, 4, 6)))
        kind = data.draw(st.sampled_from(("div", "mod", "shift", "clamp", "table")))
        if kind == "shift":
            e = expr.shift(expr.scale(e, m), -2)
        elif kind == "clamp":
            e = expr.clamp(e, -1, m)
        elif kind == "table":
            e = expr.lookup(tuple(range(5, 5 + m)), expr.modulo(e, m))
        else:
            e = expr.floor_divmod(e, m)[kind == "mod"]
    found = tables.evaluate(e, v)
    assert found is not None
    assert (found == Evaluator({}).index(e, {v: np.arange(v.size)})).all()


@many
@given(data=st.data())
def test_fit_set(data: st.DataObject) -> None:
    v = expr.var("x", "set", data.draw(st.sampled_from(SIZES)))
    kind = data.draw(st.booleans())
    if kind:
        members = np.array(data.draw(st.lists(st.booleans(), min_size=v.size, max_size=v.size)))
    else:
        low = data.draw(st.sampled_from([n for n in range(1, v.size + 1) if v.size % n == 0]))
        digit = np.arange(v.size) // low
        members = (digit >= 1) & (digit <= data.draw(st.integers(0, v.size)))
    holds = np.ones(v.size, dtype=bool)
    for form, lo, hi in tables.fit_set(members, v):
        x = Evaluator({}).index(form, {v: np.arange(v.size)})
        holds &= np.broadcast_to((x >= lo) & (x <= hi), v.size).astype(bool)
    assert (holds == members).all()


@many
@given(data=st.data())
def test_lookup_may_lie_outside_of_the_table(data: st.DataObject) -> None:
    """`pad` of a constant, or a slice that runs over: a guard is 0 there, so any number will do."""
    v = expr.var("x", "outside", data.draw(st.sampled_from(SIZES)))
    values = tuple(int(x) for x in table(data.draw, data.draw(st.sampled_from(SIZES))))
    e = expr.shift(
        expr.scale(expr.of_var(v), data.draw(st.sampled_from((-2, -1, 0, 1, 3)))), data.draw(st.integers(-9, 9))
    )
    positions = Evaluator({}).index(e, {v: np.arange(v.size)})
    found = np.broadcast_to(Evaluator({}).index(expr.lookup(values, e), {v: np.arange(v.size)}), v.size)
    for at, x in zip(np.broadcast_to(positions, v.size), found, strict=True):
        assert not 0 <= at < len(values) or x == values[at], (values, e)


@many
@given(data=st.data())
def test_lookup_of_a_lookup(data: st.DataObject) -> None:
    v = expr.var("x", "again", data.draw(st.sampled_from(SIZES)))
    e, numbers = expr.of_var(v), np.arange(v.size)
    for _ in range(3):
        values = tuple(int(x) for x in table(data.draw, data.draw(st.sampled_from(SIZES))))
        e, numbers = expr.lookup(values, expr.modulo(e, len(values))), np.array(values)[numbers % len(values)]
    assert (np.broadcast_to(Evaluator({}).index(e, {v: np.arange(v.size)}), v.size) == numbers).all()


LIMITS = (2**63 - 1, -(2**63), 2**64 - 1, 2**62, -(2**62), 2**61, 0, 1)


@many
@given(values=st.lists(st.sampled_from(LIMITS), min_size=2, max_size=4))
def test_values_near_the_limits_of_64_bits(values: list[int]) -> None:
    """Differences of such values do not fit into 64 bits."""
    v = expr.var("x", "limits", len(values))
    everywhere = {v: np.arange(len(values))}
    looked_up = expr.lookup(tuple(values), expr.of_var(v))
    assert np.broadcast_to(Evaluator({}).index(looked_up, everywhere), len(values)).tolist() == values
    half = expr.floor_div(expr.scale(looked_up, 3), 2)
    if all(x < 2**63 for x in values):
        fitted = tables.fit(np.array(values), v)
        assert np.broadcast_to(Evaluator({}).index(fitted, everywhere), len(values)).tolist() == values
    found = tables.evaluate(half, v)
    assert found is None or found.tolist() == [3 * x // 2 for x in values]


def test_digits() -> None:
    v = expr.var("x", "digits", 12)
    found = tables.digits(v)
    assert {d.items[0][0] for d in found} == {
        expr.digit_of(expr.of_var(v), low, radix).items[0][0]
        for low in range(1, 13)
        for radix in range(2, 13)
        if 12 % (low * radix) == 0
    }


def test_a_table_without_entries() -> None:
    """Its variable has no values, so that whatever it is said to be is right."""
    nothing = np.empty(0, np.int64)
    assert tables.fit(nothing, expr.var("v", "none", 0)) == expr.constant(0)
    assert tables.fit(nothing, expr.var("v", "none", 0), np.empty(0, bool)) == expr.constant(0)
