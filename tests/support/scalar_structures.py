"""Instances of the laws of products of roots, inverses and signs, of signs of sums, and of choices by comparing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hlo_verify.index import expr
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.comparing import chosen
from hlo_verify.terms.definitions import named
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE, LOG, MAXIMUM, MINIMUM, POSITIVE, SQRT, real
from hlo_verify.terms.half_lines import soft_threshold
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, ZERO, Poly, number
from tests.support.expressions import Array
from tests.support.structural_laws import Case, at, bound, instance, is_positive, logarithm


def some(case: Case, *values: int) -> tuple[Poly, int]:
    """An element that is one of some values."""
    source, _ = case.make()
    value = case.random.choice(values)
    case.known.tensors[source] = np.asarray(value, dtype=object)
    return at(source), value


@instance("powers of one base")
def _roots(case: Case) -> tuple[Poly, Array]:
    x, value = some(case, -4, 4, 9)
    base = x if case.random.random() < 0.5 else apply(real("abs"), (x,))
    value = value if base is x else abs(value)
    inverse = apply(INVERSE, (apply(SQRT, (base,)),))
    wanted = 1 / value if value > 0 else math.nan
    return algebra.expanded(inverse, inverse), case.each(lambda i, j: wanted)


@instance("powers of a positive base")
def _cancelled(case: Case) -> tuple[Poly, Array]:
    x, value = some(case, 0, 1, 3)
    base = apply(real("abs"), (x,))
    if case.random.random() < 0.5:
        base, value = named(algebra.add(base, number(1)), ""), value + 1
    inverse = apply(INVERSE, (apply(SQRT, (base,)),))
    wanted = math.sqrt(value) if value else math.nan
    return algebra.expanded(base, inverse), case.each(lambda i, j: wanted)


@instance("powers of a positive base")
def _cancelled_sum(case: Case) -> tuple[Poly, Array]:
    (x, one), (y, other) = some(case, 0, 2), some(case, -1, 0)
    sides = [apply(real("abs"), (each,)) for each in (x, y)]
    base, value = algebra.add(*sides), one + abs(other)
    if case.random.random() < 0.5:
        base, value = algebra.add(base, number(3)), value + 3
    top = algebra.times(algebra.scale(x, 5), apply(INVERSE, (apply(SQRT, (base,)),)))
    wanted = 10 * one * math.sqrt(value) if value else math.nan
    return algebra.times(top, algebra.scale(base, 2)), case.each(lambda i, j: wanted)


@instance("square of a root")
def _squared(case: Case) -> tuple[Poly, Array]:
    x, value = some(case, -1, 1, 3)
    square = case.random.random() < 0.5
    base = algebra.add(algebra.multiply(x, x) if square else x, number(Fraction(1, 2)))
    value = (value**2 if square else value) + Fraction(1, 2)
    root = apply(SQRT, (base,))
    return algebra.expanded(root, root), case.each(lambda i, j: value if value > 0 else math.nan)


@instance("square of an absolute value")
def _absolute_square(case: Case) -> tuple[Poly, Array]:
    x, value = some(case, -3, 0, 2)
    found, n = ONE, case.random.randrange(2, 5)
    for _ in range(n):
        found = algebra.times(found, apply(real("abs"), (x,)))
    return found, case.each(lambda i, j: abs(value) ** n)


@instance("what its sign selects")
def _positive_part(case: Case) -> tuple[Poly, Array]:
    x, value = some(case, -3, 0, 2)
    n = case.random.randrange(1, 4)
    found = algebra.multiply(apply(POSITIVE, (x,)), algebra.power(x, n))
    return found, case.each(lambda i, j: max(value, 0) ** n)


@instance("a soft threshold")
def _soft_threshold(case: Case) -> tuple[Poly, Array]:
    x, value = some(case, -3, 0, 1, 4)
    t, k = case.random.choice((-1, 1, 2)), case.random.choice((-2, 1, 3))
    size = algebra.add(algebra.scale(apply(real("abs"), (x,)), abs(k)), number(-t))
    sign = apply(real("sign"), (algebra.scale(x, k),))
    factors = [sign, apply(MAXIMUM, (ZERO, size))]
    case.random.shuffle(factors)
    found = soft_threshold(*factors)
    wanted = np.sign(k * value) * max(abs(k * value) - t, 0)
    return algebra.multiply(*factors) if found is None else found, case.each(lambda i, j: wanted)


@instance("choice by comparison")
def _chosen(case: Case) -> tuple[Poly, Array]:
    (x, one), (y, other) = some(case, -3, 0, 2), some(case, -3, 0, 3)
    compared = apply(POSITIVE, (algebra.scale(algebra.subtract(x, y), case.random.choice((2, -2))),))
    condition = compared if case.random.random() < 0.5 else algebra.logical_not(compared)
    found = chosen(condition, x, y)
    assert found is not None
    held = case.value(condition)
    return found, case.each(lambda i, j: one if held[i, j] else other)


@instance("choice by comparison")
def _chosen_inverse(case: Case) -> tuple[Poly, Array]:
    x, value = some(case, -3, 0, 1, 2)
    condition = apply(POSITIVE, (algebra.subtract(x, ONE),))
    found = chosen(condition, apply(INVERSE, (x,)), ONE)
    assert found is not None
    return found, case.each(lambda i, j: Fraction(1, value) if value > 1 else 1)


@instance("sign by bounds")
def _bounded(case: Case) -> tuple[Poly, Array]:
    """A number and functions between -1 and 1, which may or may not make up for it."""
    x, xs = case.make(6)
    name, f = case.random.choice([("tanh", math.tanh), ("sine", math.sin), ("cosine", math.cos)])
    n, k = case.random.choice((1, 2)), case.random.choice((1, 1, -1, Fraction(1, 2)))
    of = apply(real(name), (at(x, case.i),))
    total = algebra.add(number(k), algebra.scale(algebra.power_of(of, n), -1))
    return is_positive(total), case.each(lambda i, j: int(k - f(xs[i]) ** n > 0))


@instance("sign of a difference of exponentials")
def _exponentials(case: Case) -> tuple[Poly, Array]:
    """`k*c*exp(f) - c*exp(g)`, where f - g is what is a square, or its opposite, with something added, or is not."""
    x, xs = case.make(6)
    k, n = case.random.choice((1, 1, 2, Fraction(1, 2))), case.random.choice((0, 1, -1, Fraction(1, 2)))
    m, c = case.random.choice((1, -1)), case.random.choice((1, -1))
    y = at(x, case.i)
    of = case.random.choice((algebra.power_of(y, 2), y))
    power = of if case.random.random() < 0.5 else algebra.add(of, number(n))
    is_squared, is_more = of is not y, power is not of
    one = apply(EXPONENTIAL, (algebra.add(algebra.scale(power, m), y),))
    total = algebra.scale(algebra.subtract(algebra.scale(one, k), apply(EXPONENTIAL, (y,))), c)

    def wanted(v: int | Fraction) -> int:
        exponent = m * ((v * v if is_squared else v) + (n if is_more else 0))
        return int(c * (float(k) * math.exp(float(exponent)) - 1) > 0)

    return is_positive(total), case.each(lambda i, j: wanted(xs[i]))


@instance("sign of a numerator")
def _numerator(case: Case) -> tuple[Poly, Array]:
    """`1 - k/(m + exp(x))`, whose denominator is positive, or may not be."""
    x, xs = case.make(6)
    m, k = case.random.choice(((1, 1), (0, 1), (1, 2), (-2, -2)))
    bottom = algebra.add(number(m), apply(EXPONENTIAL, (at(x, case.i),)))
    total = algebra.subtract(number(1), algebra.scale(apply(INVERSE, (bottom,)), k))
    return is_positive(total), case.each(lambda i, j: int(1 - k / (m + math.exp(xs[i])) > 0))


@instance("logarithm of two exponentials")
def _soft_maximum(case: Case) -> tuple[Poly, Array]:
    """Written with a maximum or a minimum, of terms that may be equal, some multiple of it, beside other terms."""
    (x, one), (y, other) = some(case, -2, 0, 3), some(case, -2, 1, 3)
    k, c = case.random.choice((1, 2)), case.random.choice((1, -1, Fraction(1, 2)))
    a, b = algebra.scale(x, k), y if case.random.random() < 0.5 else number(other)
    apart = apply(real("abs"), (algebra.subtract(a, b),))
    beside = apply(LOG, (algebra.add(number(1), apply(EXPONENTIAL, (algebra.scale(apart, -1),))),))
    if case.random.random() < 0.5:
        written = algebra.add(apply(MAXIMUM, (a, b)), beside)
    else:
        written = algebra.add(apply(MINIMUM, (a, b)), apart, beside)
    wanted = float(c) * math.log(math.exp(k * one) + math.exp(other)) + one
    return algebra.add(algebra.scale(written, c), x), case.each(lambda i, j: wanted)


@instance("logarithm of two exponentials")
def _no_soft_maximum(case: Case) -> tuple[Poly, Array]:
    """Of other terms than those that are apart by that, or of another multiple, nothing is joined."""
    (x, one), (y, other), (z, third) = some(case, -1, 2), some(case, 0, 3), some(case, 1, 4)
    apart = apply(real("abs"), (algebra.subtract(x, y),))
    beside = apply(LOG, (algebra.add(number(1), apply(EXPONENTIAL, (algebra.scale(apart, -1),))),))
    of, greatest = case.random.choice(((z, max(one, third)), (algebra.scale(y, 2), max(one, 2 * other))))
    times = case.random.choice((1, 3))
    written = algebra.add(algebra.scale(apply(MAXIMUM, (x, of)), times), beside)
    wanted = times * greatest + math.log1p(math.exp(-abs(one - other)))
    return written, case.each(lambda i, j: wanted)


@instance("sign of a variance")
def _variance(case: Case) -> tuple[Poly, Array]:
    """Whether one more than a multiple of a sum of squares is positive less that of the square of a sum, where the
    second is of the same elements, or of others, or taken too often."""
    (x, xs), (y, ys), v, w = case.make(4), case.make(4), bound(4), bound(4)
    (z, zs), often = case.random.choice(((x, xs), (x, xs), (y, ys))), case.random.choice((1, 1, 2))
    squares = reduce_sum([v], algebra.power_of(at(x, v), 2))
    square = algebra.power_of(reduce_sum([w], at(z, w)), 2)
    total = algebra.add(algebra.scale(squares, 4), algebra.scale(square, -often), number(1))
    return is_positive(total), case.each(lambda i, j: int(1 + 4 * sum(xs * xs) - often * sum(zs) ** 2 > 0))


@instance("sign of a variance")
def _variance_of_sum(case: Case) -> tuple[Poly, Array]:
    """The same of elements that are sums themselves."""
    (x, xs), (y, ys), v, w = case.make(3), case.make(3), bound(3), bound(3)
    sign = case.random.choice((1, 1, -1))
    squares = reduce_sum([v], algebra.power_of(algebra.add(at(x, v), at(y, v)), 2))
    square = algebra.power_of(algebra.add(reduce_sum([w], at(x, w)), algebra.scale(reduce_sum([w], at(y, w)), sign)), 2)
    total = algebra.add(algebra.scale(squares, 3), algebra.scale(square, -1), number(1))
    wanted = 1 + 3 * sum((xs + ys) ** 2) - (sum(xs) + sign * sum(ys)) ** 2
    return is_positive(total), case.each(lambda i, j: int(wanted > 0))


@instance("sign of a variance")
def _less_a_variance(case: Case) -> tuple[Poly, Array]:
    """Whether what is less than the opposite of the first one is positive, as a derivative divides by."""
    (x, xs), (y, ys), v, w = case.make(4), case.make(4), bound(4), bound(4)
    (z, zs), often = case.random.choice(((x, xs), (x, xs), (y, ys))), case.random.choice((1, 1, 2))
    squares = reduce_sum([v], algebra.power_of(at(x, v), 2))
    square = algebra.power_of(reduce_sum([w], at(z, w)), 2)
    total = algebra.add(algebra.scale(squares, -4), algebra.scale(square, often), number(-1))
    return is_positive(total), case.each(lambda i, j: int(often * sum(zs) ** 2 - 4 * sum(xs * xs) - 1 > 0))


@instance("more than all others")
def _smooth(case: Case) -> tuple[Poly, Array]:
    """Elements that count so often before, at and behind a place, or with a gap there."""
    (x, xs), v = case.make(6), bound(6)
    low, middle, high = (case.random.choice(cs) for cs in ((1, 1, -2), (3, 3, 1, -3), (1, 2)))
    gap = case.random.choice((0, 0, 1))
    place = expr.subtract(expr.of_var(v), case.i)
    pieces = ((low, None, -1), (middle, 0, 0), (high, 1 + gap, None))
    parts = [algebra.scale(algebra.multiply(guards.interval(place, a, b), at(x, v)), c) for c, a, b in pieces]

    def wanted(i: int, j: int) -> int:
        return sum((low if k < i else middle if k == i else high if k > i + gap else 0) * xs[k] for k in range(6))

    return reduce_sum([v], algebra.add(*parts)), case.each(wanted)


@instance("more than all others")
def _smooth_in_doubt(case: Case) -> tuple[Poly, Array]:
    """What is no number at the place, where it does not count."""
    (x, xs), v = case.make(6), bound(6)
    t, value = logarithm(case)
    place = expr.subtract(expr.of_var(v), case.i)
    known = algebra.add(algebra.multiply(guards.interval(place, None, -1), at(x, v)), number(0))
    more = algebra.scale(algebra.multiply(guards.interval(place, 0, 0), at(x, v)), 2)
    behind = algebra.multiply(guards.interval(place, 1, None), at(x, v))
    held = guards.interval(case.j, 0, 1)
    p = algebra.multiply(held, algebra.add(known, more, behind))
    total = reduce_sum([v], algebra.add(p, algebra.multiply(held, t)))
    return total, case.each(lambda i, j: 0 if j > 1 else xs.sum() + xs[i] + 6 * value)
