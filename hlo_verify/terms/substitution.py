"""Variables replaced by index expressions in terms."""

from __future__ import annotations

from collections.abc import Mapping

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.terms import guards
from hlo_verify.terms.addition import build, of_index
from hlo_verify.terms.functions import apply
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.products import multiply, power_of, read
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Guard, Ix, Monomial, Number, Poly, Read, make_poly


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
        return as_index(self.poly(atom.term), atom.lo, atom.hi)

    def poly(self, p: Poly) -> Poly:
        """The polynomial with variables replaced, normalised again."""
        if self._untouched(p.free):
            return p
        found = self._memo.get(p.uid)
        if found is not None:
            return found
        terms: dict[Monomial, Number] = {}
        for mono, c in p.items:
            product = self._monomial(mono)
            for new, k in product.items:
                terms[new] = terms.get(new, 0) + k * c
        result = build(terms)
        self._memo[p.uid] = result
        return result

    def _monomial(self, mono: Monomial) -> Poly:
        kept: list[tuple[Atom, Number]] = []
        product = ONE
        for atom, n in mono:
            if self._untouched(atom.free):
                kept.append((atom, n))
                continue
            product = multiply(product, power_of(self.atom(atom), n))
            if product is ZERO:
                return ZERO
        if kept:
            product = multiply(make_poly(((tuple(kept), 1),)), product)
        return product

    def atom(self, atom: Atom) -> Poly:
        """The atom with variables replaced, as a polynomial."""
        found = self._memo.get(atom.uid)
        if found is None:
            if isinstance(atom, Read):
                found = read(atom.tensor, [self.index(e) for e in atom.indices])
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


def substitute(p: Poly, mapping: Mapping[Var, Index]) -> Poly:
    """p with variables replaced."""
    return Substitution(mapping).poly(p)
