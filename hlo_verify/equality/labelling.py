"""Numbers for terms, the same for two terms that differ only in the order of factors and addends and in the names of
bound variables.

A sum of products is a graph: its factors are hyperedges between bound variables, free index expressions and numbers. A
canonical form of it names the variables in an order that depends on nothing but the graph: colours are refined by where
each variable occurs, and what still looks alike is told apart by choosing one after the other; of all choices the least
form counts. Each form is written down in full and given a number. So equal numbers mean equal terms, by construction:
what a poor choice costs is that equal terms have two.

    sum a,b. x[i,a]*w[a,b]*x[j,b]     and     sum p,q. w[p,q]*x[j,q]*x[i,p]     have one number

A term is a number times a multiple: f(-t) is -f(t) for an odd function, and 1/(3*t) is 1/3 * 1/t.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from math import prod
from typing import Protocol, TypeVar

from hlo_verify.equality import multiples
from hlo_verify.equality.multiples import Scaling
from hlo_verify.equality.summands import Steps, Summand, Unfolding
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Var
from hlo_verify.terms.doubts import INFINITE, INTEGRAL
from hlo_verify.terms.sums import components
from hlo_verify.terms.term import Apply, Atom, Guard, Ix, Number, Poly, Read, value_of

Names = Mapping[Var, int]
"""What variables are called: those bound around a term, and while their order is looked for their colours."""

Multiple = tuple[int, Number]
"""The number of a term, and how many times what has that number it is."""

IN_ANY_ORDER = frozenset({"sum", "max", "min", "product"})
"""Definitions that are the same for every order of their bound variables."""


class _Part(Protocol):
    @property
    def free(self) -> frozenset[Var]: ...


PartT = TypeVar("PartT", bound=_Part)


class _Factor:
    """An atom with its power."""

    __slots__ = ("atom", "free", "power")

    def __init__(self, atom: Atom, power: Number) -> None:
        self.atom, self.power, self.free = atom, power, atom.free


class Labelling:
    """Numbers of terms, for one way of unfolding them."""

    def __init__(self, unfolding: Unfolding, steps: Steps) -> None:
        self.unfolding = unfolding
        self.steps = steps
        self._numbers: dict[Hashable, int] = {}
        self._terms: dict[Hashable, int | tuple[tuple[int, Number], ...]] = {}
        self._atoms: dict[Hashable, Multiple] = {}

    def of_term(self, p: Poly, names: Names, depth: int = 0) -> int:
        """The number of a term, at a depth of definitions and functions within others."""
        return self._scaled(p, names, depth, multiples.unscaled)[0]

    def of_summand(self, summand: Summand, names: Names, depth: int = 0) -> Multiple:
        """The number of a summand."""
        self.steps.take()
        bound = frozenset(summand.bound)
        factors = [_Factor(atom, n) for atom, n in summand.product]
        alone = [self._of_factor(factor, names, depth) for factor in factors if bound.isdisjoint(factor.free)]
        within = [item for item in summand.product if not bound.isdisjoint(item[0].free)]
        parts = [
            self._closed(own, [_Factor(atom, n) for atom, n in items], self._of_factor, names, depth)
            for own, items in components(summand.bound, within)
        ]
        number = self._number("product", _numbers_of(alone), _numbers_of(parts))
        return number, summand.times * _times([*alone, *parts])

    def _scaled(self, p: Poly, names: Names, depth: int, scaling: Scaling) -> Multiple:
        """The number of a term in the multiple of it that stands for all of them."""
        key = self._key(p.uid, p.free, names, depth)
        found = self._terms.get(key)
        if found is None:
            found = self._terms[key] = self._addends(p, names, depth)
        if isinstance(found, int):
            return found, 1
        least, times = scaling(found)
        return self._number("sum", least), times

    def _addends(self, p: Poly, names: Names, depth: int) -> int | tuple[tuple[int, Number], ...]:
        """The numbers of what a term is the sum of; that of all, where it may be infinite: nothing of such a term may
        be added or multiplied in another way."""
        if p.doubt & INFINITE:
            products = []
            for mono, c in p.items:
                factors = [self._of_factor(_Factor(atom, n), names, depth) for atom, n in mono]
                products.append((c, tuple(sorted(self._number("multiple", *factor) for factor in factors))))
            return self._number("as written", tuple(sorted(products)))
        totals: dict[int, Number] = defaultdict(int)
        for summand in self.unfolding.of(p):
            number, times = self.of_summand(summand, names, depth)
            totals[number] += times
        return tuple(sorted((number, c) for number, c in totals.items() if c))

    def _of_factor(self, factor: _Factor, names: Names, depth: int) -> Multiple:
        number, times = self._of_atom(factor.atom, names, depth)
        if times == 1:
            return self._number("power", number, factor.power), 1
        if isinstance(factor.power, int) and factor.power > 0:
            return self._number("power", number, factor.power), times**factor.power
        return self._number("power of a multiple", number, times, factor.power), 1

    def _of_atom(self, atom: Atom, names: Names, depth: int) -> Multiple:
        key = self._key(atom.uid, atom.free, names, depth)
        found = self._atoms.get(key)
        if found is None:
            self.steps.take()
            found = self._atoms[key] = self._multiple_of(atom, names, depth)
        return found

    def _multiple_of(self, atom: Atom, names: Names, depth: int) -> Multiple:
        if isinstance(atom, Apply):
            return self._of_function(atom, names, depth)
        if isinstance(atom, Ix):
            return self._number("index value", self._of_index(atom.index, names, depth)), 1
        if isinstance(atom, Guard):
            forward = self._of_index(atom.form, names, depth), *_bounds(atom.lo, atom.hi, 1)
            backward = self._of_index(expr.scale(atom.form, -1), names, depth), *_bounds(atom.lo, atom.hi, -1)
            return self._number("guard", *min(forward, backward)), 1
        if self.unfolding.is_opened(atom.tensor):
            return self._of_definition(atom, names, depth)
        at = tuple(self._of_index(e, names, depth) for e in atom.indices)
        return self._number("read", atom.tensor.uid, at), 1

    def _of_function(self, atom: Apply, names: Names, depth: int) -> Multiple:
        function = atom.function
        if len(atom.args) == 1:
            number, times = self._scaled(atom.args[0], names, depth, multiples.scaling_for(function))
            return self._number("apply", str(function), (number,)), multiples.of_function(function, times)
        args = [self.of_term(arg, names, depth) for arg in atom.args]
        return self._number("apply", str(function), tuple(sorted(args) if function.properties.commutative else args)), 1

    def _of_definition(self, read: Read, names: Names, depth: int) -> Multiple:
        source = read.tensor
        bound, bodies = self.unfolding.definition(read)
        at = tuple(self._of_index(e, names, depth) for e in read.indices[len(source.params) :])
        times: Number = 1
        if source.kind in IN_ANY_ORDER and len(bodies) == 1:
            inner, times = self._closed(bound, bodies, self._body_of(source.kind), names, depth)
        else:
            order = {v: self._number("bound", depth, n) for n, v in enumerate(bound)}
            inner = self._number("bodies", *(self.of_term(body, {**names, **order}, depth + 1) for body in bodies))
        dtype = source.dtype if INTEGRAL.fullmatch(source.dtype) else ""
        sizes = tuple(v.size for v in bound)
        return self._number("definition", source.kind, source.attributes, dtype, sizes, inner, at), times

    def _body_of(self, kind: str) -> Callable[[Poly, Names, int], Multiple]:
        scaling = multiples.by_positive if kind in ("max", "min") else multiples.unscaled
        return lambda body, names, depth: self._scaled(body, names, depth, scaling)

    def _of_index(self, e: Index, names: Names, depth: int) -> int:
        parts = []
        for part, c in e.items:
            if isinstance(part, Digit):
                name = names[part.var] if part.var in names else self._number("free", part.var.uid)
                parts.append((self._number("digit", name, part.low, part.radix), c))
            else:
                inner = tuple(self._of_index(x, names, depth) for x in part.exprs)
                term = None if part.term is None else self.of_term(value_of(part), names, depth)
                parts.append((self._number(part.operator, part.args, inner, term, part.lo, part.hi), c))
        return self._number("index", e.const, tuple(sorted(parts)))

    def _closed(
        self,
        bound: Sequence[Var],
        parts: Sequence[PartT],
        multiple_of: Callable[[PartT, Names, int], Multiple],
        names: Names,
        depth: int,
    ) -> Multiple:
        """The number of what is made of some parts, in any order, over bound variables, in any order."""

        def refined(colors: Names) -> Names:
            me = self._number("the one")
            while len(set(colors.values())) < len(bound):
                finer = {}
                for v in bound:
                    seen = [multiple_of(p, {**names, **colors, v: me}, depth + 1) for p in parts if v in p.free]
                    finer[v] = self._number("color", colors[v], _numbers_of(seen))
                done = len(set(finer.values())) == len(set(colors.values()))
                colors = finer
                if done:
                    break
            return colors

        def least(colors: Names) -> Multiple:
            self.steps.take()
            cells: dict[int, list[Var]] = defaultdict(list)
            for v in bound:
                cells[colors[v]].append(v)
            alike = min(((len(vs), color) for color, vs in cells.items() if len(vs) > 1), default=None)
            if alike is not None:
                one = self._number("chosen", alike[1])
                return min(least(refined({**colors, v: one})) for v in cells[alike[1]])
            order = sorted(bound, key=colors.__getitem__)
            called = {**names, **{v: self._number("bound", depth, n) for n, v in enumerate(order)}}
            inside = [multiple_of(part, called, depth + 1) for part in parts]
            return self._number("over", tuple(v.size for v in order), _numbers_of(inside)), _times(inside)

        return least(refined({v: self._number("size", v.size) for v in bound}))

    def _number(self, *form: Hashable) -> int:
        return self._numbers.setdefault(form, len(self._numbers))

    def _key(self, uid: int, free: frozenset[Var], names: Names, depth: int) -> Hashable:
        return uid, depth, tuple(sorted((v.uid, names[v]) for v in free if v in names))


def _numbers_of(parts: Sequence[Multiple]) -> tuple[int, ...]:
    return tuple(sorted(number for number, _ in parts))


def _times(parts: Sequence[Multiple]) -> Number:
    return prod(times for _, times in parts)


def _bounds(lo: int | None, hi: int | None, sign: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The bounds of a form, or those of its opposite, in a way that can be put in an order: none is ()."""
    lower, upper = (() if lo is None else (lo,)), (() if hi is None else (hi,))
    return (lower, upper) if sign > 0 else (tuple(-x for x in upper), tuple(-x for x in lower))
