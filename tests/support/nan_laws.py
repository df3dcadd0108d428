"""Instances of the laws of NaN that a program writes."""

from __future__ import annotations

import math
from typing import Any

from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import POSITIVE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.losses import separated
from hlo_verify.terms.no_number import nan, once
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, make_poly, number
from tests.support.expressions import Array
from tests.support.structural_laws import Case, at, bound, instance


def condition(case: Case) -> tuple[Poly, Array]:
    """A condition on places, or on an element, or that both hold."""
    lo, hi = sorted(case.random.randrange(6) for _ in range(2))
    held, which = guards.interval(case.i, lo, hi), case.random.randrange(3)
    (x, xs) = case.make(3)
    sign = apply(POSITIVE, (at(x, case.j),))
    p = (held, sign, algebra.multiply(held, sign))[which]
    return p, case.each(lambda i, j: int((which == 1 or lo <= i <= hi) and (which == 0 or xs[j] > 0)))


def nan_somewhere(case: Case) -> tuple[Poly, Array]:
    """A number that is none where a condition holds, or where one of two does."""
    (p, ps), (x, xs) = condition(case), case.make(6, 3)
    found, values = (
        algebra.select(p, nan(), at(x, case.i, case.j)),
        case.each(lambda i, j: [xs[i, j], math.nan][ps[i, j]]),
    )
    if case.random.random() < 0.3:
        q, qs = condition(case)
        found = algebra.select(q, nan(), found)
        values = case.each(lambda i, j: math.nan if qs[i, j] else values[i, j])
    return found, values


def other(case: Case) -> tuple[Poly, Array]:
    """A number, one that is none somewhere as well, or a condition as a number."""
    x, xs = case.make(6, 3)
    which = case.random.randrange(3)
    if which == 0:
        return at(x, case.i, case.j), case.each(lambda i, j: xs[i, j])
    return nan_somewhere(case) if which == 1 else condition(case)


@instance("sum with no number")
def _sum(case: Case) -> tuple[Poly, Array]:
    (f, fs), (g, gs) = nan_somewhere(case), other(case)
    c, k = (case.random.choice((1, -1, 2)) for _ in range(2))
    return algebra.add(algebra.scale(f, c), algebra.scale(g, k)), c * fs + k * gs


@instance("sum with no number")
def _less_itself(case: Case) -> tuple[Poly, Array]:
    (f, fs), (x, xs) = nan_somewhere(case), case.make(3)
    return algebra.subtract(algebra.add(f, at(x, case.j)), f), case.each(lambda i, j: xs[j] + fs[i, j] - fs[i, j])


@instance("product with no number")
def _product(case: Case) -> tuple[Poly, Array]:
    (f, fs), (g, gs) = nan_somewhere(case), other(case)
    return algebra.times(f, g), fs * gs


def sum_of_nan(case: Case) -> tuple[Poly, Array]:
    """0 or NaN: whether a row of elements has some that are positive."""
    (x, xs), v = case.make(6, 2), bound(2)
    found = reduce_sum([v], algebra.multiply(apply(POSITIVE, (at(x, case.i, v),)), nan()))
    return found, case.each(lambda i, j: math.nan if any(xs[i] > 0) else 0)


@instance("multiple of what is 0 or no number")
def _multiple(case: Case) -> tuple[Poly, Array]:
    (f, fs), (x, _) = sum_of_nan(case), case.make(3)
    c = case.random.choice((2, -1, -3))
    by: Any = algebra.scale(at(x, case.j), c) if case.random.random() < 0.5 else number(c)
    return algebra.times(by, f), case.each(lambda i, j: fs[i, j] * 0)


@instance("multiple of what is 0 or no number")
def _selected_multiple(case: Case) -> tuple[Poly, Array]:
    """`f - [p] f`, and twice what one condition selects, less what another one does."""
    (f, fs), (p, ps), (q, qs) = sum_of_nan(case), condition(case), condition(case)
    less = case.random.choice((1, 2))
    held = algebra.subtract(algebra.scale(p, 2), algebra.scale(q, less))
    found = make_poly(tuple(separated(once(algebra.scale(algebra.multiply(held, f), -1)))))
    return found, case.each(lambda i, j: fs[i, j] if 2 * ps[i, j] != less * qs[i, j] else 0)
