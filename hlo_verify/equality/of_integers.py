"""Conditions on what is equal, and what is read there: one integer of a term in the place of another that it equals.

    [sum v<16. [v <= 4*d + i] [e[v] = 1] <= 3]
        =   [sum j<4, w<4. [j < d] [e[4*j + w] = 1] + sum w<4. [w <= i] [e[4*d + w] = 1] <= 3]

The integers are counts, or elements, that are what the machine holds as they stand: of what wraps, terms may be equal
only as often as the type has values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from hlo_verify.equality.opening import arguments, opened
from hlo_verify.equality.prefixes import by_parts
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.counts import range_of_count
from hlo_verify.terms.machine import own_value
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.term import ZERO, Atom, Guard, Ix, Poly, Read, atoms, indices, value_of

MOST = 4
"""Of so many integers each two are compared; of more, none."""


def with_one_for_two(p: Poly, is_zero: Callable[[Poly], bool]) -> Poly | None:
    """A term with one integer in the place of another that it equals; None where no two are seen to be equal."""
    found = dict.fromkeys(_less_constant(e) for a in atoms(p) if isinstance(a, Guard | Read) for e in indices(a))
    wholes = {e: whole for e in found if (whole := counted(e)) is not None}
    if 1 < len(wholes) <= MOST:
        for one, other in combinations(wholes, 2):
            if one.free == other.free and _are_one(wholes[one], wholes[other], is_zero):
                return _instead(p, other, one)
    return _with_one_clamp_for_two(p, is_zero)


def _with_one_clamp_for_two(p: Poly, is_zero: Callable[[Poly], bool]) -> Poly | None:
    """The same of integers that a number bounds, as in `s / maximum(m + n, 1)`."""
    places = dict.fromkeys(a.index for a in atoms(p) if isinstance(a, Ix))
    clamps = {part: clamp for e in places for part, _ in e.items if (clamp := _clamp(part)) is not None}
    if not 1 < len(clamps) <= MOST:
        return None
    for one, other in combinations(clamps, 2):
        (reached, whole), (bounds, rest) = clamps[one], clamps[other]
        if reached == bounds and one.free == other.free and _are_one(whole, rest, is_zero):
            return rebuilt(p, {}, {e: _with_part(e, other, one) for e in places})
    return None


def _are_one(a: Poly, b: Poly, is_zero: Callable[[Poly], bool]) -> bool:
    return arguments(a) == arguments(b) and any(map(is_zero, _spelled(algebra.subtract(a, b))))


def _clamp(part: Digit | Opaque) -> tuple[tuple[int | None, int | None], Poly] | None:
    """The bounds that an integer which is bounded may reach, and that integer."""
    if not isinstance(part, Opaque) or part.operator != "clamp":
        return None
    (inner,), (lo, hi) = part.exprs, part.args
    whole = counted(inner)
    reached = None if lo <= inner.lo else lo, None if hi >= inner.hi else hi
    return None if whole is None else (reached, whole)


def _with_part(e: Index, old: Digit | Opaque, new: Digit | Opaque) -> Index:
    return expr.build(e.const, [(new if part is old else part, c) for part, c in e.items])


def _less_constant(e: Index) -> Index:
    return expr.shift(e, -e.const)


def _spelled(p: Poly) -> Iterator[Poly]:
    """A term, and with its sums up to a place written part by part."""
    yield p
    parts = by_parts(opened(p))
    if parts is not None:
        yield parts


def counted(e: Index) -> Poly | None:
    """An index expression with counts in it as a term, without its constant; None where it has none, or something that
    may wrap."""
    total, counts = ZERO, 0
    for part, c in e.items:
        own = algebra.of_index(expr.of_atom(part))
        if isinstance(part, Opaque) and part.operator == "value" and own_value(part) is None:
            own = value_of(part)
            known = None if own.atom is None else range_of_count(own.atom)
            if known is None or known[0] < part.lo or known[1] > part.hi:
                return None
            counts += 1
        total = algebra.add(total, algebra.scale(own, c))
    return total if counts else None


def _instead(p: Poly, old: Index, new: Index) -> Poly:
    """A term with an integer in the place of another, with any constant beside it."""
    conditions: dict[Atom, Poly] = {}
    places: dict[Index, Index] = {}
    for atom in atoms(p):
        for e in indices(atom):
            if _less_constant(e) is old:
                places[e] = expr.shift(new, e.const)
                if isinstance(atom, Guard):
                    conditions[atom] = guards.interval(places[e], atom.lo, atom.hi)
    return rebuilt(p, conditions, places)
