"""Tensors that stand for values of the logical module, so that what is computed of one is not made of its parts.

The residual stream of a transformer is a sum of a value and what is added to it. By its terms, whatever is computed of
it is made of both, and of all that is added before; what the square of such a sum adds up to takes all products. Where
devices are known to hold their shards of it, nothing of the kind matters:

    x2 = x + mlp(x)        sum k. (x[k] + mlp(x)[k])^2 = …        with a tensor that stands for x2: sum k. x2[k]^2 = …

So a tensor of which nothing is known but that it is a number stands for such a value, in both modules. What is proved
for any tensor in its place is proved for this one. What is not may follow from what the value is made of, and is looked
at once more with that in place of it (`views`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hlo_verify.equality import opening
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.ops.best import KINDS, index_of_best
from hlo_verify.ops.values import Value, positions
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import TensorType
from hlo_verify.terms import algebra, signs
from hlo_verify.terms.certain_poles import is_known_somewhere
from hlo_verify.terms.definitions import at_places, fresh_places
from hlo_verify.terms.doubts import is_defined_there
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.finite import if_unknown_may_be
from hlo_verify.terms.functions import EXTREMA
from hlo_verify.terms.renaming import Leaves, Renaming
from hlo_verify.terms.term import Atom, Poly, Read, Tensor, reads, tensor


@dataclass(slots=True)
class StandIns:
    """The values that tensors stand for."""

    _values: dict[Tensor, Value] = field(default_factory=dict)
    _by_term: dict[tuple[TensorType, int], Value] = field(default_factory=dict)
    """By what they are of, a term and its type: terms have no shapes, so that a value and what is reshaped of it may
    have one."""
    _opening: dict[frozenset[Tensor], _Opening] = field(default_factory=dict)
    _leaves: Leaves = field(default_factory=Leaves)

    def of(self, value: Value) -> Value | None:
        """What stands for a value of the logical module; None for one that is no sum of what others define, or of which
        more is known than that it is a real number: what is taken for an argument is one wherever it is read."""
        term = value.term
        key = value.type, term.uid
        if key not in self._by_term:
            is_sum = len(term.items) > 1 and is_float(value.type.dtype) and any(r.tensor.bodies for r in reads(term))
            if not is_sum or signs.of(term) != signs.REAL or not is_defined_there(term):
                return None
            if not if_unknown_may_be().surely(term) or is_known_somewhere(term):
                return None
            name = f"value {len(self._values)}"
            stand = tensor("argument", name, value.type.dtype, value.shape, doubt=0)
            self._values[stand] = value
            self._by_term[key] = Value(value.type, algebra.read(stand, positions(value.shape)))
        return self._by_term[key]

    def opened(self, p: Poly) -> Poly:
        """A term with all values in place of what stands for them."""
        while inside := self._inside(p):
            p = self._opened(p, inside)
        return p

    def views(self, p: Poly, q: Poly) -> Iterator[tuple[Poly, Poly]]:
        """Two terms in the ways in which to ask whether they are equal: as they are, if both are about the same
        stand-ins, or else with those of them opened that one is not about, the last ones first; and with all opened."""
        while lone := self._inside(p) ^ self._inside(q):
            last = frozenset([max(lone, key=lambda stand: stand.uid)])
            p, q = self._opened(p, last), self._opened(q, last)
        yield p, q
        if self._inside(p):
            yield self.opened(p), self.opened(q)

    def _inside(self, p: Poly) -> frozenset[Tensor]:
        return frozenset(opening.arguments(p) & self._values.keys()) if self._values else frozenset()

    def _opened(self, p: Poly, which: frozenset[Tensor]) -> Poly:
        found = self._opening.get(which)
        if found is None:
            found = self._opening[which] = _Opening({each: self._values[each] for each in which}, self._leaves)
        return found.poly(p)


class _Opening(Renaming):
    """Terms with some values in place of what stands for them, and in these as well.

    What is the greatest of elements, and where, is asked once more of what these are: `argmax k. (z[k] - max z)` is
    `argmax k. z[k]`.
    """

    def __init__(self, values: Mapping[Tensor, Value], leaves: Leaves) -> None:
        super().__init__({each: each for each in values}, leaves)
        self._values = values
        self._extrema: dict[Tensor, tuple[list[Var], Poly]] = {}

    def _atom(self, atom: Atom) -> Poly:
        if not isinstance(atom, Read):
            return super()._atom(atom)
        if atom.tensor in self._values:
            return self.poly(self._values[atom.tensor].at([self._index(e) for e in atom.indices]))
        is_extremum = atom.tensor.kind in (*EXTREMA, *KINDS) and atom.tensor.seal is None
        if not is_extremum or self._leaves.tensor(atom.tensor).isdisjoint(self._values):
            return super()._atom(atom)
        places, found = self._extremum(atom.tensor)
        return algebra.substitute(found, dict(zip(places, map(self._index, atom.indices), strict=True)))

    def _extremum(self, source: Tensor) -> tuple[list[Var], Poly]:
        """A maximum or minimum of what is opened, or the index of one, at variables."""
        if source not in self._extrema:
            places = fresh_places(len(source.params))
            bound, there = at_places(source, list(map(expr.of_var, places)))
            first, *others = (self.poly(there.poly(body)) for body in source.bodies)
            if source.kind in EXTREMA:
                found = reduce_extremum(source.kind, bound, first)
            else:
                index, worst, initial = others
                best = source.kind.removeprefix("arg")
                found = index_of_best(best, bound, (first, index), (worst, initial), source.attributes)
            self._extrema[source] = places, found
        return self._extrema[source]
