"""Instances of the laws of sums that are joined piece by piece, and of places that a table has."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hlo_verify.index import expr
from hlo_verify.terms import algebra, guards, neighbours, side_by_side
from hlo_verify.terms.definitions import named
from hlo_verify.terms.in_line import in_line
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly
from tests.support.count_laws import looked_up
from tests.support.expressions import Array
from tests.support.structural_laws import Case, at, bound, instance


@instance("sum piece by piece")
def _pieces(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys) = case.make(6, 8), case.make(8)
    cuts = sorted(case.random.sample(range(9), 3))
    parts = [(start, stop) for start, stop in pairwise([0, *cuts, 8]) if case.random.random() < 0.9]
    case.random.shuffle(parts)

    def piece(start: int, stop: int) -> Poly:
        v = bound(stop - start)
        place = expr.shift(expr.of_var(v), start)
        return reduce_sum([v], algebra.multiply(at(x, case.i, place), at(y, place)))

    total = algebra.add(*(piece(start, stop) for start, stop in parts if stop > start))
    found = neighbours.joined(total)
    return found, case.each(lambda i, j: sum((xs[i, start:stop] * ys[start:stop]).sum() for start, stop in parts))


@instance("sum piece by piece")
def _elements(case: Case) -> tuple[Poly, Array]:
    (x, xs), places = case.make(8), case.random.sample(range(8), case.random.choice((2, 4, 7)))
    found = neighbours.joined(algebra.add(*(at(x, expr.constant(place)) for place in places)))
    return found, case.each(lambda i, j: sum(xs[place] for place in places))


@instance("pieces in line")
def _line(case: Case) -> tuple[Poly, Array]:
    """Pieces at each place of i, of one function but for some."""
    (x, xs), (y, ys) = case.make(40, 3), case.make(6)
    start, step, gap = case.random.randrange(10), case.random.randrange(6), case.random.choice((None, None, 0, 3, 5))
    cuts = [0, *sorted(case.random.sample(range(1, 6), case.random.choice((2, 5)))), 6]
    bent = case.random.choice((None, None, cuts[-2]))
    parts, read = [], [start + step * n for n in range(6)]
    for a, b in pairwise(cuts):
        if a == gap:
            continue
        if a == bent:
            read[a:b] = [n + 1 for n in read[a:b]]
        slope = step if b > a + 1 else case.random.randrange(4)
        place = expr.shift(expr.scale(case.i, slope), read[a] - slope * a)
        element = algebra.multiply(at(x, place, case.j), at(y, case.i))
        parts.append((a, b, algebra.multiply(guards.interval(case.i, a, b - 1), element)))
    found = in_line(algebra.add(*(part for _, _, part in parts)), case.space.variables[0])
    return found, case.each(lambda i, j: sum(xs[read[i], j] * ys[i] for a, b, _ in parts if a <= i < b))


@instance("pieces in line")
def _looked_up_line(case: Case) -> tuple[Poly, Array]:
    """Pieces that a table tells apart at each place of i, of one function but for some."""
    (x, xs), (y, ys), step = case.make(40, 3), case.make(6), case.random.randrange(1, 6)
    cases = [case.random.randrange(3) for _ in range(6)]
    asked = expr.lookup(tuple(cases), case.i)
    read = [step * n for n in range(6)]
    bent = case.random.choice((None, None, 2))
    parts = []
    for k in range(3):
        place = expr.shift(expr.scale(case.i, step), 7 if k == bent else 0)
        parts.append(algebra.multiply(guards.interval(asked, k, k), at(x, place, case.j)))
    found = in_line(algebra.multiply(algebra.add(*parts), at(y, case.i)), case.space.variables[0])
    return found, case.each(lambda i, j: xs[read[i] + (7 if cases[i] == bent else 0), j] * ys[i])


@instance("pieces in line")
def _line_by_name(case: Case) -> tuple[Poly, Array]:
    """Pieces at each place of i, of one function but for some, that have a name together; with a factor."""
    (x, xs), (y, ys), step = case.make(40, 3), case.make(6), case.random.randrange(1, 6)
    cut, bent = case.random.randrange(2, 5), case.random.choice((None, None, 0, 2))
    read = [step * n for n in range(6)]
    parts = []
    for k, (a, b) in enumerate(((0, 1), (1, cut), (cut, 6))):
        if k == bent:
            read[a:b] = [n + 1 for n in read[a:b]]
        place = expr.shift(expr.scale(case.i, step if b > a + 1 else 0), read[a] - (step * a if b > a + 1 else 0))
        parts.append(algebra.multiply(guards.interval(case.i, a, b - 1), at(x, place, case.j)))
    whole = algebra.multiply(named(algebra.add(*parts)), at(y, case.i))
    found = in_line(whole, case.space.variables[0])
    assert (found is whole) is (bent is not None)
    return found, case.each(lambda i, j: xs[read[i], j] * ys[i])


@instance("sum of what is put together")
def _two_in_one_part(case: Case) -> tuple[Poly, Array]:
    """Two parts of a range that have a name, one or both of them a sum of two, times a factor: each is a sum over one
    name, as it is where it is an operand by itself."""
    (x, xs), (y, ys), (z, zs), v = case.make(8), case.make(8, 6), case.make(8), bound(8)
    place, k, c = expr.of_var(v), case.random.randrange(2, 7), case.random.choice((1, 2, -3))
    pieces, one = [], algebra.scale(algebra.add(at(x, v), at(y, v, case.i)), c)
    both = case.random.random() < 0.5
    other = algebra.multiply(at(x, v), algebra.add(at(y, v, case.i), at(x, v) if both else algebra.ZERO))
    for lo, hi, part in ((None, k - 1, one), (k, None, other)):
        pieces.append(algebra.multiply(guards.interval(place, lo, hi), part))
    found = reduce_sum([v], algebra.multiply(named(algebra.add(*pieces)), at(z, v)))
    assert len(found.items) == 2
    counted = [c * (xs[n] + ys[n]) if n < k else xs[n] * (ys[n] + (xs[n] if both else 0)) for n in range(8)]
    return found, case.each(lambda i, j: sum(counted[n][i] * zs[n] for n in range(8)))


@instance("sum of what is put together")
def _put_together(case: Case) -> tuple[Poly, Array]:
    """Two or three parts of a range that has a name, one of them in rows, or in every second place; with a factor."""
    (x, xs), (y, ys), (z, zs), v = case.make(8), case.make(8, 6), case.make(8), bound(8)
    place, k, is_apart = expr.of_var(v), case.random.randrange(1, 8), case.random.random() < 0.5
    first, rest = guards.interval(place, None, k - 1), guards.interval(place, k, None)
    odd = guards.interval(expr.modulo(place, 2), 1, 1) if is_apart else algebra.logical_not(algebra.ZERO)
    parts = algebra.multiply(first, at(x, v)), algebra.multiply(algebra.multiply(rest, odd), at(y, v, case.i))
    found = reduce_sum([v], algebra.multiply(named(algebra.add(*parts)), at(z, v)))
    counted = [xs[:, None] * np.ones(6) if n < k else (ys if n % 2 or not is_apart else 0 * ys) for n in range(8)]
    return found, case.each(lambda i, j: sum(counted[n][n, i] * zs[n] for n in range(8)))


@instance("one in every")
def _one_remainder(case: Case) -> tuple[Poly, Array]:
    """What lies at one remainder of so many times a variable and the rest: fewer values than there are remainders, as
    many, or more, with a factor that has an inverse modulo m and, by chance, one that has none."""
    m, n, r, k = (case.random.randrange(a, b) for a, b in ((2, 7), (2, 14), (0, 6), (-5, 12)))
    (x, xs), v, r = case.make(n), bound(n), r % m
    form = expr.modulo(expr.add(expr.scale(expr.of_var(v), k), case.i), m)
    found = reduce_sum([v], algebra.multiply(guards.interval(form, r, r), at(x, v)))
    return found, case.each(lambda i, j: sum(xs[a] for a in range(n) if (k * a + i) % m == r))


@instance("one entry")
def _entry(case: Case) -> tuple[Poly, Array]:
    """The place of an entry of a table: of all places in another order, of numbers with gaps, and with two equal."""
    (x, xs), v = case.make(6), bound(6)
    entries = case.random.choice(([3, 0, 5, 1, 4, 2], [7, 0, 3, 1, 9, 4], [3, 0, 5, 1, 3, 2]))
    case.random.shuffle(entries)
    sign, c = case.random.choice((1, -1)), case.random.randrange(3)
    form = expr.subtract(expr.lookup(tuple(entries), expr.of_var(v)), expr.scale(case.i, sign))
    held = guards.interval(form, c, c)
    found = reduce_sum([v], algebra.multiply(held, at(x, v)))
    return found, case.each(lambda i, j: sum(xs[k] for k in range(6) if entries[k] - sign * i == c))


@instance("what is picked one by one")
def _picked(case: Case) -> tuple[Poly, Array]:
    """Some of the pieces that integers pick, in any order, one of them by chance another's; over places, or at one."""
    (e, es), (x, xs), size = looked_up(case, 6, 5), case.make(5, 6), case.random.choice((1, 6))
    places = case.random.sample(range(5), case.random.choice((2, 4, 5)))
    other, v = case.random.choice((0, 0, 1)), bound(size)
    place = expr.of_var(v) if size > 1 else case.i
    picks = algebra.as_index(algebra.read(e, [place]), -128, 127)

    def piece(k: int, row: int) -> Poly:
        held = guards.interval(picks, k, k)
        return reduce_sum([v] if size > 1 else [], algebra.multiply(held, at(x, expr.constant(row), place)))

    rows = dict(zip(places, [*places[1:], places[0]] if other else places, strict=True))
    found = neighbours.joined(algebra.add(*(piece(k, row) for k, row in rows.items())))
    values = [xs[rows[int(k)], n] if int(k) in rows else 0 for n, k in enumerate(es)]
    return found, case.each(lambda i, j: sum(values) if size > 1 else values[i])


