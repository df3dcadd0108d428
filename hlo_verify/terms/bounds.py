"""Intervals that integer terms surely lie in, with nothing wrapped."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from itertools import product
from math import prod

from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import algebra, ranges, whole
from hlo_verify.terms.conditions import numbers_of
from hlo_verify.terms.counts import range_of_count
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.functions import EXTREMA, MAXIMUM, wrap
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Ix, Monomial, Number, Poly, Read, of_atom


def within(p: Poly, lo: int, hi: int, sums: bool = False) -> bool:
    """Whether the integers that p evaluates to surely lie in that interval, with nothing wrapped; `sums` as below."""
    found = bounds(p, sums)
    return found is not None and lo <= found[0] and found[1] <= hi


def that_fits(atom: Atom) -> Poly | None:
    """The integer of which an atom is the machine value, where it surely lies in the type's range, as a sum too."""
    if not isinstance(atom, Apply) or atom.function != wrap(atom.function.gives):
        return None
    return atom.args[0] if within(atom.args[0], *INTEGER_RANGES[atom.function.gives], sums=True) else None


def types() -> Collection[tuple[int, int]]:
    """The intervals of the types of integers."""
    return INTEGER_RANGES.values()


@once_a_session
def bounds(p: Poly, sums: bool = False) -> tuple[int, int] | None:
    """An interval that the integers which p evaluates to surely lie in, with nothing wrapped.

    Of a choice among terms (`c*a + (1-c)*b` for a truth value c) the one that the bounds of each lie in. A count
    of what holds is no more than what is counted. Any other definition of a sum has bounds where `sums` are asked for
    alone, as what is decided by them makes parts of a sum other terms than the whole.
    """
    truths = list(dict.fromkeys(atom for mono, _ in p.items for atom, _ in mono if atom.boolean))
    if len(p.items) == 1 or not truths or not allows("bound_choices", len(truths)):
        return _sum_bounds(p.items, sums)
    found: list[tuple[int, int] | None] = []
    for choice in product((True, False), repeat=len(truths)):
        true = {atom for atom, holds in zip(truths, choice, strict=True) if holds}
        if functools.reduce(algebra.multiply, (of_atom(atom) for atom in truths if atom in true), ONE) is ZERO:
            continue  # they exclude one another
        here: dict[Monomial, Number] = {}
        for mono, c in p.items:
            if all(not atom.boolean or atom in true for atom, _ in mono):
                rest = numbers_of(mono)
                here[rest] = here.get(rest, 0) + c
        found.append(_sum_bounds(here.items(), sums))
    return functools.reduce(_hull, found)


def _sum_bounds(items: Iterable[tuple[Monomial, Number]], sums: bool) -> tuple[int, int] | None:
    lo = hi = 0
    for mono, c in items:
        if not isinstance(c, int):
            return None
        numbers = numbers_of(mono)
        least, greatest = 1, 1
        if numbers:
            found = _atom_bounds(numbers[0][0], sums) if len(numbers) == 1 and numbers[0][1] == 1 else None
            if found is None:
                return None
            least, greatest = found
        if len(numbers) < len(mono):  # times a truth value
            least, greatest = min(least, 0), max(greatest, 0)
        lo += min(c * least, c * greatest)
        hi += max(c * least, c * greatest)
    return lo, hi


def _times(found: tuple[int, int] | None, count: int) -> tuple[int, int] | None:
    """The interval of a sum of so many numbers of that interval."""
    return found and (count * found[0], count * found[1])


def _hull(a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int] | None:
    """The interval that two intervals lie in."""
    return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))


def _atom_bounds(atom: Atom, sums: bool) -> tuple[int, int] | None:
    """Likewise for an atom: a machine value has its type's range. A definition of a polynomial may have wrapped, so
    that it is asked what it sums: ten truth values are 0 to 10."""
    if isinstance(atom, Ix):
        return atom.index.lo, atom.index.hi
    if isinstance(atom, Read):
        if atom.tensor.kind in ("max", "min"):
            _, (body,) = unfold(atom)
            named = body.atom
            return bounds(
                unfold(named)[1][0] if isinstance(named, Read) and named.tensor.kind == "term" else body, sums
            )
        if atom.tensor.kind in ("argmax", "argmin"):  # the index of a pair, or the initial one
            _, (_, index, _, initial) = unfold(atom)
            return _hull(bounds(index, sums), bounds(initial, sums))
        if atom.tensor.kind == "sort":
            return _sorted_bounds(atom, sums)
        if sums and atom.tensor.kind in ("sum", "term"):
            bound, (body,) = unfold(atom)
            return _times(bounds(body, sums), prod(v.size for v in bound))
        if atom.tensor.kind == "sum":
            return range_of_count(atom)
        return None if atom.tensor.kind in ("sum", "product", "term") else ranges.of_elements(atom.tensor)
    if isinstance(atom, Apply):
        if atom.function in EXTREMA.values():
            parts = [bounds(arg, sums) for arg in atom.args]
            if any(part is None for part in parts):
                return whole.range_of(of_atom(atom))
            pick = max if atom.function == MAXIMUM else min
            return pick(part[0] for part in parts if part), pick(part[1] for part in parts if part)
        if atom.function in whole.ROUNDING:
            return whole.range_of(of_atom(atom))
        return INTEGER_RANGES.get(atom.function.gives)
    return 0, 1


def _sorted_bounds(atom: Read, sums: bool) -> tuple[int, int] | None:
    """Of what is sorted, which is of its type: the bounds of what it is made of, where that does not wrap."""
    own = INTEGER_RANGES.get(atom.tensor.dtype)
    found = bounds(unfold(atom)[1][atom.tensor.attributes[2]], sums)
    return found if own and found and own[0] <= found[0] and found[1] <= own[1] else own
