"""Terms that read something at an element that a program looks up: the same term of any other element."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.places import with_values
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.term import Atom, Guard, Poly, Read, atoms, indices, value_of


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
    return _with_places(p, images, lambda e: _place(e, images))


def with_integer(p: Poly, which: Opaque, at: Index) -> Poly:
    """The term with an index expression in the place of an opaque integer, and of what that is the value of."""
    own = value_of(which).atom if which.operator == "value" else None
    images: dict[Atom, Poly] = {} if own is None else {own: algebra.of_index(at)}

    def placed(e: Index) -> Index:
        return expr.add(expr.constant(e.const), *(expr.scale(image(atom), c) for atom, c in e.items))

    def image(atom: expr.Atom) -> Index:
        if atom is which:
            return at
        if not isinstance(atom, Opaque):
            return expr.of_atom(atom)
        if atom.operator == "value":
            found = with_integer(value_of(atom), which, at)
            return expr.of_atom(atom) if found is atom.term else algebra.as_index(found, atom.lo, atom.hi)
        return expr.again(atom, placed(atom.exprs[0]))

    return _with_places(p, images, placed)


def _with_places(p: Poly, images: Mapping[Atom, Poly], placed: Callable[[Index], Index]) -> Poly:
    """The term with others in the place of some atoms, and with other index expressions."""
    there = dict(images)
    at: dict[Index, Index] = {}
    for atom in atoms(p):
        for e in indices(atom):
            at[e] = placed(e)
        if isinstance(atom, Guard) and atom not in images:
            there[atom] = guards.interval(at[atom.form], atom.lo, atom.hi)
    return rebuilt(p, there, at)


def _place(e: Index, images: Mapping[Atom, Poly]) -> Index:
    return with_values(e, lambda p: replaced(p, images))
