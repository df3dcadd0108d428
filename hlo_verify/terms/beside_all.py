"""Sums in which some elements count for more than all others: those of all elements, and what is more of some.

    sum v. [v < e] c*f(v) + [v = e] k*f(v) + [v > e] c*f(v)     =     c * (sum v. f(v)) + (k - c)*f(e)

So `sum v. (0.9*[v = e] + 0.1/n) * f(v)`, a loss with smooth labels, has no sum of part of the elements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from hlo_verify.index.expr import Index, Var
from hlo_verify.terms import guards
from hlo_verify.terms.term import Guard, Monomial, Number, Poly, make_poly
from hlo_verify.terms.used import used

Piece = tuple[Guard, Monomial, Number]


def over_all(p: Poly, bound: Collection[Var]) -> tuple[Poly, Poly] | None:
    """A term that is to be summed over some variables in two parts, with three pieces of a product made two: at all
    places, and at those between. There it has the same sign and is larger, so that what is more has that sign too."""
    if len(p.items) < 3:
        return None
    for (_, rest), pieces in _by_form(p, bound).items():
        if len(pieces) != 3 or any(atom.doubt for atom, _ in rest):
            continue
        before, between, behind = sorted(pieces, key=lambda piece: (piece[0].lo is not None, piece[0].hi is None))
        if _are_all(before[0], between[0], behind[0]) and before[2] == behind[2] and between[2] / before[2] > 1:
            used("more than all others")
            gone = (before[1], between[1], behind[1])
            left = [item for item in p.items if item[0] not in gone]
            more = (between[1], between[2] - before[2])
            return make_poly(((rest, before[2]),)), make_poly((*left, more))
    return None


def _by_form(p: Poly, bound: Collection[Var]) -> dict[tuple[Index, Monomial], list[Piece]]:
    """The products with a condition on an index that some variables take part in, by that and by what is beside it."""
    found: dict[tuple[Index, Monomial], list[Piece]] = defaultdict(list)
    for mono, c in p.items:
        for guard in guards.guards_of(mono):
            if not guard.form.free.isdisjoint(bound):
                found[guard.form, guards.without(mono, guard)].append((guard, mono, c))
    return found


def _are_all(before: Guard, between: Guard, behind: Guard) -> bool:
    """Whether three conditions are those on an index that is less, in a range, or greater."""
    if before.lo is not None or behind.hi is not None or before.hi is None or behind.lo is None:
        return False
    return between.lo == before.hi + 1 and between.hi == behind.lo - 1
