"""Variables replaced by index expressions in terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.limits import allows
from hlo_verify.memory import per_session
from hlo_verify.terms import guards
from hlo_verify.terms.addition import build, of_index
from hlo_verify.terms.laws import apply
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.products import mapped, product_with, read
from hlo_verify.terms.term import Apply, Atom, Guard, Ix, Monomial, Number, Poly, Read, Tensor, value_of


class Substitution:
    """Replaces variables by index expressions, each shared subterm once."""

    def __init__(self, mapping: Mapping[Var, Index]) -> None:
        self.mapping = mapping
        self._untouched = mapping.keys().isdisjoint
        self._memo: dict[int, Poly] = {}

    def index(self, e: Index) -> Index:
        """The expression with variables replaced."""
        return expr.substitute(e, self.mapping, self._value)

    def _value(self, atom: Opaque) -> Index:
        return as_index(self.poly(value_of(atom)), atom.lo, atom.hi)

    def poly(self, p: Poly) -> Poly:
        """The polynomial with variables replaced, normalised again."""
        if self._untouched(p.free):
            return p
        found = self._memo.get(p.uid)
        if found is not None:
            return found
        if p.doubt:
            result = mapped(p, self._monomial)
        else:
            terms: dict[Monomial, Number] = {}
            for mono, c in p.items:
                product = self._monomial(mono)
                for new, k in product.items:
                    terms[new] = terms.get(new, 0) + k * c
            result = build(terms)
        self._memo[p.uid] = result
        return result

    def _monomial(self, mono: Monomial) -> Poly:
        squared = {atom for atom, n in mono if n != 1 and not n % 2}
        return product_with(mono, lambda atom: self._changed(atom, atom in squared))

    def _changed(self, atom: Atom, squared: bool) -> Poly | None:
        """What an atom becomes; where its square shows that it is not negative, it is not multiplied out."""
        if self._untouched(atom.free):
            return None
        found = self.atom(atom)
        if not squared or len(found.items) == 1:
            return found
        from hlo_verify.terms.definitions import named  # definitions are made with substitutions

        return named(found)

    def atom(self, atom: Atom) -> Poly:
        """The atom with variables replaced, as a polynomial."""
        found = self._memo.get(atom.uid)
        if found is None:
            if isinstance(atom, Read):
                places = [self.index(e) for e in atom.indices]
                found = _decided(atom, places) or read(atom.tensor, places)
            elif isinstance(atom, Ix):
                found = of_index(self.index(atom.index))
            elif isinstance(atom, Guard):
                form, lo, hi = guards.on_whole_variable(atom)
                found = guards.interval(self.index(form), lo, hi)
            else:
                found = self._apply(atom)
            self._memo[atom.uid] = found
        return found

    def _apply(self, atom: Apply) -> Poly:
        return apply(atom.function, tuple(self.poly(a) for a in atom.args))


def _decided(atom: Read, places: Sequence[Index]) -> Poly | None:
    """A named term at places that decide some of its conditions, where they did not: what is left of it there.

    None where that depends on all the other places as before: what has a name keeps it.
    """
    source = atom.tensor
    if source.kind != "term" or source.seal is not None:
        return None
    given = {p: e for p, e, old in zip(source.params, places, atom.indices, strict=False) if old.items and not e.items}
    if not given or deciding(source).isdisjoint(given):
        return None
    there = _opened(source, given)
    others = {p: e for p, e in zip(source.params, places, strict=False) if p not in given}
    if not allows("opened_weight", there.weight) or all(p in there.free for p, e in others.items() if e.items):
        return None
    return Substitution(others).poly(there)


_There = dict[tuple[Tensor, tuple[tuple[Var, Index], ...]], Poly]

_deciders: Callable[[], dict[Tensor, frozenset[Var]]] = per_session("parameters that decide", dict)
_there: Callable[[], _There] = per_session("terms at given places", dict)


def _opened(source: Tensor, given: Mapping[Var, Index]) -> Poly:
    """A named term where some of its parameters are given, worked out once."""
    key = source, tuple(given.items())
    known = _there()
    found = known.get(key)
    if found is None:
        found = known[key] = Substitution(given).poly(source.bodies[0])
    return found


def seal(source: Tensor, stand: Tensor) -> None:
    """Let a tensor stand for a definition from here on; what was opened before may have looked into it."""
    source.seal = stand
    _there().clear()


def deciding(source: Tensor) -> frozenset[Var]:
    """The parameters of a named term each of which decides a condition of its own."""
    known = _deciders()
    found = known.get(source)
    if found is None:
        held = [a for mono, _ in source.bodies[0].items for a, _ in mono if isinstance(a, Guard) and len(a.free) == 1]
        found = known[source] = frozenset().union(*(a.free for a in held))
    return found


def at_own_places(read: Read) -> Substitution:
    """What puts an element's places in the stead of its definition's parameters; bound variables stay."""
    return Substitution(dict(zip(read.tensor.params, read.indices, strict=False)))


def substitute(p: Poly, mapping: Mapping[Var, Index]) -> Poly:
    """p with variables replaced."""
    return Substitution(mapping).poly(p)
