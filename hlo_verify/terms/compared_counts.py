"""Counts of truth values compared with numbers.

    [sum v. p(v) >= 1]  is  max v. p(v)          for p that is 1 or 0, as `any` is written with sums
    [sum v. p(v) = n]   is  min v. p(v)          for n values of v, as `all` is
    [m + n <= 0]        is  [m <= 0] [n <= 0]     for counts m and n, and so where each is as many as there are
    [n + p > 0]         is  1 - [n <= 0] (1-p)    for a count and a truth value

Where p has conditions on places, n is the number of places where they hold, and the others are as if p were 1 there:
`cumsum(x <= 0) == 0` is a running `and`, as `cumprod(x > 0)` is.

Floats that are no short binary numbers are rounded: `0.7*n > 8.4` is true of 12 in real arithmetic and not in floats.
Where a count comes so near to what it is compared with, nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import reduce
from math import ceil, floor, lcm, prod

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque
from hlo_verify.memory import once_a_session
from hlo_verify.terms.addition import build, of_index, scale
from hlo_verify.terms.functions import IS_ZERO, Function
from hlo_verify.terms.products import add, multiply, subtract
from hlo_verify.terms.roundings import ROUNDING, is_rounded
from hlo_verify.terms.term import (
    ONE,
    ZERO,
    Guard,
    Ix,
    Monomial,
    Number,
    Poly,
    Read,
    asked,
    make_poly,
    number,
    of_atom,
    value_of,
)
from hlo_verify.terms.truths import is_count, what_is_counted
from hlo_verify.terms.used import used

Arguments = tuple[Poly, ...]
Bound = int | None


@once_a_session
def _count_of_all(count: Read) -> Poly:
    """For how many values of its variables the conditions hold that a count has on places and integers."""
    from hlo_verify.terms.definitions import at_places  # which is built on guards
    from hlo_verify.terms.sums import reduce_sum  # which asks for truth values

    source = count.tensor
    where = _where(source.bodies[0])
    if where is source.bodies[0] and _is_looked_up(where):
        return of_atom(count)  # there is nothing else
    bound, there = at_places(source, count.indices[: len(source.params)])
    return reduce_sum(bound, there.poly(where))


def _is_looked_up(p: Poly) -> bool:
    """Whether conditions ask for integers that are values of terms."""
    return any(isinstance(atom, Guard) and asked(atom.form) for mono, _ in p.items for atom, _ in mono)


def _where(p: Poly) -> Poly:
    """The conditions on places of a product."""
    return make_poly(((tuple(item for item in p.items[0][0] if isinstance(item[0], Guard)), 1),))


def _is_at_least(count: Read, least: Poly) -> Poly | None:
    """`[sum v. p >= least]` as 1, 0, or as whether any or all of those counted hold; None if it is none of these."""
    from hlo_verify.terms.extrema import reduce_extremum  # which asks for truth values

    wanted = least.constant
    if wanted is not None and wanted <= 0:
        return ONE
    is_any = wanted is not None and wanted <= 1
    more = 0 if is_any else subtract(least, _count_of_all(count)).constant
    if more is None or more < 0:
        return None
    if more > 0:
        return ZERO
    counted = what_is_counted(count)
    if counted is None:
        return None
    bound, p = counted
    return reduce_extremum("max", bound, p) if is_any else reduce_extremum("min", bound, add(_not_where(p), p))


def _not_where(p: Poly) -> Poly:
    return add(ONE, scale(_where(p), -1))


def asked_of_integers(form: Index, lo: Bound, hi: Bound) -> Poly | None:
    """`[lo <= form <= hi]` where a count of truth values that does not wrap is compared with something."""
    for atom, k in form.items:
        if not isinstance(atom, Opaque) or atom.operator != "value" or not _lies_in(value_of(atom), atom.lo, atom.hi):
            continue
        beside = of_index(expr.subtract(form, expr.scale(expr.of_atom(atom), k)))
        for mono, c in value_of(atom).items:
            counted = _counting(mono)
            if counted is None or abs(c * k) != 1:
                continue
            rest = add(beside, scale(subtract(value_of(atom), make_poly(((mono, c),))), k))
            least, most = (lo, hi) if c * k == 1 else (None if hi is None else -hi, None if lo is None else -lo)
            found = _between(counted, least, most, scale(rest, -c * k))
            if found is not None:
                return found
    return _all_at_an_end(_total(form), lo, hi)


def _total(form: Index) -> Poly:
    """What an index expression adds up, with values in it written out that surely are no others in the machine."""
    values = [(atom, k) for atom, k in form.items if isinstance(atom, Opaque) and atom.operator == "value"]
    written = [(atom, k) for atom, k in values if _lies_in(value_of(atom), atom.lo, atom.hi)]
    rest = reduce(lambda e, part: expr.subtract(e, expr.scale(expr.of_atom(part[0]), part[1])), written, form)
    return add(of_index(rest), *(scale(value_of(atom), k) for atom, k in written))


def _all_at_an_end(total: Poly, lo: Bound, hi: Bound) -> Poly | None:
    """`[lo <= total <= hi]` of counts that are added up, and truth values beside them, with whole coefficients, where
    all of them have to be as great as they may be, or all as small; or where not all may be so."""
    from hlo_verify.terms.counts import are_of_one  # which is built on this

    parts = {mono: c for mono, c in total.items if mono}
    counts = [count for mono in parts if (count := _counting(mono)) is not None]
    truths = [mono for mono in parts if _is_truth(mono)]
    if not counts or len(counts) + len(truths) < max(len(parts), 2) or are_of_one(counts):
        return None
    low = _are_at_least(total, parts, lo)
    beyond = ZERO if hi is None else _are_at_least(total, parts, hi + 1)
    if low is None or beyond is None:
        return None
    used("as many as there are of each")
    return multiply(low, subtract(ONE, beyond))


def _are_at_least(total: Poly, parts: Mapping[Monomial, Number], bound: Bound) -> Poly | None:
    """`[total >= bound]` where one of the counts more or less decides it."""
    ends = _ends(total)
    if ends is None:
        return None
    low, high = ends
    step = min(abs(Fraction(c)) for c in parts.values())
    if bound is None or bound <= low:
        return ONE
    if bound > high:
        return ZERO
    is_all = bound > high - step  # else one that is not at its greatest is enough
    if not is_all and bound > low + step:
        return None
    found = [_at_end(mono, (c > 0) == is_all) for mono, c in parts.items()]
    if any(each is None for each in found):
        return None
    all_of_them = reduce(multiply, (each for each in found if each is not None))
    return all_of_them if is_all else subtract(ONE, all_of_them)


def _at_end(mono: Monomial, greatest: bool) -> Poly | None:
    """Whether a count, or a truth value, is as great as it may be, or 0."""
    if _is_truth(mono):
        return make_poly(((mono, 1),)) if greatest else subtract(ONE, make_poly(((mono, 1),)))
    counted, ends = _counting(mono), _range(mono)
    if counted is None or ends is None:
        return None
    found = _is_at_least(counted, number(ends[1] if greatest else 1))
    return found if greatest or found is None else subtract(ONE, found)


def _counting(mono: Monomial) -> Read | None:
    """The count that a product is, if it is one."""
    atom, n = mono[0] if len(mono) == 1 else (None, 0)
    return atom if isinstance(atom, Read) and n == 1 and is_count(atom) else None


def _is_truth(mono: Monomial) -> bool:
    """Whether a product is one of truth values."""
    return bool(mono) and all(atom.boolean for atom, _ in mono)


def _lies_in(p: Poly, lo: int, hi: int) -> bool:
    """Whether a term of counts and places surely has values of that range alone, so that its machine value is it."""
    ends = _ends(p)
    return ends is not None and ends[0] >= lo and ends[1] <= hi


def _ends(p: Poly) -> tuple[Number, Number] | None:
    """The least and the greatest that a term of counts and places may be; None where one of its parts is none."""
    ranges = [(c, _range(mono)) for mono, c in p.items]
    reached = [sorted(c * end for end in ends) for c, ends in ranges if ends is not None]
    return (sum(low for low, _ in reached), sum(high for _, high in reached)) if len(reached) == len(ranges) else None


def _range(mono: Monomial) -> tuple[int, int] | None:
    if not mono:
        return 1, 1
    if _is_truth(mono):
        return 0, 1
    atom, n = mono[0]
    if len(mono) > 1 or n != 1:
        return None
    if isinstance(atom, Ix):
        return atom.index.lo, atom.index.hi
    return (0, prod(v.size for v in atom.tensor.bound)) if isinstance(atom, Read) and is_count(atom) else None


def _between(counted: Read, least: Bound, most: Bound, beside: Poly) -> Poly | None:
    """`[beside + least <= count <= beside + most]`."""
    low = ONE if least is None else _is_at_least(counted, add(beside, number(least)))
    high = ZERO if most is None else _is_at_least(counted, add(beside, number(most + 1)))
    if low is None or high is None:
        return None
    used("as many as there are")
    return multiply(low, subtract(ONE, high))


def asked_of_reals(function: Function, args: Arguments) -> Poly | None:
    """`[c*count + rest > 0]`, or whether it is 0, where the count is compared with a number or with how many are
    counted: with an integer and a fraction."""
    total = args[0]
    if total.doubt:
        return None
    has_rounded = any(is_rounded(c) for _, c in total.items)
    for mono, c in total.items:
        counted = _counting(mono)
        if counted is None:
            continue
        beside = scale(build({m: k for m, k in total.items if m != mono}), Fraction(-1) / c)
        whole, part = _parts(beside)
        if not _is_integral(whole):
            continue
        if has_rounded and dict(beside.items).get(()) and min(part, 1 - part) <= _rounding(beside):
            return None
        if function == IS_ZERO:
            found = ZERO if part else _between(counted, 0, 0, whole)
        elif c > 0:  # the count is more than what is beside it
            found = _between(counted, floor(part) + 1, None, whole)
        else:
            found = _between(counted, None, ceil(part) - 1, whole)
        if found is not None:
            return found
    if has_rounded and _ends_at_zero(total):
        return None
    total = scale(total, lcm(*(Fraction(c).denominator for _, c in total.items)))
    return _all_at_an_end(total, *((0, 0) if function == IS_ZERO else (1, None)))


def _rounding(total: Poly) -> Fraction:
    """How far from a sum of counts, places and conditions its value in floats may lie."""
    return ROUNDING * sum((abs(Fraction(c)) * _most(mono) for mono, c in total.items), Fraction(0))


def _most(mono: Monomial) -> int:
    """The greatest size of a product of counts, places and conditions, none of which has a root or an inverse."""
    ranges = (_range(((atom, 1),)) or (0, 1) for atom, _ in mono)
    return prod(max(map(abs, ends)) for ends in ranges)


def _ends_at_zero(total: Poly) -> bool:
    """Whether the least or the greatest that a sum of counts may be, or what is next to it, lies within a rounding of
    0."""
    ends = _ends(total)
    if ends is None:
        return False
    low, high = map(Fraction, ends)
    step = min(abs(Fraction(c)) for mono, c in total.items if mono)
    return min(abs(low), abs(low + step), abs(high - step), abs(high)) <= _rounding(total)


def _is_integral(p: Poly) -> bool:
    """Whether a term is surely an integer: a sum of multiples of places, conditions and counts."""
    atoms = (atom for mono, _ in p.items for atom, _ in mono)
    return all(Fraction(c).denominator == 1 for _, c in p.items) and all(
        atom.boolean or isinstance(atom, Ix) or is_count(atom) for atom in atoms
    )


def _parts(p: Poly) -> tuple[Poly, Number]:
    """A term without the fraction of its constant, and that fraction, of at least 0 and less than 1."""
    const = dict(p.items).get((), 0)
    part = const - floor(const)
    return subtract(p, number(part)), part
