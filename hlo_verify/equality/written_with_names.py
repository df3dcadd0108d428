"""Single elements written out, with names for the sums that products multiply.

    tanh(h + h^3)   for   h = a*u[0] + b*u[1] + ...      is      tanh(a*u[0] + b*u[1] + ... + n^3),  n for h
    a*u[0]*n^2 + b*u[1]*n^2 + ...                        is      n^3

A gelu of a long sum of products, such as what a scan comes to, has the third power of it: thousands of products once
they are written out. Both sides of a comparison have the same sums in them where they are right. Of a product of sums
those have names that are powers, or else the largest, and the others are multiplied out. A sum has the name of its
products in order, without what all of them share; and what a name is multiplied by has one too, so that the whole is
the same power however much of it is written as one.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod

from hlo_verify.equality.summands import SpentError, Steps
from hlo_verify.equality.written_out import Writing, are_one
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define
from hlo_verify.terms.products import mapped, product_with
from hlo_verify.terms.term import Atom, Monomial, Number, Poly, make_poly


def seen_written_out(found: Poly, expected: Poly, inside: Poly, steps: Steps) -> bool:
    """Whether two terms without variables are one once they are written out so, or without names, in few steps."""
    if found.free or expected.free or inside.free:
        return False
    try:
        return any(are_one(found, expected, inside, writing(steps)) for writing in (_WithNames, Writing))
    except SpentError:
        return False


class _WithNames(Writing):
    """Writes terms out, with names for sums in products."""

    def __init__(self, steps: Steps) -> None:
        super().__init__(steps)
        self.names: set[Atom] = set()

    def poly(self, p: Poly) -> Poly:
        found = self.written.get(p.uid)
        if found is None:
            self.steps.take(len(p.items))
            found = self.written[p.uid] = self._gathered(mapped(p, self._product))
            self.steps.take(len(found.items))
        return found

    def _product(self, mono: Monomial) -> Poly:
        """A product, with names for the powers in it, or else for its largest sum."""
        sums = {atom: len(self.atom(atom).items) for atom, _ in mono if len(self.atom(atom).items) > 1}
        powers = {atom for atom, n in mono if atom in sums and n != 1}
        if len(sums) > 1 and not powers:
            powers = {max(sums, key=lambda atom: (sums[atom], atom.uid))}
        left = prod(n for atom, n in sums.items() if atom not in powers)
        self.steps.take(len(mono) * left)
        return product_with(mono, lambda atom: self._named(self.atom(atom)) if atom in powers else self.atom(atom))

    def _named(self, p: Poly) -> Poly:
        """A name for a sum, times what all of its products share."""
        if len(p.items) < 2 or any(atom.boolean for mono, _ in p.items for atom, _ in mono):
            return p
        shared, c, rest = _content(p)
        name = define("term", (), (rest,))
        self.names.update(atom for mono, _ in name.items for atom, _ in mono)
        return algebra.scale(algebra.expanded(make_poly(((shared, 1),)), name), c)

    def _gathered(self, p: Poly) -> Poly:
        """A term with a name for what each product of names is multiplied by."""
        beside: dict[Monomial, dict[Monomial, Number]] = {}
        for mono, c in p.items:
            named = tuple(item for item in mono if item[0] in self.names)
            beside.setdefault(named, {})[tuple(item for item in mono if item[0] not in self.names)] = c
        if all(not named or len(others) == 1 for named, others in beside.items()):
            return p
        parts = []
        for named, others in beside.items():
            rest = algebra.build(others)
            parts.append(algebra.expanded(make_poly(((named, 1),)), self._named(rest)) if named else rest)
        return algebra.add(*parts)


def _content(p: Poly) -> tuple[Monomial, Number, Poly]:
    """The factors that all products of a term have, a number, and the rest, whose first number is 1."""
    (first, c), *others = p.items
    shared = tuple(item for item in first if all(item in mono for mono, _ in others))
    rest: dict[Monomial, Number] = {
        tuple(item for item in mono if item not in shared): Fraction(k) / Fraction(c) for mono, k in p.items
    }
    return shared, c, algebra.build(rest)
