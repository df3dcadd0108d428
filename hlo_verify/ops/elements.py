"""Terms that read something at an element that a program looks up: the same term of any other element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.places import with_values
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.term import Atom, Guard, Poly, Read, atoms, indices


def places(p: Poly) -> Iterator[Index]:
    """Where a term reads tensors."""
    return (e for atom in atoms(p) if isinstance(atom, Read) for e in atom.indices)


def opaque(e: Index) -> Iterator[Opaque]:
    """The opaque integers in an index expression, in one another too."""
    for atom, _ in e.items:
        if isinstance(atom, Opaque):
            yield atom
            for inner in atom.exprs:
                yield from opaque(inner)


def elsewhere(p: Poly, which: Read, w: Var) -> Poly | None:
    """The term at element w in the place of the one that is looked up, on which it may depend otherwise too; None where
    it reads nothing there."""
    image: dict[Atom, Poly] = {which: algebra.of_index(expr.of_var(w))}
    return replaced(p, image) if any(_place(e, image) is not e for e in places(p)) else None


def moved(p: Poly, which: Atom, w: Var) -> Poly:
    """The term with a variable in the place of an integer that is looked up."""
    return replaced(p, {which: algebra.of_index(expr.of_var(w))})


def replaced(p: Poly, images: Mapping[Atom, Poly]) -> Poly:
    """The term with others in the place of some atoms, in places and conditions too."""
    there = dict(images)
    at: dict[Index, Index] = {}
    for atom in atoms(p):
        for e in indices(atom):
            at[e] = _place(e, images)
        if isinstance(atom, Guard) and atom not in images:
            there[atom] = guards.interval(at[atom.form], atom.lo, atom.hi)
    return rebuilt(p, there, at)


def _place(e: Index, images: Mapping[Atom, Poly]) -> Index:
    return with_values(e, lambda p: replaced(p, images))
