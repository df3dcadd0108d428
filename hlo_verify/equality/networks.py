"""Terms compared as sums of products, modulo order, association and the names of bound variables.

    x(AB) = (xA)B        sum (x - m)**2 = sum x**2 - n*m**2        x[:,0]*w[0] + x[:,1]*w[1] = sum k<2. x[:,k]*w[k]

Each side is a list of summands: products of factors, summed over bound variables. What both sides have is struck out.
Of what is left the definitions are opened that only one side has, the outermost first, and only then what they share;
ranges are cut where others begin or end, and free variables are told apart by conditions on them. The terms are
equal if nothing is left. What a function is taken of is compared in the same way, so that tanh((xA)B) is tanh(x(AB)).

These are laws of a commutative ring: of real and complex numbers, and of integers that wrap. A term that may be
infinite is not taken apart (`labelling`), and one that may be undefined has to be defined where the other is
(`computed`). The steps are limited (`Limits.network_steps`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from hlo_verify.equality import known_numbers, multisets
from hlo_verify.equality.computed import are_numbers
from hlo_verify.equality.denominators import Denominators
from hlo_verify.equality.labelling import Labelling
from hlo_verify.equality.opening import opened
from hlo_verify.equality.prefixes import by_parts
from hlo_verify.equality.presence import never_zero
from hlo_verify.equality.regions import by_blocks, by_conditions, by_remainders
from hlo_verify.equality.summands import Cuts, SpentError, Steps, Summand, Unfolding, as_written
from hlo_verify.index.expr import Index, Var
from hlo_verify.memory import once_a_session
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.term import ONE, Apply, Atom, Number, Poly, Read, Tensor, atoms


def same_network(found: Poly, expected: Poly, session: Session, inside: Poly = ONE, steps: Steps | None = None) -> bool:
    """Whether two terms are equal as sums of products wherever `inside` (a product of guards) holds; `steps` are those
    that it may take."""
    steps = Steps(session.limits.network_steps) if steps is None else steps
    found, expected = known_numbers.both_decided(found, expected, session)
    try:
        return any(_same(*sides, inside, session, steps) for sides in _ways(found, expected))
    except SpentError:
        session.reached("network_steps")
        return False


def _ways(found: Poly, expected: Poly) -> Iterator[tuple[Poly, Poly]]:
    """Two terms, as they are and as multisets of elements, and what they are with sums up to a place part by part."""
    ways = [(found, expected)]
    elements = multisets.as_sums(found, expected)
    ways += [] if elements is None else [elements]
    yield from ways
    for sides in ways:
        parts = tuple(by_parts(opened(p)) for p in sides)
        if parts != (None, None):
            mine, others = (p if part is None else part for p, part in zip(sides, parts, strict=True))
            yield mine, others


def _same(found: Poly, expected: Poly, inside: Poly, session: Session, steps: Steps) -> bool:
    sides = algebra.expanded(inside, found), algebra.expanded(inside, expected)
    return _holds(Question(*sides, as_written(sides[0]), as_written(sides[1])), frozenset(), session, steps)


@dataclass(frozen=True, slots=True)
class Question:
    """Whether two terms are equal, or, what comes to the same, what is left of them."""

    found: Poly
    expected: Poly
    mine: tuple[Summand, ...]
    others: tuple[Summand, ...]

    @property
    def free(self) -> frozenset[Var]:
        return self.found.free | self.expected.free

    @property
    def may_be_infinite(self) -> bool:
        return bool((self.found.doubt | self.expected.doubt) & INFINITE)

    def where(self, v: Var, value: Index) -> Question:
        """The question where a free variable has a value, or is in a part of its range."""
        found, expected = (algebra.substitute(p, {v: value}) for p in (self.found, self.expected))
        if self.may_be_infinite:
            return Question(found, expected, as_written(found), as_written(expected))
        mine, others = (tuple(_where(side, v, value)) for side in (self.mine, self.others))
        return Question(found, expected, mine, others)


def _where(side: Sequence[Summand], v: Var, value: Index) -> Iterator[Summand]:
    for summand in side:
        for part in as_written(algebra.substitute(summand.body, {v: value})):
            yield Summand(summand.bound, part.product, summand.times * part.times)


def _holds(question: Question, opened: frozenset[Tensor], session: Session, steps: Steps) -> bool:
    most = session.limits.enumerated_values
    while True:
        session.check()
        comparison = Comparison(question, opened, steps)
        if comparison.holds():
            return True
        question = comparison.question_left()
        regions = by_conditions(comparison.atoms(), question.free, most)
        if regions is None:
            apart, shared = comparison.definitions()
            if not apart and comparison.holds_cut():
                return True
            if not apart:
                regions = by_blocks(comparison.atoms(), question.free, most)
            if regions is None and (apart or shared):
                opened |= _outermost(apart or shared)
                continue
            if regions is None and comparison.holds_multiplied():
                return True
            regions = regions or by_remainders(comparison.atoms(), question.free, most)
        if regions is None:
            return False
        v, values = regions
        return all(_holds(question.where(v, value), opened, session, steps) for value in values)


def _outermost(several: frozenset[Tensor]) -> frozenset[Tensor]:
    """Of some definitions those that the most others lie within."""
    most = max(map(height, several))
    return frozenset(source for source in several if height(source) == most)


@dataclass(slots=True)
class Comparison:
    """A question with some definitions opened."""

    question: Question
    opened: frozenset[Tensor]
    steps: Steps
    left: tuple[tuple[Summand, ...], tuple[Summand, ...]] = ((), ())
    unfolding: Unfolding = field(init=False)

    def holds(self) -> bool:
        """Whether the two are equal as they are opened."""
        return self._holds({})

    def holds_cut(self) -> bool:
        """Whether what is left is equal with ranges cut."""
        cuts = self._cuts()
        return bool(cuts) and self._holds(cuts)

    def holds_multiplied(self) -> bool:
        """Whether what is left is equal once it is multiplied by what it is divided by, with ranges cut."""
        if self.question.may_be_infinite:
            return False
        left = (*self.left[0], *self.left[1])
        known = never_zero(self.question.expected)
        denominators = Denominators(self.unfolding.divided_by(known))
        if not any(map(denominators.of, left)):
            return False
        deeper = Comparison(self.question, self.opened | denominators.read(left), self.steps)
        return deeper._holds(self._cuts(), multiplied_by=known)

    def _cuts(self) -> Cuts:
        return self.unfolding.ends([*self.left[0], *self.left[1]], self.question.free)

    def question_left(self) -> Question:
        """The same question of what is left; where nothing is, what is computed differs."""
        if self.question.may_be_infinite:
            return self.question
        return replace(self.question, mine=self.left[0], others=self.left[1])

    def _holds(self, cuts: Cuts, *, multiplied_by: frozenset[Poly] | None = None) -> bool:
        unfolding = Unfolding(self.opened, cuts, self.steps)
        labelling = Labelling(unfolding, self.steps)
        is_first = not cuts and multiplied_by is None
        if is_first:
            self.unfolding = unfolding
        found, expected = self.question.found, self.question.expected
        if self.question.may_be_infinite:
            is_same = labelling.of_term(found, {}) == labelling.of_term(expected, {})
            return is_same and are_numbers(found, expected, labelling)
        mine, others = (unfolding.again(side) for side in (self.question.mine, self.question.others))
        left = _left(mine, others, labelling)
        if is_first:
            self.left = left
        if multiplied_by is not None and any(left):
            opposite = (replace(summand, times=-summand.times) for summand in left[1])
            denominators = Denominators(unfolding.divided_by(multiplied_by))
            left = ((), ()) if denominators.cancel((*left[0], *opposite), labelling) else left
        return not any(left) and are_numbers(found, expected, labelling)

    def definitions(self) -> tuple[frozenset[Tensor], frozenset[Tensor]]:
        """The definitions of what is left that one side alone has, and those that both have."""
        mine, others = (frozenset(self._definitions(side)) for side in self._sides())
        return mine ^ others, mine & others

    def atoms(self) -> Iterator[Atom]:
        """The factors of what is left."""
        return (atom for side in self._sides() for p in side for mono, _ in p.items for atom, _ in mono)

    def _sides(self) -> tuple[list[Poly], list[Poly]]:
        """What is left of each side."""
        if not any(self.left):
            return [self.question.found], [self.question.expected]
        mine, others = ([summand.body for summand in side] for side in self.left)
        return mine, others

    def _definitions(self, side: list[Poly]) -> Iterator[Tensor]:
        """The definitions that some terms are made of and that are not opened, as far as they are seen."""
        todo, seen = list(side), set(side)
        while todo:
            self.steps.take()
            p = todo.pop()
            parts = [p] if p.doubt & INFINITE else [summand.body for summand in self.unfolding.of(p)]
            for atom in (atom for part in parts for mono, _ in part.items for atom, _ in mono):
                if isinstance(atom, Read) and atom.tensor.bodies and not self.unfolding.is_opened(atom.tensor):
                    yield atom.tensor
                for inner in self._inside(atom):
                    if inner not in seen:
                        seen.add(inner)
                        todo.append(inner)

    def _inside(self, atom: Atom) -> tuple[Poly, ...]:
        if isinstance(atom, Apply):
            return atom.args
        if isinstance(atom, Read) and self.unfolding.is_opened(atom.tensor):
            return self.unfolding.definition(atom)[1]
        return ()


def _left(
    mine: Sequence[Summand], others: Sequence[Summand], labelling: Labelling
) -> tuple[tuple[Summand, ...], tuple[Summand, ...]]:
    """The summands of each side that the other one has not."""
    totals: dict[int, Number] = defaultdict(int)
    numbers: dict[Summand, int] = {}
    for side, sign in ((mine, 1), (others, -1)):
        for summand in side:
            number, times = labelling.of_summand(summand, {})
            numbers[summand] = number
            totals[number] += sign * times
    found, expected = (tuple(s for s in side if totals[numbers[s]]) for side in (mine, others))
    return found, expected


@once_a_session
def height(source: Tensor) -> int:
    """How many definitions lie within one another in a definition."""
    inside = (atom for body in source.bodies for atom in _surface(body))
    return 1 + max((height(atom.tensor) for atom in inside), default=0)


def _surface(p: Poly) -> Iterator[Read]:
    """The definitions that a term reads, in the arguments of functions too."""
    return (atom for atom in atoms(p) if isinstance(atom, Read) and atom.tensor.bodies)
