"""Instances of the laws of sums, conditions and index values: terms for which they are used, and their values."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.terms import algebra, extrema, guards, laws, signs, wrapping
from hlo_verify.terms.definitions import define, named
from hlo_verify.terms.functions import EXPONENTIAL, LOG, MAXIMUM, POSITIVE, Function
from hlo_verify.terms.laws import apply
from hlo_verify.terms.ordered import VALUES
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, Tensor, number
from tests.support.expressions import Array, Data, Space

LOW, HIGH = -128, 127


class Case:
    """Random tensors, and terms of them over two free variables i and j, with what they are for all of their values."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.known = Data({}, np.random.default_rng(seed))
        self.space = Space((expr.var("i", "", 6), expr.var("j", "", 3)))
        self.i, self.j = map(expr.of_var, self.space.variables)

    def make(self, *sizes: int, dtype: str = "f32") -> tuple[Tensor, Array]:
        made = self.known.make(sizes, dtype)
        return made, self.known.tensors[made]

    def each(self, function: Callable[[int, int], Any]) -> Array:
        """The values of a function of i and j."""
        return np.array([[function(i, j) for j in range(3)] for i in range(6)], dtype=object)

    def value(self, p: Poly) -> Array:
        return self.space.spread(self.known.evaluator.poly(p, self.space.grid))


Instance = Callable[[Case], tuple[Poly, Array]]
INSTANCES: dict[str, list[Instance]] = {}


def instance(*names: str) -> Callable[[Instance], Instance]:
    """Registers terms for which some laws are used, and their values: without the laws, by counting."""

    def register(function: Instance) -> Instance:
        for name in names:
            INSTANCES.setdefault(name, []).append(function)
        return function

    return register


def at(source: Tensor, *places: Index | Var) -> Poly:
    return algebra.read(source, [expr.of_var(e) if isinstance(e, Var) else e for e in places])


def bound(size: int) -> Var:
    return expr.fresh("v", size)


def logarithm(case: Case) -> tuple[Poly, float]:
    """Something that is a number or not."""
    source, _ = case.make()
    value = case.random.choice((-1, 1))
    case.known.tensors[source] = np.asarray(value, dtype=object)
    return apply(LOG, (at(source),)), 0.0 if value > 0 else math.nan


@instance("sum of terms")
def _terms(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), v = case.make(4), case.make(4), bound(4)
    p = algebra.add(at(x, v), algebra.multiply(at(y, v), at(x, case.j)))
    return reduce_sum([v], p), case.each(lambda i, j: xs.sum() + ys.sum() * xs[j])


@instance("factor of a sum")
def _factor(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), v = case.make(6), case.make(4), bound(4)
    p = algebra.multiply(at(x, case.i), at(y, v))
    return reduce_sum([v], p), case.each(lambda i, j: xs[i] * ys.sum())


@instance("factor of a sum")
def _selected_factor(case: Case) -> tuple[Poly, Array]:
    t, value = logarithm(case)
    v = bound(3)
    held = guards.interval(expr.subtract(expr.of_var(v), case.i), 0, None)
    return reduce_sum([v], algebra.multiply(held, t)), case.each(lambda i, j: value if i < 3 else 0)


@instance("sum of one term")
def _one_term(case: Case) -> tuple[Poly, Array]:
    (x, xs), v = case.make(6), bound(5)
    return reduce_sum([v], at(x, case.i)), case.each(lambda i, j: 5 * xs[i])


@instance("sum of a sum")
def _nested(case: Case) -> tuple[Poly, Array]:
    (x, xs), v, w = case.make(4, 3), bound(4), bound(3)
    return reduce_sum([v], reduce_sum([w], at(x, v, w))), case.each(lambda i, j: xs.sum())


