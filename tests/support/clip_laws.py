"""Instances of the laws of what people clip by: the greatest size of elements, and choices at a bound."""

from __future__ import annotations

import math
from collections.abc import Callable

from hlo_verify.terms import algebra, extrema
from hlo_verify.terms.at_bounds import chosen_at_bound
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE, MAXIMUM, MINIMUM, POSITIVE, SQRT, real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, number
from tests.support.expressions import Array
from tests.support.scalar_structures import some
from tests.support.structural_laws import Case, at, bound, instance


@instance("greatest of elements and of their opposites")
def _greatest_size(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), v, w = case.make(4), case.make(3), bound(4), bound(4)
    most = case.random.random() < 0.5
    function, reducer, other = (MAXIMUM, "max", "min") if most else (MINIMUM, "min", "max")
    best = extrema.reduce_extremum(reducer, [v], at(x, v))
    if case.random.random() < 0.5:
        opposite = algebra.scale(extrema.reduce_extremum(other, [w], at(x, w)), -1)
    else:
        opposite = extrema.reduce_extremum(reducer, [w], algebra.scale(at(x, w), -1))
    found = apply(function, (best, at(y, case.j), opposite))
    one = max if most else min
    return found, case.each(lambda i, j: one(*xs, *(-xs), ys[j]))


def _rooted(p: Poly) -> Poly:
    return apply(SQRT, (apply(real("abs"), (p,)),))


FUNCTIONS: list[tuple[Callable[[Poly], Poly], Callable[[int], float]]] = [
    (lambda p: apply(INVERSE, (p,)), lambda x: 1 / x if x else math.nan),
    (lambda p: apply(EXPONENTIAL, (algebra.scale(p, 2),)), lambda x: math.exp(2 * x)),
    (lambda p: algebra.expanded(p, algebra.add(p, number(3))), lambda x: x * (x + 3)),
    (lambda p: algebra.expanded(_rooted(p), p), lambda x: math.sqrt(abs(x)) * x),
]


@instance("choice at a bound")
def _at_bound(case: Case) -> tuple[Poly, Array]:
    """Of a sum of two, above or below a bound, by a condition or its opposite, and of the bound beside it."""
    (x, one), (y, other) = some(case, -3, -1, 1, 2), some(case, -2, 0, 1)
    k, at_most = case.random.choice((-2, 1, 4)), case.random.random() < 0.5
    term, value = case.random.choice(FUNCTIONS)
    p, total = algebra.add(x, algebra.scale(y, 2)), one + 2 * other
    is_near = case.random.random() < 0.3
    edge = term(number(k + 1 if is_near else k))
    above = apply(POSITIVE, (algebra.subtract(p, number(k)),))
    is_above = case.random.random() < 0.5
    condition = above if is_above else algebra.logical_not(above)
    whole, rest = (edge, term(p)) if at_most == is_above else (term(p), edge)
    wanted = value(k + 1 if is_near else k) if (total > k) == at_most else value(total)
    found = chosen_at_bound(condition, whole, rest)
    return algebra.select(condition, whole, rest) if found is None else found, case.each(lambda i, j: wanted)
