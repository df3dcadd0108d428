"""Terms at places of one form, of which something is asked once for all of them.

e[4*i + j, k]        as        e[a, b]    with an a of as many values as 4*i + j may have
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from hlo_verify.index import expr
from hlo_verify.index.expr import UNBOUNDED, Digit, Index
from hlo_verify.terms.term import Guard, Ix, Poly, Read, atoms, indices, make_read

_PLACE = "edge"
"""Of the variables that places are in."""


def apart(terms: tuple[Poly, ...]) -> tuple[Poly, ...]:
    """Terms with a variable in place of each expression that elements are read at, where no two of these are about the
    same digits: of all places within their bounds it is asked once, and where nothing is outside at any of these,
    nothing is at fewer. Terms as they are, where places are asked about otherwise."""
    from hlo_verify.terms.rebuilding import rebuilt  # made of terms

    inside = dict.fromkeys(atom for p in terms for atom in atoms(p))
    places = dict.fromkeys(e for atom in inside for e in indices(atom) if e.items)
    if any(isinstance(atom, Guard | Ix) for atom in inside) or any(e.lo < 0 or e.hi >= UNBOUNDED for e in places):
        return terms
    if not _are_of_other_digits(places):
        return terms
    there = {e: expr.of_var(expr.var(_PLACE, n, e.hi + 1)) for n, e in enumerate(places)}
    return terms if all(e is place for e, place in there.items()) else tuple(rebuilt(p, {}, there) for p in terms)


def _are_of_other_digits(places: Iterable[Index]) -> bool:
    """Whether no digit of a variable takes part in two of some expressions."""
    taken = [(atom, n) for n, e in enumerate(places) for atom in _digits(e)]
    return not any(
        n != m and one.var is other.var and one.low < other.low * other.radix and other.low < one.low * one.radix
        for (one, n), (other, m) in combinations(taken, 2)
    )


def _digits(e: Index) -> Iterator[Digit]:
    """The digits that an expression is made of, those in what is no sum of digits as a whole variable."""
    for atom, _ in e.items:
        if isinstance(atom, Digit):
            yield atom
        else:
            yield from (digit for v in atom.free for digit, _ in expr.of_var(v).items if isinstance(digit, Digit))


def renamed(read: Read) -> Read:
    """The element at a place of the same form, which is asked of once, whatever variables it is in: those of sums are
    new ones each time that a definition is unfolded, and so on in what that is made of."""
    from hlo_verify.terms.substitution import Substitution  # made of terms

    own = dict.fromkeys(v for e in read.indices for part, _ in e.items for v in sorted(part.free, key=lambda v: v.uid))
    if all(v.prefix == _PLACE for v in own):
        return read
    there = Substitution({v: expr.of_var(expr.var(_PLACE, n, v.size)) for n, v in enumerate(own)})
    return make_read(read.tensor, tuple(map(there.index, read.indices)))