@instance("one point", "part of a range")
def _window(case: Case) -> tuple[Poly, Array]:
    """A window of some elements: one where the law is used."""
    (x, xs), v = case.make(8), bound(8)
    low, sign = case.random.randrange(5), case.random.choice((0, 1, -1))
    high = low + case.random.choice((0, 0, 2))
    held = guards.interval(expr.add(expr.of_var(v), expr.scale(case.i, sign)), low, high)
    found = reduce_sum([v], algebra.multiply(held, at(x, v)))
    return found, case.each(lambda i, j: sum(xs[k] for k in range(8) if low <= k + sign * i <= high))


@instance("product of sums")
def _product(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), v, w = case.make(4), case.make(3), bound(4), bound(3)
    return reduce_sum([v, w], algebra.multiply(at(x, v), at(y, w))), case.each(lambda i, j: xs.sum() * ys.sum())


@instance("product of sums")
def _selected_product(case: Case) -> tuple[Poly, Array]:
    (x, xs), v, w = case.make(2, dtype="positive"), bound(2), bound(3)
    case.known.tensors[x] = xs = xs * case.random.choice((1, -1))
    held = guards.interval(expr.subtract(expr.of_var(w), case.i), 0, None)
    found = reduce_sum([v, w], algebra.multiply(held, apply(LOG, (at(x, v),))))
    total = sum(math.log(k) if k > 0 else math.nan for k in xs)
    return found, case.each(lambda i, j: (3 - i) * total if i < 3 else 0)


@instance("sum inside of a sum")
def _inside(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), v, w = case.make(4, 3), case.make(4), bound(4), bound(3)
    (z, zs) = case.make(3, 4)
    wanted = sum(xs[a, b] * zs[b, a] * ys[a] for a in range(4) for b in range(3))
    product = algebra.multiply(algebra.multiply(at(x, v, w), at(z, w, v)), at(y, v))
    return reduce_sum([v, w], product), case.each(lambda i, j: wanted)


@instance("sum inside of a sum")
def _selected_inside(case: Case) -> tuple[Poly, Array]:
    (x, xs), (z, zs), v, w = case.make(2, dtype="positive"), case.make(3, 2), bound(2), bound(3)
    case.known.tensors[x] = xs = xs * case.random.choice((1, -1))
    held = guards.interval(expr.subtract(expr.of_var(w), case.i), 0, None)
    factors = algebra.multiply(held, algebra.multiply(at(z, w, v), apply(LOG, (at(x, v),))))
    logs = [math.log(k) if k > 0 else math.nan for k in xs]
    return reduce_sum([v, w], factors), case.each(
        lambda i, j: sum(zs[b, a] * logs[a] for a in range(2) for b in range(i, 3))
    )


@instance("factor of a named term")
def _named_of_fewer(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), (z, zs), v, w = case.make(4, 3), case.make(4, 3), case.make(4), bound(4), bound(3)
    common = algebra.multiply(at(z, v), algebra.add(at(x, v, w), at(y, v, w)))
    found = reduce_sum([v, w], algebra.multiply(named(common), at(y, v, w)))
    wanted = sum(zs[a] * (xs[a, b] + ys[a, b]) * ys[a, b] for a in range(4) for b in range(3))
    return found, case.each(lambda i, j: wanted)


@instance("factor of a named term")
def _named(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), (z, zs), v = case.make(4), case.make(4), case.make(6), bound(4)
    common = algebra.multiply(at(z, case.i), algebra.add(at(x, v), at(y, v)))
    found = reduce_sum([v], algebra.multiply(named(common), at(y, v)))
    return found, case.each(lambda i, j: zs[i] * sum((xs[k] + ys[k]) * ys[k] for k in range(4)))


@instance("digits joined")
def _digits(case: Case) -> tuple[Poly, Array]:
    m, n, more = case.random.choice((2, 3)), case.random.choice((2, 4)), case.random.choice((0, 0, 1))
    (x, xs), a, b = case.make((m + more) * n), bound(m), bound(n)
    place = expr.add(expr.of_var(a), expr.scale(expr.of_var(b), m + more))
    wanted = sum(xs[k + (m + more) * q] for k in range(m) for q in range(n))
    return reduce_sum([a, b], at(x, place)), case.each(lambda i, j: wanted)


