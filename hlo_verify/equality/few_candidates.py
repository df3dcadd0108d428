"""The index of the best of few elements, told by which of them beats all others.

    argmin v<2. (x[v], v)      =  [x[1] < x[0]]
    argmax v<3. p(v)           =  (1 - p(0)) p(1) + 2*(1 - p(0)) (1 - p(1)) p(2)

for truth values p, of which the first is the best where none holds. So what a program selects by the first condition
that holds (`jnp.select`) is what others select one by one.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from math import prod

from hlo_verify.equality.best_elements import BEST, at_best, bests_in_places
from hlo_verify.index import expr
from hlo_verify.limits import allows
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.doubts import INTEGRAL
from hlo_verify.terms.functions import POSITIVE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.no_number import infinity
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Poly, Read, number, of_atom

Candidates = list[tuple[int, Poly]]
"""The indices of elements, in order, and these elements."""


def told_apart(p: Poly) -> Poly | None:
    """A term by which element of few is the best; None where it asks for no such element on its surface."""
    bests = (best for mono, _ in p.items for atom, _ in mono for best in _bests(atom))
    found = next(((best, known) for best in dict.fromkeys(bests) if (known := _candidates(best)) is not None), None)
    if found is None:
        return None
    best, candidates = found
    greatest, dtype = best.tensor.kind == "argmax", best.tensor.attributes[0]
    parts = []
    for n, element in candidates:
        beaten = (_beats(element, other, n < m, greatest, dtype) for m, other in candidates if m != n)
        there = algebra.with_atoms(p, {atom: _at(atom, best, n) for mono, _ in p.items for atom, _ in mono}.get)
        parts.append(algebra.expanded(reduce(algebra.expanded, beaten, ONE), there))
    return algebra.add(*parts)


def _bests(atom: Atom) -> list[Read]:
    own = [atom] if isinstance(atom, Read) and atom.tensor.kind in BEST and atom.tensor.seal is None else []
    return own if isinstance(atom, Apply) else [*own, *bests_in_places(atom)]


def _at(atom: Atom, best: Read, n: int) -> Poly:
    return number(n) if atom is best else at_best(atom, best, n) if best in _bests(atom) else of_atom(atom)


def _candidates(best: Read) -> Candidates | None:
    """The elements that one is the best of; None where they are many, not numbered from 0 on in the order of their
    places, or may be no numbers, and where an initial pair may be better."""
    bound, (value, index, *initial) = unfold(best)
    dtype, greatest = best.tensor.attributes[0], best.tensor.kind == "argmax"
    if (
        value.doubt
        or initial != [_worst(dtype, greatest), ZERO]
        or not allows("step_pieces", prod(v.size for v in bound))
    ):
        return None
    found: dict[int, Poly] = {}
    for each in product(*(range(v.size) for v in bound)):
        mapping = dict(zip(bound, map(expr.constant, each), strict=True))
        n = algebra.substitute(index, mapping).constant
        if not isinstance(n, int) or n in found:
            return None
        found[n] = algebra.substitute(value, mapping)
    return sorted(found.items()) if 0 in found and min(found) == 0 else None


def _worst(dtype: str, greatest: bool) -> Poly:
    """What no element is worse than."""
    if dtype == "i1":
        return ZERO if greatest else ONE
    if not INTEGRAL.fullmatch(dtype):
        return infinity(-1 if greatest else 1)
    values, is_signed = 1 << int(dtype.lstrip("ui")), dtype.startswith("i")
    least = -values // 2 if is_signed else 0
    return number(least if greatest else least + values - 1)


def _beats(element: Poly, other: Poly, is_before: bool, greatest: bool, dtype: str) -> Poly:
    """Whether an element is better than another, or as good and before it."""
    better, worse = (element, other) if greatest else (other, element)
    return algebra.subtract(ONE, _exceeds(worse, better, dtype)) if is_before else _exceeds(better, worse, dtype)


def _exceeds(more: Poly, less: Poly, dtype: str) -> Poly:
    if dtype == "i1":
        return algebra.expanded(more, algebra.subtract(ONE, less))
    difference = algebra.subtract(more, less)
    if not INTEGRAL.fullmatch(dtype):
        return apply(POSITIVE, (difference,))
    return guards.interval(algebra.as_index(difference, -expr.UNBOUNDED, expr.UNBOUNDED), 1, None)
