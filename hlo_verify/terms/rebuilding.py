"""Terms with some of their parts replaced."""

from __future__ import annotations

from collections.abc import Mapping

from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Apply, Atom, Ix, Poly, Read


def rebuilt(p: Poly, on_atom: Mapping[Atom, Poly], on_index: Mapping[Index, Index]) -> Poly:
    """p with some atoms replaced, and index expressions by others."""
    made: dict[Apply, Poly | None] = {}

    def anew(p: Poly) -> Poly:
        return algebra.with_atoms(p, image)

    def image(atom: Atom) -> Poly | None:
        if atom in on_atom:
            return on_atom[atom]
        if isinstance(atom, Read):
            if any(e in on_index for e in atom.indices):
                return algebra.read(atom.tensor, [on_index.get(e, e) for e in atom.indices])
        elif isinstance(atom, Ix):
            if atom.index in on_index:
                return algebra.of_index(on_index[atom.index])
        elif isinstance(atom, Apply):
            if atom not in made:
                args = tuple(map(anew, atom.args))
                made[atom] = None if args == atom.args else apply(atom.function, args)
            return made[atom]
        return None

    return anew(p)
