"""Instances of the laws of counts, and of sums in which an element that is looked up picks a value."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

from hlo_verify.index import expr
from hlo_verify.ops.bits import JOINS
from hlo_verify.ops.in_order import values
from hlo_verify.terms import algebra, comparing, extrema, guards
from hlo_verify.terms.functions import (
    EQUAL,
    EXPONENTIAL,
    INFINITY,
    INVERSE,
    IS_ZERO,
    LOG,
    MAXIMUM,
    MINIMUM,
    POSITIVE,
    truncate,
    typed,
)
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, ZERO, Poly, Tensor, number
from tests.support.expressions import Array
from tests.support.structural_laws import Case, at, bound, instance, is_positive
from tests.support.truth_laws import truths


def looked_up(case: Case, size: int, choices: int) -> tuple[Tensor, Array]:
    """Integers, most of them from 0 to `choices`, and some beside that."""
    made, _ = case.make(size, dtype="i8")
    values = [case.random.choice((*range(choices), *range(choices), -1, choices)) for _ in range(size)]
    case.known.tensors[made] = values_ = case.known.tensors[made] * 0 + values
    return made, values_


def is_there(source: Tensor, place: expr.Index, wanted: expr.Index) -> Poly:
    """Whether an element is an integer."""
    e = algebra.as_index(algebra.read(source, [place]), -128, 127)
    return guards.interval(expr.subtract(e, wanted), 0, 0)


@instance("what is picked by a sum")
def _picked(case: Case) -> tuple[Poly, Array]:
    (e, es), (g, gs), (h, hs) = looked_up(case, 5, 4), case.make(5), case.make(4, 3)
    v, w = bound(4), bound(5)
    inner = reduce_sum([w], algebra.multiply(is_there(e, expr.of_var(w), expr.of_var(v)), at(g, w)))
    found = reduce_sum([v], algebra.multiply(inner, at(h, v, case.j)))
    return found, case.each(lambda i, j: sum(gs[k] * hs[es[k], j] for k in range(5) if 0 <= es[k] < 4))


@instance("what is picked by a sum")
def _picked_of_what_may_be_no_number(case: Case) -> tuple[Poly, Array]:
    """A factor that is no number is one also where nothing is picked."""
    (e, _), (g, _), (h, hs) = looked_up(case, 3, 2), case.make(3), case.make(2)
    case.known.tensors[h] = hs = hs * 0 + [1, case.random.choice((-1, 1))]
    v, w = bound(2), bound(3)
    inner = reduce_sum([w], algebra.multiply(is_there(e, expr.of_var(w), expr.of_var(v)), at(g, w)))
    found = reduce_sum([v], algebra.multiply(inner, apply(LOG, (at(h, v),))))
    return found, case.each(lambda i, j: float("nan") if min(hs) < 0 else 0)


@instance("what a condition tells")
def _told(case: Case) -> tuple[Poly, Array]:
    """What elements look up of what they are, clamped, shifted, compared and as a number, added up by what they are."""
    (e, es), (g, gs), (f, fs), v = looked_up(case, 6, 4), case.make(4), case.make(6), bound(6)
    shift, sign = case.random.randrange(-1, 2), case.random.choice((1, -1))
    own = algebra.as_index(algebra.read(e, [expr.of_var(v)]), -128, 127)
    wanted = expr.shift(expr.scale(case.i, sign), shift)
    least = case.random.randrange(3)
    parts = [
        guards.interval(expr.subtract(own, wanted), 0, 0),
        guards.interval(own, least, None),
        algebra.add(at(g, expr.clamp(own, 0, 3)), algebra.read(e, [expr.of_var(v)])),
        at(f, expr.of_var(v)),
    ]
    found = reduce_sum([v], reduce(algebra.multiply, parts))
    held = [(int(k), fs[n]) for n, k in enumerate(es) if k >= least]
    return found, case.each(
        lambda i, j: sum((gs[min(max(k, 0), 3)] + k) * own for k, own in held if k == sign * i + shift)
    )


@instance("what a condition tells")
def _told_of_what_may_be_no_number(case: Case) -> tuple[Poly, Array]:
    """A logarithm of what no element is would be no number; none is taken."""
    (e, es), (g, gs), v = looked_up(case, 3, 2), case.make(4), bound(3)
    case.known.tensors[g] = gs = gs * 0 + [1, 1, case.random.choice((-1, 1)), 1]
    own = algebra.as_index(algebra.read(e, [expr.of_var(v)]), -128, 127)
    log = apply(LOG, (at(g, expr.clamp(own, 0, 3)),))
    found = reduce_sum([v], algebra.multiply(guards.interval(expr.subtract(own, case.i), 0, 0), log))
    return found, case.each(lambda i, j: float("nan") if i in es and gs[min(i, 3)] < 0 else 0)


@instance("what a condition tells")
def _told_beyond(case: Case) -> tuple[Poly, Array]:
    """Elements are 0 to 3, and so many are looked up; others are asked for, too."""
    (e, es), (g, gs), v, n = case.make(6, dtype="i8"), case.make(4), bound(6), case.random.choice((0, 4))
    case.known.tensors[e] = es = es * 0 + [case.random.randrange(4) for _ in range(6)]
    own = algebra.as_index(algebra.read(e, [expr.of_var(v)]), 0, 3)
    held = guards.interval(expr.subtract(own, expr.floor_div(expr.shift(case.i, n), 2)), 0, 0)
    found = reduce_sum([v], algebra.multiply(held, at(g, own)))
    return found, case.each(lambda i, j: sum(gs[k] for k in es if k == (i + n) // 2))


@instance("count beside a total")
def _average(case: Case) -> tuple[Poly, Array]:
    """Powers of a count, of its inverse and of totals over the same, or by chance over others."""
    (e, es), (x, xs), v = looked_up(case, 6, 4), case.make(6), bound(6)
    other, power = case.random.choice((0, 0, 1)), case.random.randrange(3)
    n = reduce_sum([v], is_there(e, expr.of_var(v), case.i))
    s = reduce_sum([v], algebra.multiply(is_there(e, expr.of_var(v), expr.shift(case.i, other)), at(x, v)))
    parts = [apply(INVERSE, (apply(MAXIMUM, (n, ONE)),))] * 2 + [n] * power + [algebra.add(s, ONE), s]
    case.random.shuffle(parts)
    found = reduce(algebra.multiply, parts)

    def value(i: int) -> Fraction:
        count, total = sum(es == i), sum(xs[k] for k in range(6) if es[k] == i + other)
        return Fraction(total) * (total + 1) * count**power / max(count, 1) ** 2

    return found, case.each(lambda i, j: value(i))


@instance("one of those that are asked")
def _own(case: Case) -> tuple[Poly, Array]:
    """There is an element like that at i + shift, if that is one of those that are asked, and by chance elsewhere."""
    (e, es), v = looked_up(case, 12, 3), bound(6)
    start, shift = case.random.randrange(6), case.random.randrange(6)
    here = algebra.as_index(algebra.read(e, [expr.shift(case.i, shift)]), -128, 127)
    held = is_there(e, expr.shift(expr.of_var(v), start), here)
    found = extrema.reduce_extremum("max", [v], held)
    return found, case.each(lambda i, j: int(any(es[k + start] == es[i + shift] for k in range(6))))


@instance("one of those that are asked")
def _own_in_a_window(case: Case) -> tuple[Poly, Array]:
    """There is an element like the last of a window in it, or up to one before it."""
    (e, es), v, less = looked_up(case, 6, 3), bound(6), case.random.choice((0, 0, 1))
    here = algebra.as_index(algebra.read(e, [case.i]), -128, 127)
    before = guards.interval(expr.subtract(case.i, expr.of_var(v)), less, None)
    found = extrema.reduce_extremum("max", [v], algebra.multiply(before, is_there(e, expr.of_var(v), here)))
    return found, case.each(lambda i, j: int(any(es[k] == es[i] for k in range(i + 1 - less))))


def count(case: Case) -> tuple[Poly, Array]:
    """How many signs are positive, and for each of i how many that are."""
    p, variables, ps = truths(case, 2, 3)
    return reduce_sum(variables, p), ps.reshape(6, 6).sum(1)


@instance("integers as numbers")
def _compared(case: Case) -> tuple[Poly, Array]:
    total, totals = count(case)
    by, ahead = case.random.choice((-2, 1, 3)), case.random.randrange(-12, 12)
    p = algebra.add(algebra.scale(total, by), algebra.of_index(case.j), number(ahead))
    function = case.random.choice((POSITIVE, IS_ZERO))
    values = case.each(lambda i, j: by * totals[i] + j + ahead)
    return apply(function, (p,)), (values > 0 if function == POSITIVE else values == 0).astype(int)


@instance("integers as numbers")
def _of_a_number(case: Case) -> tuple[Poly, Array]:
    """Half of a count, and a count beside an element, are no integers."""
    (x, xs), (total, totals) = case.make(6), count(case)
    half, beside = case.random.choice((1, 0.5)), case.random.choice((0, 1))
    p = algebra.add(algebra.scale(total, Fraction(half)), algebra.scale(at(x, case.i), beside), number(-2))
    return apply(POSITIVE, (p,)), case.each(lambda i, j: int(half * totals[i] + beside * xs[i] > 2))


@instance("integer of what is one")
def _truncated(case: Case) -> tuple[Poly, Array]:
    total, totals = count(case)
    by, ahead = case.random.choice((-2, 1, 3)), case.random.randrange(-12, 12)
    p = algebra.add(algebra.scale(total, by), algebra.of_index(case.j), number(ahead))
    return apply(truncate("i8"), (p,)), case.each(lambda i, j: by * totals[i] + j + ahead)


@instance("integer of what is one")
def _truncated_to_what_the_type_has(case: Case) -> tuple[Poly, Array]:
    """A number that is beyond the type becomes the greatest or the least that it has."""
    total, totals = count(case)
    p = algebra.scale(total, case.random.choice((-100, 100, 1)))
    by = next(c for _, c in p.items) if p.items else 0
    return apply(truncate("i8"), (p,)), case.each(lambda i, j: max(-128, min(127, int(by * totals[i]))))


@instance("total of what may be nothing")
def _mean(case: Case) -> tuple[Poly, Array]:
    """What holds is divided by how much does, or by more; with a number beside it where nothing may hold."""
    (y, ys), v = case.make(6, 3), bound(3)
    (x, xs), most = case.make(6, 3), case.random.choice((-9, 0, 0))
    case.known.tensors[x] = xs = xs + most
    which = case.random.choice(((1,), (1, -1)))
    p = algebra.add(*(apply(POSITIVE, (algebra.scale(at(x, case.i, v), by),)) for by in which))
    ps = sum((by * xs > 0).astype(int) for by in which)
    n, more, least = reduce_sum([v], p), case.random.choice((0, 0, 1)), case.random.choice((1, 1, 1, 2))
    masked = p if case.random.random() < 0.5 else ONE
    total = reduce_sum([v], algebra.multiply(masked, at(y, case.i, v)))
    condition = apply(POSITIVE, (algebra.subtract(n, number(least - 1)),))
    divided = algebra.multiply(total, apply(INVERSE, (algebra.add(n, number(more)),)))
    found = comparing.chosen_total(condition, divided, ZERO)
    totals, counts = (ys * (ps if masked is p else 1)).sum(1), ps.sum(1)
    wanted = case.each(lambda i, j: Fraction(totals[i]) / int(counts[i] + more) if counts[i] >= least else 0)
    return algebra.select(condition, divided, ZERO) if found is None else found, wanted


@instance("choice between an integer and a bound")
def _of_a_count(case: Case) -> tuple[Poly, Array]:
    """A count, or a number where nothing is counted, or where little is."""
    total, totals = count(case)
    least, by = case.random.choice((1, 1, 2)), case.random.choice((0, 1, 1, 2))
    condition = apply(POSITIVE, (algebra.subtract(total, number(least - 1)),))
    found = comparing.chosen_count(condition, total, number(by))
    wanted = case.each(lambda i, j: totals[i] if totals[i] >= least else by)
    return algebra.select(condition, total, number(by)) if found is None else found, wanted


@instance("sums that are positive somewhere")
def _of_its_kind(case: Case) -> tuple[Poly, Array]:
    """Those of the kind of one at a place, which may be beyond those that are added up."""
    (e, es), (x, _), n = looked_up(case, 8, 3), case.make(6), case.random.choice((5, 6))
    v, shift = bound(n), case.random.randrange(3)
    there = algebra.as_index(algebra.read(e, [expr.shift(case.i, shift)]), -128, 127)
    total = reduce_sum([v], algebra.multiply(is_there(e, expr.of_var(v), there), apply(EXPONENTIAL, (at(x, v),))))
    return is_positive(total), case.each(lambda i, j: int(es[i + shift] in es[:n]))


@instance("sums that are positive somewhere")
def _somewhere(case: Case) -> tuple[Poly, Array]:
    """Elements up to a place, or those up to others before it, of which there may be none."""
    (x, _), v = case.make(6), bound(6)
    gap = case.random.choice((0, 0, 1, 2))
    held = guards.interval(expr.subtract(expr.of_var(v), case.i), None, -gap)
    total = reduce_sum([v], algebra.multiply(held, apply(EXPONENTIAL, (at(x, v),))))
    return is_positive(total), case.each(lambda i, j: int(i >= gap))


@instance("each of those that an extremum is of")
def _each(case: Case) -> tuple[Poly, Array]:
    """Bounds of the greater or lesser of elements and numbers, by themselves and less than a place."""
    (e, es), (f, fs) = looked_up(case, 6, 4), looked_up(case, 6, 4)
    n, lo, hi = (case.random.choice((None, -1, 0, 1, 2, 3)) for _ in range(3))
    parts = [algebra.read(e, [case.i]), algebra.read(f, [case.i]), *([] if n is None else [number(n)])]
    function, best = case.random.choice(((MAXIMUM, max), (MINIMUM, min)))
    sign, by = case.random.choice((1, -1, 2)), case.random.choice((0, 1, -1))
    asked = expr.scale(algebra.as_index(apply(function, tuple(parts)), -128, 127), sign)
    found = guards.interval(expr.add(asked, expr.scale(case.j, by)), lo, hi)

    def wanted(i: int, j: int) -> int:
        value = sign * best([int(es[i]), int(fs[i]), *([] if n is None else [n])]) + by * j
        return int((lo is None or lo <= value) and (hi is None or value <= hi))

    return found, case.each(wanted)


@instance("last bits of what is sorted")
def _last_bits(case: Case) -> tuple[Poly, Array]:
    """Places in the last bits of elements that are put in order, or of the greatest; with bits of others in them, too,
    and fewer or more bits than places take up."""
    (e, es), v, size = looked_up(case, 6, 4), bound(6), 2 ** case.random.choice((2, 3, 3, 4))
    join, by = case.random.choice(("or", "xor", "and")), case.random.choice((7, 15, 8, -16, -1))
    own = _bits(join, at(e, v), number(by))
    key = _bits("xor", own, algebra.of_index(expr.of_var(v)))
    place = case.random.choice((case.i, expr.constant(5)))
    last = case.random.choice((0, 7, 15))
    asked = _bits("xor", values(v, key, place, "i8"), number(last))
    lo, hi = case.random.choice((None, 1, 2)), case.random.choice((None, 5, 7, 9))
    found = guards.interval(expr.modulo(algebra.as_index(asked, -128, 127), size), lo, hi)

    def wanted(i: int, j: int) -> int:
        keys = sorted(JOINS["xor"](JOINS[join](int(n), by), k) for k, n in enumerate(es))
        bits = (keys[i if place is case.i else 5] ^ last) % size
        return int((lo is None or lo <= bits) and (hi is None or bits <= hi))

    return found, case.each(wanted)


def _bits(name: str, a: Poly, b: Poly) -> Poly:
    return apply(typed(name, ("i8", "i8"), "i8"), (a, b))


@instance("one is the best")
def _best(case: Case) -> tuple[Poly, Array]:
    """How many elements are the greatest: of the same elements, or of others."""
    (x, xs), (y, ys), v, w = case.make(4), case.make(4), bound(4), bound(4)
    compared, values = case.random.choice(((x, xs), (y, ys)))
    best = extrema.reduce_extremum("max", [w], at(x, w))
    count = reduce_sum([v], apply(IS_ZERO, (algebra.subtract(best, at(compared, v)),)))
    return is_positive(count), case.each(lambda i, j: int(max(xs) in values))


@instance("one is the best of what is masked")
def _best_of_masked(case: Case) -> tuple[Poly, Array]:
    """How many elements are the greatest of those up to a place and of so many numbers, or infinities, behind it: of
    the same elements, of fewer, of others, with a number that is no element of them, or with fewer of these."""
    (x, xs), (y, ys), v, w = case.make(4), case.make(4), bound(4), bound(4)
    elements, values, gap, mask, off = case.random.choice(
        ((x, xs, 0, 0, 0), (x, xs, 0, 0, 1), (y, ys, 0, 0, 0), (x, xs, 1, 0, 0), (x, xs, 0, 1, 0))
    )
    infinite = case.random.random() < 0.5
    masked = algebra.scale(apply(INFINITY, ()), -1) if infinite else number(min(xs) - 1)
    seen, shown = (guards.interval(expr.subtract(expr.of_var(u), case.i), None, -gap) for u, gap in ((w, 0), (v, gap)))
    best = extrema.reduce_extremum("max", [w], algebra.select(seen, at(x, w), masked))
    with_mask = algebra.add(masked, number(Fraction(mask, 2)))
    hidden = guards.interval(expr.subtract(expr.of_var(v), case.i), 1 + off, None)

    def is_best(p: Poly) -> Poly:
        return apply(EQUAL, (best, p)) if infinite else apply(IS_ZERO, (algebra.subtract(best, p),))

    count = algebra.add(
        reduce_sum([v], algebra.multiply(shown, is_best(at(elements, v)))),
        reduce_sum([v], algebra.multiply(hidden, is_best(with_mask))),
    )
    return is_positive(count), case.each(lambda i, j: int(max(xs[: i + 1]) in values[: max(0, i + 1 - gap)]))
