"""Instances of the laws of whole numbers: what is rounded, and what an integer is made of."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hlo_verify.index import expr
from hlo_verify.program.allowed_values import Values
from hlo_verify.terms import algebra, extrema
from hlo_verify.terms.functions import ABS, INVERSE, MAXIMUM, MINIMUM, real, truncate
from hlo_verify.terms.laws import apply
from hlo_verify.terms.rounding_laws import ROUNDED
from hlo_verify.terms.term import Poly, Tensor, number, tensor
from tests.support.expressions import Array
from tests.support.structural_laws import Case, at, bound, instance


def as_integer(value: int | Fraction | float) -> int:
    return max(-128, min(127, int(value)))


@instance("integer of what is rounded")
def _quantised(case: Case) -> tuple[Poly, Array]:
    """What is divided by the greatest of all, of some, of its row or of others, or by a part of it or some number."""
    (x, xs), v, w = case.make(6, 3), bound(6), bound(3)
    case.known.tensors[x] = xs = xs + case.random.choice((-20, 20))
    by, over = case.random.choice((100, 127, 128, Fraction(255, 2), 200)), case.random.choice(("all", "row", "one"))
    (u, us) = case.make(6, 3)
    case.known.tensors[u] = us = us + 30
    source = case.random.choice((x, x, x, u))
    places = {"all": (v, w), "row": (case.i, w), "one": (expr.constant(0), expr.constant(0))}[over]
    most = extrema.reduce_extremum(
        "max", [place for place in places if place in (v, w)], apply(ABS, (at(source, *places),))
    )
    values = abs(case.known.tensors[source])
    part, least = case.random.choice(((1, 0), (Fraction(1, 4), Fraction(1, 8)), (Fraction(1, 9), 1), (3, 60)))
    scale = apply(MAXIMUM, (algebra.scale(most, part), number(least))) if least else algebra.scale(most, part)
    p = algebra.scale(algebra.multiply(at(x, case.i, case.j), apply(INVERSE, (scale,))), by * part)
    name = case.random.choice((*ROUNDED, None))
    if name is not None:
        p = apply(real(name), (p,))

    def value(i: int, j: int) -> int:
        greatest = {"all": values.max(), "row": values[i].max(), "one": values[0, 0]}[over]
        exact = Fraction(by) * part * Fraction(xs[i, j]) / max(part * Fraction(greatest), Fraction(least))
        return as_integer(exact if name is None else ROUNDED[name](exact))

    return apply(truncate("i8"), (p,)), case.each(value)


@instance("integer of what is rounded")
def _clipped(case: Case) -> tuple[Poly, Array]:
    (x, xs), by = case.make(6), case.random.choice((Fraction(1, 2), 7, Fraction(171, 2)))
    low, high = case.random.choice((-200, -128, -5)), case.random.choice((3, 127, 128, Fraction(11, 2)))
    name, first = case.random.choice((*ROUNDED, None)), case.random.choice((True, False))

    def near(p: Poly) -> Poly:
        return p if name is None else apply(real(name), (p,))

    def clipped(p: Poly) -> Poly:
        return apply(MAXIMUM, (number(low), apply(MINIMUM, (number(high), p))))

    def value(i: int, j: int) -> int:
        exact = by * xs[i]
        if first and name is not None:
            exact = ROUNDED[name](Fraction(exact))
        exact = max(Fraction(low), min(Fraction(high), Fraction(exact)))
        return as_integer(ROUNDED[name](exact) if not first and name is not None else exact)

    p = algebra.scale(at(x, case.i), by)
    return apply(truncate("i8"), (clipped(near(p)) if first else near(clipped(p)),)), case.each(value)


@instance("integer of what is not negative")
def _bounded(case: Case) -> tuple[Poly, Array]:
    """What is said to be in a range, which may begin below 0 or go beyond the type."""
    least, span = case.random.choice((-1, 0, 2)), case.random.choice((1, 7, 200))
    excluded = (False, case.random.choice((True, False)))
    (x, xs), by = _in_range(case, Values(least, least + span, excluded)), case.random.choice((1, Fraction(1, 2), 2))
    p = algebra.scale(at(x, case.i), by)
    return apply(truncate("i8"), (p,)), case.each(lambda i, j: as_integer(by * xs[i]))


@instance("integer of what is rounded")
def _clamped_floor(case: Case) -> tuple[Poly, Array]:
    """What a number in a range is rounded to, bounded as a float, as an integer, and added to."""
    (x, xs), by = _in_range(case, Values(case.random.choice((-2, 0)), 4)), case.random.choice((1, Fraction(3, 2)))
    low, high, more = case.random.choice((-3, 0, 1)), case.random.choice((2, 5, 9)), case.random.choice((0, 2))
    name = case.random.choice(("floor", "round_nearest_even"))
    p = algebra.add(apply(real(name), (algebra.scale(at(x, case.i), by),)), number(more))
    p = apply(MINIMUM, (number(high), apply(MAXIMUM, (number(low), p))))
    return apply(truncate("i8"), (p,)), case.each(
        lambda i, j: min(high, max(low, ROUNDED[name](Fraction(by * xs[i])) + more))
    )


def _in_range(case: Case, values: Values) -> tuple[Tensor, Array]:
    """A tensor whose elements have those values, some of them the least, or near to the greatest."""
    assert values.least is not None
    least = Fraction(values.least)
    most = least + 9 if values.greatest is None else Fraction(values.greatest)
    most -= Fraction(1, 7) * values.excluded[1]
    x = tensor("argument", "x", "f32", (6,), assumed=values)
    chosen = least, most, (least + most) / 2, least + Fraction(2, 3)
    numbers = np.array([case.random.choice(chosen) for _ in range(6)])
    case.known.tensors[x] = numbers
    return x, numbers
