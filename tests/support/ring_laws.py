"""Instances of the laws of rings: what is added up of places round them."""

from __future__ import annotations

from typing import Any

from hlo_verify.index import expr
from hlo_verify.terms import algebra, rotations
from hlo_verify.terms.term import Poly
from tests.support.expressions import Array
from tests.support.structural_laws import Case, at, instance


@instance("turns of a ring")
def _ring(case: Case) -> tuple[Poly, Array]:
    n, (x, xs) = 6, case.make(6)
    turns = case.random.sample(range(n), case.random.choice((n - 1, n)))
    found = rotations.joined(algebra.add(*(at(x, expr.modulo(expr.shift(case.i, turn), n)) for turn in turns)))
    return found, case.each(lambda i, j: sum(xs[(i + turn) % n] for turn in turns))


@instance("ring of two")
def _two_places(case: Case) -> tuple[Poly, Array]:
    """A digit of two values, or of three, for which it would not hold; of some, what is there is taken twice."""
    radix, own, c = (case.random.choice(each) for each in ((2, 3), (0, 1), (1, 1, 2)))
    (x, xs), d = case.make(7, 5), expr.var("d", "", 6)
    e = expr.digit_of(expr.of_var(d), 1, radix)
    place = expr.add(case.j, expr.scale(e, own))
    here, there = (at(x, expr.shift(expr.scale(e, step), start), place) for step, start in ((2, 2), (-2, 4)))

    def value(i: int, j: int) -> Any:
        k = i % radix
        return xs[4 - 2 * k, j + own * k] + c * xs[2 + 2 * k, j + own * k]

    found = rotations.joined(algebra.add(there, algebra.scale(here, c)))
    return algebra.substitute(found, {d: case.i}), case.each(value)
