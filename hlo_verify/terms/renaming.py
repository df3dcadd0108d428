"""Renaming: what a term says of some tensors, said of others.

A term that was derived for arbitrary tensors holds for every choice of them. `Renaming` carries it over
to other tensors, through the definitions that it reads; `leaves` are the tensors that it is about.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlo_verify.index.expr import Index, Opaque
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import instance, read
from hlo_verify.terms.laws import apply
from hlo_verify.terms.places import with_values
from hlo_verify.terms.term import Apply, Atom, Ix, Poly, Read, Tensor, of_atom, value_of

_NONE: frozenset[Tensor] = frozenset()


class Leaves:
    """The tensors without a definition that terms are about in the end; each subterm is looked at once."""

    def __init__(self) -> None:
        self._memo: dict[int, frozenset[Tensor]] = {}

    def of(self, p: Poly) -> frozenset[Tensor]:
        """The leaves of a term."""
        found = self._memo.get(p.uid)
        if found is None:
            found = _NONE
            for mono, _ in p.items:
                for atom, _ in mono:
                    found |= self._atom(atom)
            self._memo[p.uid] = found
        return found

    def _atom(self, atom: Atom) -> frozenset[Tensor]:
        found = self._memo.get(atom.uid)
        if found is None:
            if isinstance(atom, Read):
                found = self.tensor(atom.tensor).union(*map(self._index, atom.indices))
            elif isinstance(atom, Apply):
                found = _NONE.union(*map(self.of, atom.args))
            else:
                found = self._index(atom.index if isinstance(atom, Ix) else atom.form)
            self._memo[atom.uid] = found
        return found

    def _index(self, e: Index) -> frozenset[Tensor]:
        found = _NONE
        for atom, _ in e.items:
            if isinstance(atom, Opaque):
                found = found.union(*map(self._index, atom.exprs))
                if atom.term is not None:
                    found |= self.of(value_of(atom))
        return found

    def tensor(self, source: Tensor) -> frozenset[Tensor]:
        """The leaves of a definition; any other tensor is one itself."""
        if not source.bodies:
            return frozenset((source,))
        found = self._memo.get(source.uid)
        if found is None:
            found = self._memo[source.uid] = _NONE.union(*map(self.of, source.bodies))
        return found


class Renaming:
    """Replaces tensors by others of the same kind, element type and rank; each subterm is renamed once."""

    def __init__(self, mapping: Mapping[Tensor, Tensor], leaves: Leaves) -> None:
        self._mapping = mapping
        self._leaves = leaves
        self._polys: dict[int, Poly] = {}
        self._tensors: dict[Tensor, Tensor] = {}

    def poly(self, p: Poly) -> Poly:
        """The term about the other tensors."""
        if self._leaves.of(p).isdisjoint(self._mapping):
            return p
        found = self._polys.get(p.uid)
        if found is None:
            found = algebra.with_atoms(p, self._atom)
            self._polys[p.uid] = found
        return found

    def _atom(self, atom: Atom) -> Poly:
        if isinstance(atom, Read):
            return read(self.tensor(atom.tensor), [self._index(e) for e in atom.indices])
        if isinstance(atom, Apply):
            return apply(atom.function, tuple(map(self.poly, atom.args)))
        if isinstance(atom, Ix):
            return algebra.of_index(self._index(atom.index))
        new = self._index(atom.form)
        return of_atom(atom) if new is atom.form else guards.interval(new, atom.lo, atom.hi)

    def tensor(self, source: Tensor) -> Tensor:
        """The other tensor; of a definition, the same one of the other tensors."""
        found = self._mapping.get(source) or self._tensors.get(source)
        if found is None:
            bodies = tuple(map(self.poly, source.bodies))
            found = self._tensors[source] = source if bodies == source.bodies else instance(source, bodies)
        return found

    def _index(self, e: Index) -> Index:
        return with_values(e, self.poly)
