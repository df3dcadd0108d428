"""Conditions on two digits are ones on the place where these lie side by side."""

from __future__ import annotations

import pytest

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra
from hlo_verify.terms.guards import interval
from hlo_verify.terms.side_by_side import on_places
from hlo_verify.terms.term import Poly, tensor

X = tensor("argument", "x", "f32", (80,))


def digits() -> tuple[Index, Index, Index]:
    """What 40 elements on each of two devices are counted by, and the place of one."""
    low, high = expr.of_var(expr.fresh("l", 40)), expr.of_var(expr.fresh("d", 2))
    return low, high, expr.add(low, expr.scale(high, 40))


def under(form: Index, lo: int | None, hi: int | None, p: Poly) -> Poly:
    return algebra.multiply(interval(form, lo, hi), p)


def on_one_digit(p: Poly, low: Index, high: Index) -> tuple[Poly, Index]:
    """A term where both are digits of one variable, and that."""
    whole = expr.of_var(expr.fresh("p", 80))
    parts = {low.items[0][0].var: expr.modulo(whole, 40), high.items[0][0].var: expr.floor_div(whole, 40)}
    return algebra.substitute(p, parts), whole


@pytest.mark.parametrize(
    ("lo", "hi", "first", "last"), [(64, None, 72, 79), (56, 63, 64, 71), (None, 31, 0, 31), (65, None, 73, 79)]
)
def test_a_stride_of_a_part_is_that_of_the_whole(lo: int | None, hi: int | None, first: int, last: int) -> None:
    low, high, place = digits()
    p = under(expr.add(low, expr.scale(high, 32)), lo, hi, algebra.read(X, [place]))
    found, whole = on_one_digit(on_places(p), low, high)
    assert found is under(whole, first, last, algebra.read(X, [whole]))


def test_pieces_that_join_are_joined_and_others_stay() -> None:
    low, high, place = digits()
    element = algebra.read(X, [place])
    form = expr.add(low, expr.scale(high, 8))  # 0 to 31 of device 0, 0 to 23 of device 1
    apart = under(form, None, 31, element)
    assert on_places(apart) is apart
    rest = under(high, 0, 0, under(form, 32, 39, element))
    found, whole = on_one_digit(on_places(algebra.add(apart, rest)), low, high)
    assert found is under(whole, 0, 63, algebra.read(X, [whole]))


def test_a_window_keeps_its_stride() -> None:
    """Windows that overlap are read at their own stride: nothing lies at the other one."""
    low, high, _ = digits()
    at = expr.add(low, expr.scale(high, 38))
    p = under(at, 1, None, algebra.read(X, [expr.shift(at, -1)]))
    assert on_places(p) is p