@instance("counted down")
def _down(case: Case) -> tuple[Poly, Array]:
    (x, xs), v = case.make(5, 6), bound(5)
    found = reduce_sum([v], at(x, expr.subtract(expr.constant(4), expr.of_var(v)), case.i))
    return found, case.each(lambda i, j: xs[:, i].sum())


@instance("sum of values in order")
def _in_order(case: Case) -> tuple[Poly, Array]:
    (x, xs), first, last = case.make(5, 6), case.random.randrange(2), case.random.choice((2, 3, 4))
    v, place = bound(5), bound(last - first + 1)
    value = define(
        "sort", [v], (at(x, v, case.i),), attributes=VALUES, at=(expr.shift(expr.of_var(place), first),), ordered=True
    )
    return reduce_sum([place], value), case.each(lambda i, j: np.sort(xs[:, i])[first : last + 1].sum())


@instance("rotation")
def _rotation(case: Case) -> tuple[Poly, Array]:
    n, c = 6, case.random.choice((1, 2, 3, 5))
    (x, xs), v, start = case.make(n), bound(n), expr.clamp(case.i, 1, 5)
    place = expr.modulo(expr.add(start, expr.scale(expr.of_var(v), c)), n)
    found = reduce_sum([v], at(x, place))
    return found, case.each(lambda i, j: sum(xs[(max(i, 1) + c * k) % n] for k in range(n)))


@instance("wrapped by a condition")
def _wrapped(case: Case) -> tuple[Poly, Array]:
    n, shift, end = (case.random.choice(each) for each in ((4, 5), (0, 1, 3, 6), (3, 4, 5)))
    beyond = algebra.scale(guards.interval(expr.shift(case.i, shift), end, None), -n)
    found = wrapping.wrapped(algebra.add(algebra.of_index(expr.shift(case.i, shift)), beyond))
    return found, case.each(lambda i, j: i + shift - n * (i + shift >= end))


@instance("multiple in an extremum")
def _multiple(case: Case) -> tuple[Poly, Array]:
    (x, xs), v, c = case.make(4), bound(4), Fraction(case.random.choice((-3, -1, 2, 5)), 2)
    return extrema.reduce_extremum("max", [v], algebra.scale(at(x, v), c)), case.each(lambda i, j: max(c * xs))


@instance("extremum of what is negated")
def _negated(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), v = case.make(4), case.make(4), bound(4)
    both = algebra.add(at(x, v), algebra.scale(at(y, v), 2))
    reducer, least = case.random.choice((("max", max), ("min", min)))
    return extrema.reduce_extremum(reducer, [v], algebra.scale(both, -1)), case.each(lambda i, j: least(-xs - 2 * ys))


@instance("extrema over variables")
def _extrema(case: Case) -> tuple[Poly, Array]:
    (x, xs), v, w = case.make(4, 3), bound(4), bound(3)
    inner = extrema.reduce_extremum("min", [w], at(x, v, w))
    return extrema.reduce_extremum("min", [v], inner), case.each(lambda i, j: xs.min())


@instance("extremum over elements of several")
def _several(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), v = case.make(4), case.make(4), bound(4)
    found = extrema.reduce_extremum("max", [v], apply(MAXIMUM, (at(x, v), at(y, v))))
    return found, case.each(lambda i, j: max(*xs, *ys))


@instance("extremum of a choice", "extremum over parts of a range")
def _choice(case: Case) -> tuple[Poly, Array]:
    """By a free variable, or by the bound one."""
    (x, xs), (y, ys), v = case.make(4), case.make(4), bound(4)
    is_free = case.random.random() < 0.5
    place = case.i if is_free else expr.of_var(v)
    parts = (guards.interval(place, None, 1), at(x, v)), (guards.interval(place, 2, None), at(y, v))
    found = extrema.reduce_extremum("max", [v], algebra.add(*(algebra.multiply(on, p) for on, p in parts)))
    mixed = max(*xs[:2], *ys[2:])
    return found, case.each(lambda i, j: (max(xs) if i < 2 else max(ys)) if is_free else mixed)


