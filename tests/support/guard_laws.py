"""Instances of more laws of conditions, with those of `structural_laws`."""

from __future__ import annotations

from typing import Any

from hlo_verify.index import expr
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import Poly
from tests.support.expressions import Array
from tests.support.structural_laws import INSTANCES as INSTANCES
from tests.support.structural_laws import Case, at, instance


@instance("condition widened")
def _widened(case: Case) -> tuple[Poly, Array]:
    """What three devices keep of their two elements each: the owner of a place what is below it, some others all."""
    (x, xs), side = case.make(6, 3), case.random.choice((-1, 1))
    first = expr.scale(expr.floor_div(case.i, 2), 2)
    ahead, from_place = (expr.subtract(e, expr.scale(case.j, 3)) for e in (first, case.i))
    before, after = guards.interval(ahead, None, -2), guards.interval(ahead, 1, None)
    all_of_it, none = (before, after) if side < 0 else (after, before)
    below = algebra.multiply(guards.interval(ahead, -1, 0), guards.interval(from_place, None, -1))
    kept = algebra.multiply(algebra.add(below, all_of_it), at(x, case.i, case.j))

    def wanted(i: int, j: int) -> Any:
        start = i // 2 * 2 - 3 * j
        where = 0 if -1 <= start <= 0 else side * start
        keeps = where > 0 or (where == 0 and i < 3 * j)
        return xs[i, j] * keeps + 2 * (where < 0)

    return algebra.add(kept, algebra.scale(none, 2)), case.each(wanted)


@instance("pieces beside a gap")
def _beside_a_gap(case: Case) -> tuple[Poly, Array]:
    """Where one of three devices wrote its two elements, and perhaps one more, outside of another's window."""
    (x, xs), longer = case.make(6, 3), case.random.choice((0, 1))
    start = expr.scale(expr.modulo(expr.shift(case.j, 2), 3), 2)
    written = guards.interval(expr.subtract(case.i, start), 0, 1 + longer)
    own = expr.subtract(case.i, expr.scale(case.j, 2))
    there = algebra.multiply(written, at(x, case.i, case.j))
    pieces = (algebra.multiply(guards.interval(own, *side), there) for side in ((None, -1), (2, None)))

    def wanted(i: int, j: int) -> Any:
        return xs[i, j] * (0 <= i - (j + 2) % 3 * 2 <= 1 + longer) * (not 0 <= i - 2 * j <= 1)

    return algebra.add(*pieces), case.each(wanted)
