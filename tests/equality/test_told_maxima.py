"""A condition that says which element is the best says what the maximum is."""

from __future__ import annotations

import pytest

from hlo_verify.equality import cases
from hlo_verify.equality.told_maxima import with_told_maxima
from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ops.best import index_of_best
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.functions import EXPONENTIAL, INFINITY, INVERSE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ZERO, Poly, tensor

ROWS, COLUMNS = 3, 4
ROW, PLACE = expr.fresh("i", ROWS), expr.fresh("k", COLUMNS)
SCORES = tensor("argument", "x", "f32", (ROWS, COLUMNS))


def score(column: Index, row: Index | None = None) -> Poly:
    return algebra.read(SCORES, (expr.of_var(ROW) if row is None else row, column))


def best(extremum: str, value: Poly, v: expr.Var, *, first: Poly | None = None) -> Index:
    """The index of the best value in a row."""
    worst = algebra.scale(apply(INFINITY, ()), -1 if extremum == "max" else 1) if first is None else first
    found = index_of_best(extremum, [v], (value, algebra.of_index(expr.of_var(v))), (worst, ZERO), ("f32", "i32"))
    return algebra.as_index(found, 0, COLUMNS - 1)


def equal(extremum: str, of: str, *, ahead: int = 0, other: str | None = None, row: Index | None = None) -> bool:
    """Whether `[argmax v. x[i, v] = k] * exp(max v. x[i, v])` is seen to be `[argmax v. x[i, v] = k] * exp(x[i, k])`,
    or the like with some of it changed."""
    v = expr.fresh("v", COLUMNS)
    condition = guards.interval(
        expr.subtract(best(extremum, score(expr.of_var(v)), v), expr.of_var(PLACE)),
        None if of == "below" else ahead,
        ahead,
    )
    greatest = reduce_extremum(other or extremum, [v], score(expr.of_var(v), row))
    one, two = (apply(EXPONENTIAL, (p,)) for p in (greatest, score(expr.of_var(PLACE))))
    return cases.equal(algebra.multiply(condition, one), algebra.multiply(condition, two))


@pytest.mark.parametrize("extremum", ["max", "min"])
def test_the_best_is_at_the_place_that_is_told(extremum: str) -> None:
    assert equal(extremum, "there")


@pytest.mark.parametrize("extremum", ["max", "min"])
def test_others_are_not(extremum: str) -> None:
    assert not equal(extremum, "there", ahead=1)
    assert not equal(extremum, "below")
    assert not equal(extremum, "there", other="min" if extremum == "max" else "max")
    assert not equal(extremum, "there", row=expr.constant(0))


def test_what_may_be_no_number_or_is_not_the_best_of_all_is_not_told() -> None:
    """Of values that may be no numbers, and where an initial value takes part."""
    v = expr.fresh("v", COLUMNS)
    x = score(expr.of_var(v))
    quotient = apply(INVERSE, (x,))
    for value, first in ((quotient, None), (x, ZERO)):
        told = guards.interval(expr.subtract(best("max", value, v, first=first), expr.of_var(PLACE)), 0, 0).atom
        greatest = reduce_extremum("max", [v], value)
        assert told is not None
        assert with_told_maxima(greatest, [told]) is greatest
