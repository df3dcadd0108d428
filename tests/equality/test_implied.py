"""Conditions that hold wherever others do, and such as only seem to."""

from __future__ import annotations

import pytest

import hlo_verify.ops  # noqa: F401 (terms are made of what it loads)
from hlo_verify.equality.implied import absorbed, is_implied, is_sum_under, where_positive
from hlo_verify.index import expr
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.extrema import reduce_boolean
from hlo_verify.terms.functions import EXPONENTIAL
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, Atom, Poly, tensor

D, J, K = expr.var("d", "", 2), expr.var("j", "", 4), expr.var("k", "", 4)
X = tensor("argument", "x", "f32", (8, 3))
PART = expr.scale(expr.of_var(D), 4)


def masked(row: int, place: expr.Index) -> Poly:
    """That a place comes before the n-th, by more than a number."""
    return guards.interval(expr.subtract(expr.of_var(expr.var("n", "", 9)), place), 1 + row, None)


def atom(p: Poly) -> Atom:
    assert p.atom is not None
    return p.atom


def of_part(size: int = 4, start: int = 0) -> Poly:
    """Whether any of a part's first conditions holds."""
    v = expr.var("v", "", size)
    return reduce_boolean("or", [v], masked(0, expr.add(PART, expr.shift(expr.of_var(v), start))))


def test_one_of_a_part_implies_that_there_is_any() -> None:
    here = masked(0, expr.add(PART, expr.of_var(J)))
    assert is_implied(atom(of_part()), (atom(here),))
    assert absorbed(algebra.multiply(of_part(), here), ()) is here


@pytest.mark.parametrize("asked", [of_part(3, 1), of_part(4, 1), masked(1, PART)])
def test_it_implies_nothing_of_others(asked: Poly) -> None:
    here = masked(0, expr.add(PART, expr.of_var(J)))
    assert not is_implied(atom(asked), (atom(here),))


def test_a_sum_under_conditions_is_positive_where_any_holds() -> None:
    place = expr.add(PART, expr.of_var(K))
    positive = apply(EXPONENTIAL, (algebra.read(X, (place, expr.constant(0))),))
    summed = reduce_sum([K], algebra.multiply(masked(0, place), positive))
    assert where_positive(summed) is of_part()
    assert is_sum_under(atom(summed), atom(of_part()))
    assert not is_sum_under(atom(summed), atom(of_part(4, 1)))
    assert absorbed(algebra.multiply(of_part(), summed), ()) is summed


def test_of_a_sum_of_what_may_be_negative_nothing_is_said() -> None:
    place = expr.add(PART, expr.of_var(K))
    other = algebra.read(X, (place, expr.constant(0)))
    assert where_positive(reduce_sum([K], algebra.multiply(masked(0, place), other))) is None


def test_what_is_excluded_is_nothing() -> None:
    none = algebra.logical_not(of_part())
    here = masked(0, expr.add(PART, expr.of_var(J)))
    assert not absorbed(algebra.multiply(none, here), ()).items
    assert absorbed(ONE, (atom(none),)) is ONE