@instance("extremum of what all choices have")
def _greatest_of_common(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), (z, zs), v = case.make(4), case.make(4), case.make(4), bound(4)
    first, last = guards.interval(expr.of_var(v), None, 1), guards.interval(expr.of_var(v), 2, None)
    has_more = case.random.random() < 0.5
    others = apply(MAXIMUM, (at(x, v), at(z, v))) if has_more else at(x, v)
    choices = (first, apply(MAXIMUM, (at(x, v), at(y, v)))), (last, others)
    found = extrema.reduce_extremum("max", [v], algebra.add(*(algebra.multiply(on, p) for on, p in choices)))
    return found, case.each(lambda i, j: max(*xs, *ys[:2], *(zs[2:] if has_more else xs)))


@instance("product of what all choices have")
def _product_of_common(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), v = case.make(4), case.make(4), bound(4)
    first, last = guards.interval(expr.of_var(v), None, 1), guards.interval(expr.of_var(v), 2, None)
    choices = (first, algebra.multiply(at(x, v), at(y, v))), (last, algebra.scale(at(x, v), 3))
    found = extrema.reduce_product([v], algebra.add(*(algebra.multiply(on, p) for on, p in choices)))
    return found, case.each(lambda i, j: 9 * math.prod([*xs, *ys[:2]]))


@instance("product of one factor")
def _power(case: Case) -> tuple[Poly, Array]:
    (x, xs), v = case.make(6), bound(3)
    return extrema.reduce_product([v], at(x, case.i)), case.each(lambda i, j: xs[i] ** 3)


@instance("product of products")
def _products(case: Case) -> tuple[Poly, Array]:
    (x, xs), v, w = case.make(2, 3), bound(2), bound(3)
    inner = extrema.reduce_product([w], at(x, v, w))
    return extrema.reduce_product([v], inner), case.each(lambda i, j: math.prod(xs.reshape(-1)))


@instance("conditions on one expression")
def _conditions(case: Case) -> tuple[Poly, Array]:
    a, b = case.random.randrange(6), case.random.randrange(6)
    found = algebra.multiply(guards.interval(case.i, a, None), guards.interval(case.i, None, b))
    return found, case.each(lambda i, j: int(a <= i <= b))


@instance("implied condition")
def _implied(case: Case) -> tuple[Poly, Array]:
    a, b = case.random.randrange(5), case.random.randrange(7)
    both = expr.add(case.i, case.j)
    found = algebra.multiply(guards.interval(case.i, None, a), guards.interval(both, None, b))
    return found, case.each(lambda i, j: int(i <= a and i + j <= b))


@instance("idle clamp")
def _clamp(case: Case) -> tuple[Poly, Array]:
    (x, xs), a, low = case.make(6), case.random.randrange(5), case.random.randrange(4)
    read = at(x, expr.clamp(case.i, low, 5))
    found = algebra.multiply(guards.interval(case.i, a, None), read)
    return found, case.each(lambda i, j: xs[max(i, low)] if i >= a else 0)


@instance("steps joined")
def _steps(case: Case) -> tuple[Poly, Array]:
    (x, xs), a, c, d = case.make(6), case.random.randrange(5), case.random.choice((2, 3)), case.random.choice((2, 3))
    below, above = guards.interval(case.i, None, a), guards.interval(case.i, a + 1, None)
    read = at(x, case.i)
    found = algebra.add(*(algebra.multiply(on, algebra.scale(read, k)) for on, k in ((below, c), (above, d))))
    return found, case.each(lambda i, j: xs[i] * (c if i <= a else d))


