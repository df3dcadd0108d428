"""Instances of the laws of the signs that sums have together."""

from __future__ import annotations

from math import exp

from hlo_verify.index import expr
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import EXPONENTIAL
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, number
from tests.support.expressions import Array
from tests.support.structural_laws import Case, at, bound, instance, is_positive


@instance("sums that have a sign together")
def _less_some(case: Case) -> tuple[Poly, Array]:
    """Positive elements less some of them, or less a multiple of some, with a number that is no greater than one."""
    (x, xs), v, w = case.make(4), bound(4), bound(4)
    times, gap = case.random.choice((1, 1, 2, 3)), case.random.choice((-1, 0, 1))
    chosen = guards.interval(expr.subtract(expr.of_var(w), case.i), None, gap)
    whole = reduce_sum([v], apply(EXPONENTIAL, (at(x, v),)))
    part = reduce_sum([w], algebra.multiply(chosen, apply(EXPONENTIAL, (at(x, w),))))
    total = algebra.add(number(1), whole, algebra.scale(part, -times))

    def value(i: int) -> float:
        return 1 + sum((1 - times * (k - i <= gap)) * exp(xs[k]) for k in range(4))

    return is_positive(total), case.each(lambda i, j: int(value(i) > 0))
