"""Instances of the law of products of exponentials: beside other factors, and of what is chosen."""

from __future__ import annotations

import math

from hlo_verify.index import expr
from hlo_verify.terms import algebra, extrema
from hlo_verify.terms.functions import EXPONENTIAL
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, Poly
from tests.support.expressions import Array
from tests.support.shared_operand_laws import chosen
from tests.support.structural_laws import Case, at, bound, instance


def exponential(p: Poly) -> Poly:
    return apply(EXPONENTIAL, (p,))


@instance("product of exponentials")
def _beside_others(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), v, times = case.make(4, 6), case.make(4), bound(4), case.random.choice((-2, 1, 3))
    factors = algebra.multiply(exponential(algebra.scale(at(x, v, case.i), times)), at(y, v))
    found = extrema.reduce_product([v], algebra.scale(factors, 2))
    return found, case.each(lambda i, j: math.prod(2 * math.exp(times * xs[k, i]) * ys[k] for k in range(4)))


@instance("product of exponentials")
def _up_to_a_place(case: Case) -> tuple[Poly, Array]:
    (x, xs), v = case.make(6, 3), bound(6)
    ahead, last = expr.subtract(expr.of_var(v), case.i), case.random.choice((-1, 0, 1))
    found = extrema.reduce_product([v], chosen(ahead, last, exponential(at(x, v, case.j)), ONE))
    return found, case.each(lambda i, j: math.exp(sum(xs[k, j] for k in range(6) if k - i <= last)))


@instance("product of exponentials")
def _all_choices_are_one(case: Case) -> tuple[Poly, Array]:
    """Of several factors, with a variable that nothing hangs on."""
    (x, xs), (y, ys), v, w = case.make(4), case.make(4, 3), bound(4), bound(2)
    own = algebra.multiply(exponential(at(x, v)), exponential(algebra.scale(at(y, v, case.j), -1)))
    found = extrema.reduce_product([v, w], own)
    return found, case.each(lambda i, j: math.exp(2 * sum(xs[k] - ys[k, j] for k in range(4))))
