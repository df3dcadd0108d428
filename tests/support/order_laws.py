"""Instances of laws of order: extrema of increasing functions, a factor of which has either sign as a user states it,
and how many integers lie below another."""

from __future__ import annotations

import math

import numpy as np

from hlo_verify.index import expr
from hlo_verify.program.allowed_values import Values
from hlo_verify.terms import algebra, extrema, guards
from hlo_verify.terms.functions import EXPONENTIAL
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly
from tests.support.count_laws import looked_up
from tests.support.expressions import Array
from tests.support.structural_laws import Case, at, bound, instance


@instance("extremum of an increasing function")
def _increasing(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), (a, _), v = case.make(4), case.make(3), case.make(), bound(4)
    sign = case.random.choice((-1, 1))
    a.assumed = Values(None, -1) if sign < 0 else Values(1, None)
    case.known.tensors[a] = np.asarray(factor := sign * case.random.randint(1, 3), dtype=object)
    power = apply(EXPONENTIAL, (at(x, v),)) if case.random.random() < 0.5 else at(x, v)
    each = [math.exp(value) if power is not at(x, v) else value for value in xs]
    p = algebra.add(algebra.multiply(at(a), power), at(y, case.j))
    least = case.random.random() < 0.5
    found = extrema.reduce_extremum("min" if least else "max", [v], p)
    return found, case.each(lambda i, j: (min if least else max)(factor * value for value in each) + ys[j])


@instance("place in order")
def _place(case: Case) -> tuple[Poly, Array]:
    """How many elements are at most, or at least, some integer, between two places of which the last may be none."""
    (e, es), v, sign = looked_up(case, 6, 3), bound(6), case.random.choice((1, -1))
    own = algebra.as_index(algebra.read(e, [expr.of_var(v)]), -128, 127)
    beside = expr.scale(expr.subtract(own, expr.shift(case.j, shift := case.random.randrange(-1, 2))), sign)
    turned = case.random.choice((1, -1))
    ends = [None, 0] if turned == 1 else [0, None]
    count = reduce_sum([v], guards.interval(expr.scale(beside, turned), *ends))
    far, wide = case.random.choice((-1, 0, 0, 1)), case.random.choice((None, 0, 2))
    form = expr.subtract(algebra.as_index(count, -(1 << 31), (1 << 31) - 1), expr.shift(case.i, far))
    least = None if wide is None else -wide
    found = guards.interval(form, least, 0) if case.random.random() < 0.5 else guards.interval(form, 0, wide)
    is_up = found is guards.interval(form, 0, wide)

    def held(i: int, j: int) -> int:
        gap = sum((sign * (k - j - shift)) <= 0 for k in es) - i - far
        low, high = (0, wide) if is_up else (least, 0)
        return int((low is None or gap >= low) and (high is None or gap <= high))

    return found, case.each(held)


@instance("place in order")
def _place_of_two_dimensions(case: Case) -> tuple[Poly, Array]:
    """Elements of rows, of which each row has the same in columns of any order."""
    (e, es), u, v = case.make(3, 2, dtype="i8"), bound(3), bound(2)
    case.known.tensors[e] = es = es * 0 + [[case.random.randrange(-1, 4) for _ in range(2)] for _ in range(3)]
    own = algebra.as_index(algebra.read(e, [expr.of_var(u), expr.of_var(v)]), -128, 127)
    bounds = [u, v] if case.random.random() < 0.5 else [v, u]
    count = reduce_sum(bounds, guards.interval(expr.subtract(own, case.j), None, 0))
    form = expr.subtract(algebra.as_index(count, -(1 << 31), (1 << 31) - 1), case.i)
    return guards.interval(form, None, 0), case.each(lambda i, j: int((es <= j).sum() <= i))


@instance("how many are below")
def _below(case: Case) -> tuple[Poly, Array]:
    """Of as many values as an integer may be, or of less: those below it, which may be negative, or not."""
    (e, _), n = case.make(6, dtype="i8"), case.random.choice((2, 3, 5))
    least = case.random.choice((0, -2))
    case.known.tensors[e] = es = case.known.tensors[e] * 0 + [case.random.randrange(least, 4) for _ in range(6)]
    v, own = bound(n), algebra.as_index(algebra.read(e, [case.i]), least, 3)
    sign = case.random.choice((1, -1))
    form = expr.scale(expr.subtract(expr.of_var(v), own), sign)
    is_least = case.random.random() < 0.5
    found = reduce_sum([v], guards.interval(form, 0, None) if is_least else guards.interval(form, None, -1))
    return found, case.each(lambda i, j: sum((sign * (k - es[i]) >= 0) == is_least for k in range(n)))