@instance("digits reunited")
def _reunited(case: Case) -> tuple[Poly, Array]:
    m, n, k = case.random.choice(((6, 2, 4), (6, 4, 4), (12, 2, 8), (9, 2, 6)))
    (x, xs), (y, ys), (z, zs) = case.make(m * n), case.make(k), case.make(case.random.choice((1, 3, 4)))
    a, b = bound(m), bound(n)
    turn = m + case.random.choice((0, 0, 1, k))
    low, high = expr.of_var(a), expr.of_var(b)
    where = expr.modulo(expr.add(low, expr.scale(high, turn)), k)
    own = at(z, expr.modulo(low, z.shape[0]))
    whole = at(x, expr.add(low, expr.scale(high, m)))
    found = reduce_sum([a, b], algebra.multiply(algebra.multiply(whole, at(y, where)), own))
    wanted = sum(xs[q + m * r] * ys[(q + turn * r) % k] * zs[q % len(zs)] for q in range(m) for r in range(n))
    return found, case.each(lambda i, j: wanted)


@instance("table in a condition")
def _tabled(case: Case) -> tuple[Poly, Array]:
    """Of entries in one piece, in several, or of none."""
    entries = case.random.choice(((1, 1, 1, 0), (0, 2, 2, 1), (0, 1, 0, 1), (3, 3, 5, 5), (0, 4, 1, 1)))
    a, b = case.random.choice(((None, 0), (1, None), (1, 2), (2, 4), (1, 1)))
    place = expr.clamp(case.i, 0, 3)
    found = guards.interval(expr.table(entries, place), a, b)
    wanted = [int((a is None or a <= t) and (b is None or t <= b)) for t in entries]
    return found, case.each(lambda i, j: wanted[min(i, 3)])


