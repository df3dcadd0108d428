"""A term has none of the signs that are not among those it may have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra, guards, signs, sums
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE, real, typed
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, ZERO, Poly, number, tensor
from tests.support.expressions import data, evaluated, many, poly, space

SIZE = 8
ROW, KEY = expr.of_var(expr.var("x", 0, SIZE)), expr.var("y", 0, SIZE)


@many
@given(draws=st.data())
def test_signs_of_values(draws: st.DataObject) -> None:
    where, known = space(draws.draw, 2), data(draws.draw)
    p = poly(draws.draw, where, known).it
    squared = algebra.multiply(p, p)
    for term in (p, squared, algebra.add(squared, ONE)):
        found = signs.of(term)
        for value in np.unique(np.sign(evaluated(term, where, known.evaluator).astype(float))):
            assert found & {-1: signs.NEGATIVE, 0: signs.ZERO, 1: signs.POSITIVE}[int(value)], term


def exponential_of_score() -> Poly:
    scores = algebra.read(tensor("argument", "scores", "f32", (SIZE, SIZE)), (ROW, expr.of_var(KEY)))
    return apply(EXPONENTIAL, (scores,))


def mask(make: Callable[[Index], Poly], there: Callable[[], Poly], elsewhere: Callable[[], Poly]) -> Poly:
    """The sum over all keys of one term under a condition on how far a key is from the row, of another elsewhere."""
    condition = make(expr.subtract(expr.of_var(KEY), ROW))
    return sums.reduce_sum([KEY], algebra.select(condition, there(), elsewhere()))


def before(apart: Index) -> Poly:
    return guards.interval(apart, None, -1)


def next_two(apart: Index) -> Poly:
    return guards.interval(apart, 1, 2)


def nonnegative() -> Poly:
    return apply(real("abs"), (algebra.read(tensor("argument", "y", "f32", (SIZE,)), (expr.of_var(KEY),)),))


@pytest.mark.parametrize("condition", [before, next_two])
@pytest.mark.parametrize(
    ("elsewhere", "is_positive"),
    [
        (lambda: number(3), True),
        (lambda: apply(EXPONENTIAL, (number(-(10**30)),)), True),
        (lambda: apply(real("logistic"), (nonnegative(),)), True),
        (nonnegative, False),
        (lambda: number(-1), False),
        (lambda: ZERO, False),
    ],
    ids=["a number", "exp of one", "of each key", "not negative", "negative", "nothing"],
)
def test_a_sum_is_positive_where_all_of_its_elements_are(
    condition: Callable[[Index], Poly], elsewhere: Callable[[], Poly], is_positive: bool
) -> None:
    p = mask(condition, exponential_of_score, elsewhere)
    assert len(p.items) > 1 or not is_positive  # neither part is positive by itself
    assert (signs.of(p) == signs.POSITIVE) is is_positive
    assert (not apply(INVERSE, (p,)).doubt) is is_positive


@pytest.mark.parametrize(
    ("least", "found"), [(1, signs.POSITIVE), (4, signs.POSITIVE), (5, signs.ZERO | signs.POSITIVE)]
)
def test_conditions_that_leave_some_out(least: int, found: int) -> None:
    """Of eight keys the first or the last is four away from each row, and neither is five away from the fourth."""
    apart = expr.subtract(expr.of_var(KEY), ROW)
    before, after = guards.interval(apart, None, -least), guards.interval(apart, least, None)
    elements = algebra.add(algebra.multiply(before, exponential_of_score()), algebra.multiply(after, number(2)))
    assert signs.of(sums.reduce_sum([KEY], elements)) == found


BITS = (signs.NEGATIVE, signs.ZERO, signs.POSITIVE, signs.BEYOND)


def sign(z: complex) -> int:
    return signs.BEYOND if z.imag else (signs.NEGATIVE, signs.ZERO, signs.POSITIVE)[int(np.sign(z.real)) + 1]


def test_sums_and_products_of_signs() -> None:
    """Of real and of complex numbers: all signs that there are, and of what is known no others."""
    numbers = [complex(a, b) for a in (-2, -1, 0, 1, 2) for b in (-1, 0, 1)]
    for table, combine in ((signs.ADDED, complex.__add__), (signs.MULTIPLIED, complex.__mul__)):
        for a in BITS:
            for b in BITS:
                every = {sign(combine(x, y)) for x in numbers for y in numbers if (sign(x), sign(y)) == (a, b)}
                assert table[a][b] == sum(every)


def test_signs_of_complex_numbers() -> None:
    z, x = (
        algebra.read(tensor("argument", name, kind, ()), ()) for name, kind in (("z", "complex<f32>"), ("x", "f32"))
    )
    of_real, of_complex = (algebra.add(algebra.multiply(p, p), ONE) for p in (x, z))
    assert signs.of(of_real) == signs.POSITIVE and signs.of(of_complex) == signs.ANY
    assert signs.of(apply(INVERSE, (of_complex,))) == signs.ANY & ~signs.ZERO
    summed = sums.reduce_sum(
        [KEY], algebra.multiply(of_complex, algebra.read(tensor("argument", "y", "f32", (SIZE,)), (expr.of_var(KEY),)))
    )
    assert signs.of(summed) == signs.ANY
    part = apply(typed("real", ("complex",), "real"), (z,))
    assert signs.of(algebra.multiply(part, part)) == signs.ZERO | signs.POSITIVE
