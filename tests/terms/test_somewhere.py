"""Sums that are positive somewhere: each is asked for its sign once, whatever its places are called."""

from __future__ import annotations

from itertools import product

import pytest

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra, guards, signs, somewhere, sums
from hlo_verify.terms.functions import EXPONENTIAL
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, tensor

SIZE = 8
SCORES = tensor("argument", "s", "f32", (SIZE,))


def between(low: Index, high: Index) -> Poly:
    """The weights of the elements from one place to another."""
    k = expr.fresh("k", SIZE)
    at = expr.of_var(k)
    conditions = guards.interval(expr.subtract(at, low), 0, None), guards.interval(expr.subtract(at, high), None, 0)
    weight = apply(EXPONENTIAL, (algebra.read(SCORES, (at,)),))
    return sums.reduce_sum([k], algebra.multiply(algebra.multiply(*conditions), weight))


def place(size: int, shift: int = 0) -> Index:
    return expr.shift(expr.of_var(expr.fresh("i", size)), shift)


def low_and_high(at: str) -> tuple[Index, Index]:
    """Two places of a row, as they go with one another."""
    i, low = place(4), place(4)
    return {
        "the same": (i, i),
        "one after the other": (i, expr.shift(i, 1)),
        "one before the other": (i, expr.shift(i, -1)),
        "any": (low, i),
        "a later one": (low, place(4, 3)),
        "a later one or the one before": (low, place(4, 2)),
        "a device's and its last": (expr.scale(i, 2), expr.shift(expr.scale(i, 2), 1)),
        "a device's and that of another": (expr.scale(i, 2), expr.shift(expr.scale(low, 2), 1)),
    }[at]


PLACES = {
    "the same": True,
    "one after the other": True,
    "one before the other": False,
    "any": False,
    "a later one": True,
    "a later one or the one before": False,
    "a device's and its last": True,
    "a device's and that of another": False,
}


@pytest.mark.parametrize("order", [list(PLACES), list(reversed(PLACES))], ids=["forwards", "backwards"])
def test_what_is_positive_at_some_places_is_not_at_others(order: list[str]) -> None:
    """What is known of one definition at some places says nothing of others, and numbers tell where it is positive."""
    for at in [*order, *order]:
        low, high = low_and_high(at)
        found = signs.of(between(low, high))
        variables = sorted(low.free | high.free, key=lambda v: v.uid)
        holds = []
        for numbers in product(*(range(v.size) for v in variables)):
            here = dict(zip(variables, map(expr.constant, numbers), strict=True))
            first, last = (expr.substitute(e, here).const for e in (low, high))
            holds.append(max(first, 0) <= min(last, SIZE - 1))
        assert all(holds) is PLACES[at]
        if not all(holds):
            assert found & signs.ZERO, at
    low, high = low_and_high("the same")
    assert signs.of(between(low, high)) == signs.POSITIVE


def test_it_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    own = somewhere.one_is_positive
    monkeypatch.setattr(somewhere, "one_is_positive", lambda bound, body: asked.append(body) or own(bound, body))
    found = {signs.of(between(expr.constant(0), place(5))) for _ in range(4)}
    assert found == {signs.POSITIVE}
    assert len(asked) == 1
