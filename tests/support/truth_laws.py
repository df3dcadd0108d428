"""Instances of the laws of truth values in numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.terms import algebra, comparing, extrema, guards
from hlo_verify.terms.functions import LOG, MAXIMUM, MINIMUM, POSITIVE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, Poly, number
from tests.support.expressions import Array
from tests.support.structural_laws import HIGH, LOW, Case, at, bound, instance


def truths(case: Case, *sizes: int) -> tuple[Poly, list[Var], Array]:
    """Signs of elements, at i and new variables; these; and what they are, most of them alike."""
    (x, xs), most = case.make(6, *sizes), case.random.choice((-9, 0, 9))
    case.known.tensors[x] = xs = xs + most
    variables = [bound(size) for size in sizes]
    return apply(POSITIVE, (at(x, case.i, *variables),)), variables, (xs > 0).astype(int)


@instance("extremum of opposites")
def _opposites(case: Case) -> tuple[Poly, Array]:
    p, (v,), ps = truths(case, 4)
    found = extrema.reduce_extremum("max", [v], algebra.subtract(ONE, p))
    return found, case.each(lambda i, j: max(1 - ps[i]))


@instance("extremum of opposites")
def _opposites_somewhere(case: Case) -> tuple[Poly, Array]:
    p, (v,), ps = truths(case, 4)
    here = guards.interval(expr.subtract(expr.of_var(v), case.j), 0, None)
    found = extrema.reduce_extremum("min", [v], algebra.subtract(ONE, algebra.multiply(here, p)))
    return found, case.each(lambda i, j: min(1 - ps[i][j:]))


@instance("condition for some of a range")
def _some_of_a_range(case: Case) -> tuple[Poly, Array]:
    """A form of two variables between two ends, of which one may be missing, for some or all values of one of them."""
    v, c, least = bound(4), case.random.choice((-3, -1, 1, 3)), case.random.randrange(-9, 12)
    lo = case.random.choice((least, None))
    hi = least + case.random.randrange(3) if lo is None or case.random.random() < 0.5 else None
    form = expr.add(expr.scale(case.i, 1), expr.scale(expr.of_var(v), c))
    reducer = case.random.choice(("max", "min"))

    def holds(i: int) -> int:
        all_ = [(lo is None or lo <= i + c * k) and (hi is None or i + c * k <= hi) for k in range(4)]
        return int(any(all_) if reducer == "max" else all(all_))

    return extrema.reduce_extremum(reducer, [v], guards.interval(form, lo, hi)), case.each(lambda i, j: holds(i))


@instance("sign of an extremum")
def _sign(case: Case) -> tuple[Poly, Array]:
    p, (v,), ps = truths(case, 3)
    return extrema.reduce_extremum("min", [v], p), case.each(lambda i, j: min(ps[i]))


@instance("sign of an extremum")
def _sign_of_what_may_be_no_number(case: Case) -> tuple[Poly, Array]:
    (x, _), v = case.make(3), bound(3)
    values = [case.random.choice((-1, 1, 4)) for _ in range(3)]
    case.known.tensors[x] = np.asarray(values, dtype=object)
    found = extrema.reduce_extremum("max", [v], apply(POSITIVE, (apply(LOG, (at(x, v),)),)))
    return found, case.each(lambda i, j: int(any(value > 0 and math.log(value) > 0 for value in values)))


@instance("extremum of truth values")
def _flags(case: Case) -> tuple[Poly, Array]:
    """Truth values and numbers that are none, which lie between or beside 0 and 1."""
    (p, _, ps), (q, _, qs) = (truths(case) for _ in range(2))
    (x, xs), function = case.make(6), case.random.choice((MAXIMUM, MINIMUM))
    half = case.random.random() < 0.5
    others = (algebra.scale(at(x, case.i), Fraction(1, 2)),) if half else ()
    opposite = algebra.subtract(ONE, q) if case.random.random() < 0.5 else q
    best = max if function == MAXIMUM else min
    flags = [1 - qs if opposite is not q else qs, ps]
    wanted = case.each(lambda i, j: best([f[i] for f in flags] + ([Fraction(xs[i]) / 2] if half else [])))
    return apply(function, (p, opposite, *others)), wanted


@instance("extremum of truth values")
def _flags_and_multiples(case: Case) -> tuple[Poly, Array]:
    """What is 2 or 0 is no truth value."""
    (p, _, ps), (q, _, qs) = (truths(case) for _ in range(2))
    function = case.random.choice((MAXIMUM, MINIMUM))
    best = max if function == MAXIMUM else min
    return apply(function, (p, algebra.scale(q, 2))), case.each(lambda i, j: best(ps[i], 2 * qs[i]))


@instance("extremum of truth values over variables")
def _flags_of_each(case: Case) -> tuple[Poly, Array]:
    (p, (v,), ps), (q, _, qs) = truths(case, 3), truths(case)
    (y, ys) = case.make(3)
    other = apply(POSITIVE, (at(y, v),)) if case.random.random() < 0.5 else q
    others = np.asarray([(ys > 0).astype(int)] * 6) if other is not q else np.repeat(qs[:, None], 3, axis=1)
    both, either = algebra.multiply(p, other), algebra.subtract(algebra.add(p, other), algebra.multiply(p, other))
    reducer, body = case.random.choice(("min", "max")), case.random.choice((both, either))
    best, joint = max if reducer == "max" else min, np.minimum if body is both else np.maximum
    found = extrema.reduce_extremum(reducer, [v], body)
    return found, case.each(lambda i, j: best(joint(ps, others)[i]))


@instance("extremum of truth values over variables")
def _one_or_the_other(case: Case) -> tuple[Poly, Array]:
    """That one of two holds, and not both, is neither."""
    (p, (v,), ps), (y, ys) = truths(case, 3), case.make(3)
    other, others = apply(POSITIVE, (at(y, v),)), (ys > 0).astype(int)
    body = algebra.subtract(algebra.add(p, other), algebra.scale(algebra.multiply(p, other), 2))
    reducer = case.random.choice(("min", "max"))
    best = max if reducer == "max" else min
    return extrema.reduce_extremum(reducer, [v], body), case.each(lambda i, j: best(ps[i] ^ others))


@instance("as many as there are of each")
def _at_least_of_each(case: Case) -> tuple[Poly, Array]:
    """Of two counts, or of one and twice the other, of which few hold or few do not."""
    (x, _), (y, _), v, w = case.make(6, 2), case.make(3), bound(2), bound(3)
    rare, by = case.random.random() < 0.5, case.random.choice((1, -1, 2))
    for tensor in (x, y):
        shape = case.known.tensors[tensor].shape
        case.known.tensors[tensor] = (case.known.rng.random(shape) < (0.2 if rare else 0.8)).astype(int)
    ones, others = case.known.tensors[x].sum(axis=1), case.known.tensors[y].sum()
    counts = [reduce_sum([v], apply(POSITIVE, (at(x, case.i, v),))), reduce_sum([w], apply(POSITIVE, (at(y, w),)))]
    total, least = algebra.add(counts[0], algebra.scale(counts[1], by)), case.random.randrange(-4, 10)
    is_opposite = case.random.random() < 0.5
    found = compared(case, total, least, is_opposite=is_opposite)
    return found, case.each(lambda i, j: int((ones[i] + by * others >= least) != is_opposite))


@instance("product of truth values")
def _product(case: Case) -> tuple[Poly, Array]:
    p, (v,), ps = truths(case, 3)
    return extrema.reduce_product([v], p), case.each(lambda i, j: math.prod(ps[i]))


@instance("product of truth values")
def _product_of_numbers(case: Case) -> tuple[Poly, Array]:
    (x, xs), v = case.make(3), bound(3)
    return extrema.reduce_product([v], at(x, v)), case.each(lambda i, j: math.prod(xs))


def compared(case: Case, count: Poly, least: int, *, is_opposite: bool) -> Poly:
    """Whether a count is at least a number, or less, as it is asked of an integer or of a real number."""
    if case.random.random() < 0.5:
        form = algebra.as_index(algebra.scale(count, -1 if is_opposite else 1), -(1 << 31), (1 << 31) - 1)
        return guards.interval(form, 1 - least, None) if is_opposite else guards.interval(form, least, None)
    ahead = algebra.subtract(count, number(least - case.random.choice((0 if is_opposite else 1, Fraction(1, 2)))))
    if not is_opposite:
        return apply(POSITIVE, (algebra.scale(ahead, Fraction(1, 16)),))
    return apply(POSITIVE, (algebra.scale(ahead, -3),))


@instance("as many as there are")
def _at_least(case: Case) -> tuple[Poly, Array]:
    p, variables, ps = truths(case, 2, 3)
    least, is_opposite = case.random.choice((0, 1, 2, 6, 7)), case.random.random() < 0.5
    found = compared(case, reduce_sum(variables, p), least, is_opposite=is_opposite)
    return found, case.each(lambda i, j: int((ps[i].sum() >= least) != is_opposite))


@instance("as many as there are")
def _as_many_as_places(case: Case) -> tuple[Poly, Array]:
    """Of the first places: none, one, all of them."""
    p, (v,), ps = truths(case, 4)
    here = guards.interval(expr.subtract(expr.of_var(v), case.j), None, 0)
    count, most = (reduce_sum([v], algebra.multiply(here, each)) for each in (p, ONE))
    less = case.random.choice((0, 1))
    form = algebra.as_index(algebra.subtract(algebra.subtract(most, count), number(less)), -(1 << 31), (1 << 31) - 1)
    return guards.interval(form, 0, 0), case.each(lambda i, j: int(sum(1 - ps[i][: j + 1]) == less))


@instance("as many as there are")
def _numbers(case: Case) -> tuple[Poly, Array]:
    """What is added up is no truth value."""
    (x, xs), v = case.make(3), bound(3)
    found = apply(POSITIVE, (reduce_sum([v], at(x, v)),))
    return found, case.each(lambda i, j: int(xs.sum() > 0))


@instance("choice between an integer and a bound")
def _bound(case: Case) -> tuple[Poly, Array]:
    (x, xs), last, chance = case.make(6, dtype="i8"), case.random.randrange(-5, 5), case.random.random()
    integer = algebra.as_index(at(x, case.i), LOW, HIGH)
    bounds = (LOW, HIGH) if chance < 0.5 else sorted(case.random.randrange(-5, 5) for _ in range(2))
    whole, number_ = expr.clamp(integer, *bounds), expr.constant(last + case.random.choice((-1, 0, 1, 2)))
    is_below, first = guards.interval(integer, None, last), case.random.random() < 0.5
    a, b = (number_, whole) if first else (whole, number_)
    found = comparing.chosen_integer(is_below, a, b)
    term = algebra.select(is_below, *map(algebra.of_index, (a, b))) if found is None else algebra.of_index(found)
    clamped = [min(max(int(value), bounds[0]), bounds[1]) for value in xs]
    return term, case.each(lambda i, j: number_.const if (xs[i] <= last) == first else clamped[i])
