"""Terms with some of their parts replaced."""

from __future__ import annotations

from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Apply, Atom, Ix, Poly, Read


def rebuilt(p: Poly, on_atom: dict[Atom, Poly], on_index: dict[Index, Index]) -> Poly:
    """p with some atoms replaced, and index expressions by others."""
    return algebra.mapped(
        p, lambda mono: algebra.product_with(mono, lambda atom: _rebuilt_atom(atom, on_atom, on_index))
    )


def _rebuilt_atom(atom: Atom, on_atom: dict[Atom, Poly], on_index: dict[Index, Index]) -> Poly | None:
    if atom in on_atom:
        return on_atom[atom]
    if isinstance(atom, Read):
        if any(e in on_index for e in atom.indices):
            return algebra.read(atom.tensor, [on_index.get(e, e) for e in atom.indices])
    elif isinstance(atom, Ix):
        if atom.index in on_index:
            return algebra.of_index(on_index[atom.index])
    elif isinstance(atom, Apply):
        args = tuple(rebuilt(a, on_atom, on_index) for a in atom.args)
        if args != atom.args:
            return apply(atom.function, args)
    return None
