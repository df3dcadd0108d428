"""Functions that make more of the rounding of a constant than it was: `log(x * 0.333333343 * 3 - x)`.

A function that ends or has a slope without bound at a place (`acos` at 1, `log` at 0) is another number, or none, on
the other side of a rounding. At places other than 0 any rounding may be that one. At 0 none is where the argument is
not near to it for how large what it is made of is: a product; addends of one sign; a variance and something. A sum of
one product for each element, `sum v. y[v]*exp(x[v])`, is near to 0 where these cancel, so they are of one sign, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import reduce
from operator import or_

from hlo_verify.terms import algebra, signs
from hlo_verify.terms.signs import BEYOND, NEGATIVE, POSITIVE
from hlo_verify.terms.term import ONE, Apply, Atom, Poly, Read, Tensor, make_poly, of_atom

TAME = frozenset({"sqrt", "rsqrt", "cbrt", "inverse", "maximum", "minimum", "abs"})
"""Functions that make the rounding of a constant no larger."""

_STEEP = frozenset({"acos", "acosh", "asin", "atan2", "atanh", "digamma", "erf_inv", "lgamma", "tan"})
"""Functions whose slopes have no bound at places other than 0, or that end there: a number of one side of it, and of a
rounding of that none."""

_STEEP_AT_ZERO = frozenset({"cbrt", "log", "log_plus_one"})
"""The same at 0, or at -1: no rounding comes near to it where all that is added up has one sign.
Roots and inverses are none of these: variances are written as differences under them."""

_ELEMENTS = frozenset({"max", "min", "product", "sort", "term", "top_k"})
"""Kinds of definitions that are no nearer to 0 than what they are of, for how large that is. A sum may be."""


@dataclass(frozen=True, slots=True)
class Slopes:
    """What functions make of factors on constants."""

    roundings: Collection[Tensor]
    """The factors."""
    is_still: Callable[[Poly], bool]
    """Whether there is no factor in a term."""
    exact: Callable[[Poly], Poly]
    """A term with all factors 1."""

    def is_steep(self, p: Poly) -> bool:
        """Whether what moves is the argument of a function that may be steep there, however little it is."""
        moving = (
            (atom.function.name, arg)
            for mono, _ in p.items
            for atom, _ in mono
            if isinstance(atom, Apply)
            for arg in atom.args
            if not self.is_still(arg)
        )
        return any(name in _STEEP or (name in _STEEP_AT_ZERO and not self._is_away(name, arg)) for name, arg in moving)

    def _is_away(self, name: str, arg: Poly) -> bool:
        return self._keeps_its_side(algebra.add(arg, ONE) if name == "log_plus_one" else arg)

    def _keeps_its_side(self, p: Poly) -> bool:
        """Whether what is added up has one sign, but for common factors, or is seen to be away from 0 as a variance and
        something is, or is one product, and so what that is of: no rounding of it is far off for how large it is."""
        if len(p.items) > 1 and signs.of(self.exact(p)) not in (POSITIVE, NEGATIVE):
            common = frozenset.intersection(*(frozenset(mono) for mono, _ in p.items))
            own = [(tuple(item for item in mono if item not in common), c) for mono, c in p.items]
            if not self._is_one_sided(make_poly(tuple(own))):
                return False
        moving = (atom for mono, _ in p.items for atom, _ in mono)
        return all(self.is_still(of_atom(atom)) or self._stays(atom) for atom in moving)

    def _is_one_sided(self, p: Poly) -> bool:
        """Whether no product that is added up is positive where another one, or that of other elements, is negative."""
        found = reduce(or_, (signs.of(self.exact(make_poly((item,)))) for item in p.items), 0)
        return not found & BEYOND and not (found & NEGATIVE and found & POSITIVE)

    def _stays(self, atom: Atom) -> bool:
        """The same as `_keeps_its_side` of what a product is of. Elements that a definition adds up are of one sign."""
        if isinstance(atom, Read):
            return atom.tensor in self.roundings or self._is_no_nearer(atom.tensor)
        if not isinstance(atom, Apply) or atom.function.properties.positive:
            return isinstance(atom, Apply)
        keeps = atom.function.name in TAME or atom.function.properties.keeps_sign
        return keeps and all(map(self._keeps_its_side, atom.args))

    def _is_no_nearer(self, definition: Tensor) -> bool:
        bodies = definition.bodies
        keeps = definition.kind in _ELEMENTS or (definition.kind == "sum" and all(map(self._is_one_sided, bodies)))
        return keeps and bool(bodies) and all(map(self._keeps_its_side, bodies))
