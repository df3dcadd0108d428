"""The conditions of a sum of products, decided case by case: guards and truth values are factors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from hlo_verify.index.expr import Index
from hlo_verify.terms import guards
from hlo_verify.terms.addition import build
from hlo_verify.terms.term import Atom, Guard, Monomial, Number, Poly, Read, make_poly, of_atom

MANY = 64
"""Of more truth values than this, cases are counted as if they were so many: nobody looks at 2^64."""

SIDE = "side"
"""The kind of truth values of which one holds at most: what they select is never added up (`equality.sides`)."""

Bound = int | None


Split = tuple[tuple[Atom, ...], Monomial, Number]
"""A product: its factors that are conditions, the others, and its coefficient."""


def numbers_of(mono: Monomial) -> Monomial:
    """The factors of a product that are no conditions."""
    return tuple(item for item in mono if not item[0].boolean)


def split(items: Iterable[tuple[Monomial, Number]]) -> list[Split]:
    """Products as they are looked at case by case."""
    return [(tuple(atom for atom, _ in mono if atom.boolean), numbers_of(mono), c) for mono, c in items]


def by_numbers(p: Poly) -> dict[Monomial, dict[Monomial, Number]]:
    """The products of a term by their factors that are no conditions: how often each is taken, by its conditions."""
    found: dict[Monomial, dict[Monomial, Number]] = {}
    for mono, c in p.items:
        found.setdefault(numbers_of(mono), {})[tuple(item for item in mono if item[0].boolean)] = c
    return found


@dataclass(frozen=True, slots=True)
class Case:
    """Where the forms of guards lie, and which truth values hold."""

    pieces: dict[Index, tuple[Bound, Bound]]
    truths: dict[Atom, bool]

    def coefficients(self, items: Iterable[tuple[Monomial, Number]]) -> dict[Monomial, Number]:
        """What is computed in this case: products without conditions, each with its coefficient."""
        return self.computed(split(items))

    def computed(self, items: Iterable[Split]) -> dict[Monomial, Number]:
        """The same of products that are split, which for many cases is done once."""
        found: dict[Monomial, Number] = {}
        for conditions, numbers, c in items:
            if all(map(self.holds, conditions)):
                found[numbers] = found.get(numbers, 0) + c
        return {mono: c for mono, c in found.items() if c}

    def holds(self, atom: Atom) -> bool:
        if not isinstance(atom, Guard):
            return self.truths[atom]
        lo, hi = self.pieces[atom.form]
        above = atom.lo is None or (lo is not None and lo >= atom.lo)
        return above and (atom.hi is None or (hi is not None and hi <= atom.hi))

    def condition(self) -> Poly:
        """The case as a truth value."""
        from hlo_verify.terms.products import multiply  # products are checked here

        result = make_poly((((), 1),))
        for form, (lo, hi) in self.pieces.items():
            result = multiply(result, guards.interval(form, lo, hi))
        for atom, holds in self.truths.items():
            result = multiply(result, of_atom(atom) if holds else build({(): 1, ((atom, 1),): -1}))
        return result


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions on some products: the intervals between the ends of guards, by form, and other truth values."""

    forms: dict[Index, list[tuple[Bound, Bound]]]
    truths: list[Atom]

    @staticmethod
    def of(monomials: Iterable[Sequence[tuple[Atom, Number]]]) -> Conditions:
        ends: dict[Index, set[int]] = {}
        truths: dict[Atom, None] = {}
        for mono in monomials:
            for atom, _ in mono:
                if isinstance(atom, Guard):
                    found = ends.setdefault(atom.form, set())
                    found.update(end for end in (atom.lo, None if atom.hi is None else atom.hi + 1) if end is not None)
                elif atom.boolean:
                    truths[atom] = None
        forms = {
            form: [(start, None if end is None else end - 1) for start, end in pairwise([None, *sorted(found), None])]
            for form, found in ends.items()
        }
        return Conditions(forms, list(truths))

    @property
    def count(self) -> int:
        total = 1 << min(len(self.truths), MANY)
        for pieces in self.forms.values():
            total *= len(pieces)
        return total

    def cases(self) -> Iterator[Case]:
        for pieces in product(*self.forms.values()):
            where = dict(zip(self.forms, pieces, strict=True))
            for held in product((True, False), repeat=len(self.truths)):
                truths = dict(zip(self.truths, held, strict=True))
                if sum(holds and is_side(atom) for atom, holds in truths.items()) <= 1:
                    yield Case(where, truths)


def is_side(atom: Atom) -> bool:
    """Whether a condition selects a side of a comparison."""
    return isinstance(atom, Read) and atom.tensor.kind == SIDE
