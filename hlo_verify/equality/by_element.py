"""Terms compared element by element along the dimensions in which windows and halos lie, and at all others at once.

    y[i] = sum k<3. w[k] * x[i + k] [i + k < 8]        at i = 6 is  w[0]*x[6] + w[1]*x[7]

A convolution says which elements it reads by conditions on `i + k`, a device with a halo by other ones, on parts. At
one element all of these are decided, and both are sums of the same products, each over channels, which stay sums.

A place is *cut* if conditions are on it, or if it is one together with others (`i + k`); and so are the places at which
the same variable is read elsewhere (`k` of `w`). Of definitions that are read at numbers along their cut places, the
definition at those numbers is made, with sums over cut variables written out; once for all that read it there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from hlo_verify.equality.opening import opened
from hlo_verify.equality.summands import SIZE_OF_A_STEP, SpentError, Steps
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.limits import allows
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.at_constants import partly_given, remade
from hlo_verify.terms.definitions import at_places
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Apply, Atom, Poly, Read, Tensor, atoms, indices

Place = tuple[Tensor, int]
"""A tensor and which of its indices."""

Pair = tuple[Poly, Poly]

SIZE_OF_A_SUM = 4 * SIZE_OF_A_STEP
"""A sum over channels takes as long as so large a product."""

HEAVY = 60
"""A sum of a term of that weight takes a step, however few summands it has: functions of long sums are put in order."""

LONG = 16
"""A term of so many summands takes a step, and one that is n times as long n * n: products go with one another."""


def same_by_element(pairs: Sequence[Pair], session: Session, steps: Steps) -> bool:
    """Whether the terms of all pairs are equal, element by element along some dimensions that are cut. Where windows
    lie along several, those along one of them may be enough: they are all that differs if a dimension is split."""
    terms = [p for pair in pairs for p in pair]
    if any(p.doubt & INFINITE for p in terms):
        return False
    try:
        return any(_are_same(pairs, cut, steps) for cut in _cuts(terms))
    except SpentError:
        session.reached("written_out_elements")
        return False


def _are_same(pairs: Sequence[Pair], cut: Cut, steps: Steps) -> bool:
    writing = Writing(cut, steps)
    return all(writing.are_same(*pair) for pair in pairs)


def _cuts(terms: Sequence[Poly]) -> Iterator[Cut]:
    """What is cut along the places of arguments that go with one another, and along all."""
    every = Cut.of(terms)
    left = {place for place in every.places if not place[0].bodies}
    several = False
    while left:
        seed = min(left, key=lambda place: (place[0].uid, place[1]))
        part = Cut.of(terms, {seed})
        left -= part.places | {seed}
        several |= bool(left)
        yield part
    if several:
        yield every


@dataclass(slots=True)
class Cut:
    """The cut places of tensors, and the cut variables of definitions: parameters and bound ones."""

    places: set[Place]
    conditions: bool
    """Whether conditions cut what they are on, or only what lies along these places is cut."""
    inside: dict[Tensor, frozenset[Var]] = field(default_factory=dict)

    @classmethod
    def of(cls, terms: Sequence[Poly], seeds: Collection[Place] | None = None) -> Cut:
        """What is cut in some terms, and in all definitions that they are made of: by conditions and places that are
        one with others, or, given `seeds`, along these."""
        cut = cls(set(seeds or ()), seeds is None)
        sources = _definitions(terms)
        before = -1
        while before < len(cut.places):
            before = len(cut.places)
            for p in terms:
                cut.places |= _read_by(p, cut.variables(p))
            for source in sources:
                cut._within(source)
        return cut

    def _within(self, source: Tensor) -> None:
        own = frozenset[Var]().union(*map(self.variables, source.bodies))
        own |= {v for n, v in enumerate(source.params) if (source, n) in self.places}
        self.inside[source] = own
        self.places |= {(source, n) for n, v in enumerate(source.params) if v in own}
        for body in source.bodies:
            self.places |= _read_by(body, own)

    def variables(self, p: Poly) -> frozenset[Var]:
        """The variables of a term that are cut in it."""
        found = frozenset[Var]()
        for atom in atoms(p):
            for n, e in enumerate(indices(atom)):
                is_mixed = self.conditions and (not isinstance(atom, Read) or not _is_bare(e)) and not _is_told(e)
                if is_mixed or (isinstance(atom, Read) and (atom.tensor, n) in self.places):
                    found |= e.free
        return found


def _read_by(p: Poly, variables: Collection[Var]) -> set[Place]:
    """The places at which a term reads with some variables."""
    return {
        (atom.tensor, n)
        for atom in atoms(p)
        if isinstance(atom, Read)
        for n, e in enumerate(atom.indices)
        if not e.free.isdisjoint(variables)
    }


def _definitions(terms: Iterable[Poly]) -> list[Tensor]:
    """The definitions that terms are made of, each before those that it is made of."""
    todo, found = list(terms), dict[Tensor, None]()
    while todo:
        for atom in atoms(todo.pop()):
            if isinstance(atom, Read) and _is_open(atom.tensor) and atom.tensor not in found:
                found[atom.tensor] = None
                todo += atom.tensor.bodies
    return list(found)


def _is_open(source: Tensor) -> bool:
    return bool(source.bodies) and source.seal is None


def _is_told(e: Index) -> bool:
    """Whether an index hangs on a value: a row that is looked up is cut by nothing."""
    return any(isinstance(part, Opaque) and part.operator == "value" for part, _ in e.items)


def _is_bare(e: Index) -> bool:
    """Whether an index is a number, or one variable alone."""
    if not e.items:
        return True
    ((part, c), *others) = e.items
    return not others and c == 1 and not e.const and isinstance(part, Digit) and part.low == 1 and part.top


_Key = tuple[Tensor, tuple[int | None, ...]]


@dataclass(slots=True)
class Writing:
    """Writes terms out at numbers, in the same way wherever they occur."""

    cut: Cut
    steps: Steps
    known: dict[_Key, tuple[list[Var], Poly]] = field(default_factory=dict)

    def are_same(self, found: Poly, expected: Poly) -> bool:
        """Whether two terms are equal for all numbers along their cut places."""
        variables = sorted(self.cut.variables(found) | self.cut.variables(expected), key=lambda v: v.uid)
        if prod(v.size for v in variables) > self.steps.left:
            raise SpentError
        for numbers in product(*(range(v.size) for v in variables)):
            here: dict[Var, Index] = {v: expr.constant(n) for v, n in zip(variables, numbers, strict=True)}
            one, other = (self.of(algebra.substitute(p, here)) for p in (found, expected))
            if one is not other:
                return False
        return True

    def of(self, p: Poly) -> Poly:
        """A term with all that it is made of written out."""
        images: dict[Atom, Poly] = {}
        for mono, _ in p.items:
            self.steps.take()
            for atom, _ in mono:
                if atom not in images and (made := self._atom(atom)) is not None:
                    images[atom] = made
        found = opened(algebra.with_atoms(p, images.get) if images else p)
        self.steps.take(SIZE_OF_A_STEP * (len(found.items) // LONG) ** 2)
        return found

    def _atom(self, atom: Atom) -> Poly | None:
        if isinstance(atom, Apply):
            return apply(atom.function, tuple(map(self.of, atom.args)))
        if not isinstance(atom, Read) or not _is_open(atom.tensor):
            return None
        source = atom.tensor
        given = tuple(
            e.const if not e.items and (source, n) in self.cut.places else None for n, e in enumerate(atom.indices)
        )
        key = source, given[: len(source.params)]
        if key not in self.known:
            self.known[key] = self._definition(*key)
        places, there = self.known[key]
        left = [e for e, c in zip(atom.indices, (*key[1], *[None] * source.own), strict=True) if c is None]
        return algebra.substitute(there, dict(zip(places, left, strict=True)))

    def _definition(self, source: Tensor, given: tuple[int | None, ...]) -> tuple[list[Var], Poly]:
        """A definition where some of its parameters are numbers, read at variables in the place of the others."""
        places, at = partly_given((*given, *[None] * source.own))
        bound, there = at_places(source, at[: len(given)])
        bodies = [there.poly(body) for body in source.bodies]
        if source.kind != "sum":
            return places, remade(source, bound, tuple(map(self.of, bodies)), at[len(given) :])
        inside = self.cut.inside.get(source, frozenset())
        cut = [w for v, w in zip(source.bound, bound, strict=True) if v in inside]
        rest = [w for w in bound if w not in cut]
        return places, algebra.add(*(self._summed(rest, p) for p in self._written(bodies[0], cut)))

    def _written(self, body: Poly, cut: list[Var]) -> Iterable[Poly]:
        if not allows("elements_apart", prod(v.size for v in cut)):
            raise SpentError
        for numbers in product(*(range(v.size) for v in cut)):
            self.steps.take()
            here: Mapping[Var, Index] = {v: expr.constant(n) for v, n in zip(cut, numbers, strict=True)}
            yield self.of(algebra.substitute(body, here))

    def _summed(self, rest: list[Var], p: Poly) -> Poly:
        """The sum over variables that are not cut, which takes longer than a product."""
        self.steps.take(max(SIZE_OF_A_SUM * len(p.items), SIZE_OF_A_STEP * (p.weight // HEAVY)) if rest else 0)
        return reduce_sum(rest, p)