@instance("conditions side by side")
def _side_by_side(case: Case) -> tuple[Poly, Array]:
    """Sums of products under conditions on a < m and b < n in any multiples, at places m*b + a, or at digits of one."""
    m, n = case.random.choice(((6, 2), (4, 3), (5, 4), (12, 2)))
    (x, xs), (y, ys) = case.make(m * n), case.make(m * n)
    v, low, high = bound(m * n), bound(m), bound(n)
    is_one = case.random.random() < 0.5
    a, b = (
        (expr.modulo(expr.of_var(v), m), expr.floor_div(expr.of_var(v), m)) if is_one else map(expr.of_var, (low, high))
    )
    place = expr.add(a, expr.scale(b, m))
    total, wanted = algebra.add(), 0
    for _ in range(case.random.choice((1, 2, 3))):
        read, values = case.random.choice(((x, xs), (y, ys)))
        product, held = at(read, place), np.ones((n, m), dtype=bool)
        for _ in range(case.random.choice((1, 2))):
            k, c = case.random.choice((0, 1, m - 2, m - 1, m + 2, -m)), case.random.choice((1, 1, 2, -1))
            form = expr.add(expr.scale(a, c), expr.scale(b, c * k))
            lo = case.random.randrange(form.lo, form.hi + 1)
            hi = case.random.choice((None, lo, case.random.randrange(lo, form.hi + 1)))
            product = algebra.multiply(guards.interval(form, lo, hi), product)
            at_each = c * (np.arange(m)[None] + k * np.arange(n)[:, None])
            held &= (at_each >= lo) & (True if hi is None else at_each <= hi)
        total = algebra.add(total, product)
        wanted += (values.reshape(n, m) * held).sum()
    found = reduce_sum([v] if is_one else [low, high], side_by_side.on_places(total))
    return found, case.each(lambda i, j: wanted)
