"""Instances of the laws of what all choices have, where a choice is told by several variables, or within an operand."""

from __future__ import annotations

import math

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.terms import algebra, extrema, guards
from hlo_verify.terms.functions import INFINITY, MAXIMUM
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly
from tests.support.expressions import Array
from tests.support.structural_laws import Case, at, bound, instance


def devices(case: Case) -> tuple[Var, Var, Index, Index, int]:
    """Two axes of a mesh, the number of a device, its number along the axes in the other order, and the last of those
    that have something of their own."""
    v, w = bound(2), bound(3)
    a, b = expr.of_var(v), expr.of_var(w)
    return v, w, expr.add(expr.scale(a, 3), b), expr.add(a, expr.scale(b, 2)), case.random.choice((0, 1, 4))


def chosen(form: Index, last: int, first: Poly, others: Poly) -> Poly:
    on, off = guards.interval(form, None, last), guards.interval(form, last + 1, None)
    return algebra.add(algebra.multiply(on, first), algebra.multiply(off, others))


@instance("extremum of what all choices have")
def _greatest_by_device(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys) = case.make(6), case.make(3)
    v, w, number, other, last = devices(case)
    own = apply(MAXIMUM, (at(x, other), at(y, case.j)))
    found = extrema.reduce_extremum("max", [v, w], chosen(number, last, own, at(x, other)))
    return found, case.each(lambda i, j: max(*xs, ys[j]))


@instance("extremum of what all choices have")
def _greatest_of_some_by_device(case: Case) -> tuple[Poly, Array]:
    """What hangs on the device is no operand of all: only those that have it count."""
    (x, xs), (y, ys) = case.make(6), case.make(6)
    v, w, number, other, last = devices(case)
    own = apply(MAXIMUM, (at(x, other), at(y, other)))
    found = extrema.reduce_extremum("max", [v, w], chosen(number, last, own, at(x, other)))
    held = [ys[a + 2 * b] for a in range(2) for b in range(3) if 3 * a + b <= last]
    return found, case.each(lambda i, j: max(*xs, *held))


@instance("extremum of what all choices have")
def _greatest_of_updates(case: Case) -> tuple[Poly, Array]:
    """An update that lands at one place alone; the first device has what was there before, too."""
    (x, xs), (y, ys), v = case.make(4), case.make(6), bound(4)
    lands = guards.interval(expr.subtract(case.i, expr.of_var(v)), 0, 0)
    none = algebra.scale(apply(INFINITY, ()), -1)
    update = algebra.select(lands, at(x, v), none)
    first = apply(MAXIMUM, (at(y, case.i), update))
    found = extrema.reduce_extremum("max", [v], chosen(expr.of_var(v), 0, first, update))
    return found, case.each(lambda i, j: max(ys[i], xs[i]) if i < 4 else ys[i])


@instance("product of what all choices have")
def _product_by_device(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys) = case.make(6), case.make(3)
    v, w, number, other, last = devices(case)
    own = algebra.multiply(at(x, other), at(y, case.j))
    found = extrema.reduce_product([v, w], chosen(number, last, own, at(x, other)))
    return found, case.each(lambda i, j: math.prod(xs) * ys[j] ** (last + 1))


@instance("product of what all choices have")
def _product_of_sums(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), (z, zs), v = case.make(4), case.make(4), case.make(4), bound(4)
    both = algebra.add(at(x, v), at(y, v))
    choice = chosen(expr.of_var(v), 1, algebra.multiply(at(z, v), both), algebra.scale(both, 3))
    found = extrema.reduce_product([v], choice)
    return found, case.each(lambda i, j: 9 * zs[0] * zs[1] * math.prod(a + b for a, b in zip(xs, ys, strict=True)))


@instance("extremum of what is at one place")
def _at_one_place(case: Case) -> tuple[Poly, Array]:
    """Of what hangs on the place too, of either sign, at a place that may be none; of one value alone, no 0."""
    (x, xs), (y, ys) = case.make(6), case.make(4)
    n, c, reducer = case.random.choice((4, 4, 1)), case.random.choice((1, -1)), case.random.choice(("max", "min"))
    v, t = bound(n), expr.subtract(case.i, case.j)
    at_place = guards.interval(expr.scale(expr.subtract(expr.of_var(v), t), c), 0, 0)
    of = algebra.add(at(x, case.i), at(y, v))
    best = max if reducer == "max" else min
    others = [] if n == 1 else [0]

    def value(i: int, j: int) -> int:
        return best([*others, *((xs[i] + ys[i - j] if 0 <= i - j < n else 0,))])

    return extrema.reduce_extremum(reducer, [v], algebra.multiply(at_place, of)), case.each(value)
