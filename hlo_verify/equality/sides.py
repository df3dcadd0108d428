"""The two sides of a comparison in one term, kept apart.

What may be no number does not cancel within one side (`terms.losses`), but does between the two: `t` is `t`, number or
not. So each side is selected by a truth value of its own, and the sides are put together only to see what is left.
"""

from __future__ import annotations

from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra
from hlo_verify.terms.conditions import SIDE, numbers_of
from hlo_verify.terms.term import Monomial, Number, Poly, Read, Tensor, make_poly, mix, next_uid

FOUND, EXPECTED = "found", "expected"


@once_a_session
def _truth(side: str) -> Tensor:
    """The truth value that selects a side."""
    return Tensor(SIDE, side, "i1", (), next_uid(), mix(SIDE, side))


def apart(found: Poly, expected: Poly) -> Poly:
    """The difference of two terms; of terms that may be no numbers, less what both have, as a term of two sides.

    What may be no number both have where they compute it under the same conditions: of `t - [c]*t` and `t - [d]*t`, t
    alone is not left out, as the one computes it where c does not hold and the other where d does not.
    """
    if not (found.doubt or expected.doubt):
        return algebra.difference(found, expected)
    common = set(found.items) & set(expected.items)
    mine, others = _selections(found), _selections(expected)
    common = {
        item for item in common if (numbers := numbers_of(item[0])) not in mine or mine[numbers] == others[numbers]
    }
    terms: dict[Monomial, Number] = {}
    for which, p in ((FOUND, found), (EXPECTED, expected)):
        own = make_poly(tuple(item for item in p.items if item not in common))
        terms.update(algebra.expanded(algebra.read(_truth(which), ()), own).items)
    return algebra.build(terms)


def _selections(p: Poly) -> dict[Monomial, set[tuple[Monomial, Number]]]:
    """The products of numbers that may be none, each with all conditions that it is under."""
    found: dict[Monomial, set[tuple[Monomial, Number]]] = {}
    for mono, c in p.items:
        numbers = numbers_of(mono)
        if any(atom.doubt for atom, _ in numbers):
            found.setdefault(numbers, set()).add((mono, c))
    return found


def together(p: Poly) -> Poly:
    """What is left of one side less the other: both are positive while they are apart, and no product is of both."""
    if not any(_side(mono) for mono, _ in p.items):
        return p
    terms: dict[Monomial, Number] = {}
    for mono, c in p.items:
        sides = _side(mono)
        if len(sides) == 1:
            rest = tuple(item for item in mono if item[0] not in sides)
            terms[rest] = terms.get(rest, 0) + (c if sides[0].tensor is _truth(FOUND) else -c)
    return algebra.build(terms)


def both(p: Poly) -> tuple[Poly, Poly]:
    """The two sides of a comparison; a difference is one side, less nothing."""
    terms: dict[str, dict[Monomial, Number]] = {FOUND: {}, EXPECTED: {}}
    for mono, c in p.items:
        own = tuple(item for item in mono if item[0] not in _side(mono))
        terms[EXPECTED if is_of(mono, EXPECTED) else FOUND][own] = c
    return algebra.build(terms[FOUND]), algebra.build(terms[EXPECTED])


def _side(mono: Monomial) -> list[Read]:
    return [atom for atom, _ in mono if isinstance(atom, Read) and atom.tensor.kind == SIDE]


def is_of(mono: Monomial, side: str) -> bool:
    """Whether a product is of a side of a comparison."""
    return any(atom.tensor is _truth(side) for atom in _side(mono))