@instance("quotient in a condition")
def _quotient(case: Case) -> tuple[Poly, Array]:
    a = case.random.randrange(-1, 4)
    e = expr.add(case.i, case.j)
    found = guards.interval(expr.floor_div(e, 3), a, a + 1)
    return found, case.each(lambda i, j: int(a <= (i + j) // 3 <= a + 1))


@instance("machine value in a condition")
def _machine(case: Case) -> tuple[Poly, Array]:
    (n, ns), k, more = case.make(6, dtype="i8"), case.random.choice((-3, 3)), case.random.choice((0, 7, -7))
    case.known.tensors[n] = ns = np.asarray(
        [case.random.choice((LOW, LOW + 5, HIGH - 5, HIGH, 0)) for _ in range(6)], dtype=object
    )
    total = algebra.add(at(n, case.i), algebra.of_index(expr.shift(expr.scale(case.j, k), more)))
    c, m = case.random.choice(((1, 0), (1, 2), (-1, 2)))
    a = case.random.choice((LOW, LOW + 1, 0, HIGH - 9, HIGH - 4, LOW - 4))
    form = expr.add(expr.scale(algebra.as_index(total, LOW, HIGH), c), expr.scale(case.i, m))
    found = guards.interval(form, a, a + 9)
    return found, case.each(lambda i, j: int(a <= c * ((ns[i] + k * j + more - LOW) % 256 + LOW) + m * i <= a + 9))


@instance("low digits in a condition")
def _low(case: Case) -> tuple[Poly, Array]:
    a, b = case.random.randrange(-2, 12), case.random.randrange(6, 24)
    e = expr.add(expr.scale(case.i, 4), case.j)
    return guards.interval(e, a, b), case.each(lambda i, j: int(a <= 4 * i + j <= b))


@instance("indices added")
def _indices(case: Case) -> tuple[Poly, Array]:
    c = Fraction(case.random.randrange(1, 9), 2)
    found = algebra.add(algebra.of_index(case.i), algebra.scale(algebra.of_index(case.j), c))
    return found, case.each(lambda i, j: i + c * j)


@instance("what vanishes is a number")
def _vanishes(case: Case) -> tuple[Poly, Array]:
    t, value = logarithm(case)
    return algebra.subtract(t, t), case.each(lambda i, j: 0 * value)


@instance("function of a choice")
def _function(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys) = case.make(6), case.make(6)
    parts = (guards.interval(case.i, None, 1), at(x, case.i)), (guards.interval(case.i, 2, None), at(y, case.i))
    found = apply(Function("abs"), (algebra.add(*(algebra.multiply(on, p) for on, p in parts)),))
    return found, case.each(lambda i, j: abs(xs[i] if i <= 1 else ys[i]))


ORDERED = {"maximum": max, "minimum": min, "less": lambda a, b: int(a < b), "equal": lambda a, b: int(a == b)}


@instance("operands in any order")
def _operands(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys) = case.make(6), case.make(6)
    name = case.random.choice(list(ORDERED))
    first, second = at(x, case.i), at(y, case.i)
    return laws.apply(Function(name), (second, first)), case.each(lambda i, j: ORDERED[name](ys[i], xs[i]))


def is_positive(p: Poly) -> Poly:
    return number(1) if signs.of(p) == signs.POSITIVE else apply(POSITIVE, (p,))


@instance("sums that are positive together")
def _together(case: Case) -> tuple[Poly, Array]:
    """Some elements, and the number of all others, or of some of these; there may be none of either."""
    (x, _), (y, _), v, w = case.make(4), case.make(), bound(4), bound(4)
    gap = case.random.choice((0, 0, 1, 2))
    lower, higher = (expr.subtract(expr.of_var(u), case.i) for u in (v, w))
    chosen = algebra.multiply(guards.interval(lower, None, -1 - gap), apply(EXPONENTIAL, (at(x, v),)))
    other = algebra.multiply(guards.interval(higher, gap, None), apply(EXPONENTIAL, (at(y),)))
    total = algebra.add(reduce_sum([v], chosen), reduce_sum([w], other))
    return is_positive(total), case.each(lambda i, j: int(i > gap or i + gap < 4))
