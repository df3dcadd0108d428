"""Terms compared as sums of products, modulo order, association and the names of bound variables.

    x(AB) = (xA)B        sum (x - m)**2 = sum x**2 - n*m**2        x[:,0]*w[0] + x[:,1]*w[1] = sum k<2. x[:,k]*w[k]

Each side is a list of summands: products of factors, summed over bound variables. What both sides have is struck out.
Of what is left the definitions are opened that only one side has, the outermost first, and only then what they share;
ranges are cut where others begin or end. The terms are equal if nothing is left. What a function is taken of is
compared in the same way, so that tanh((xA)B) is tanh(x(AB)).

These are laws of a commutative ring: of real and complex numbers, and of integers that wrap. A term that may be
infinite is not taken apart (`labelling`), and one that may be undefined has to be defined where the other is
(`computed`). The steps are limited (`Limits.network_steps`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from hlo_verify.equality.computed import are_numbers
from hlo_verify.equality.labelling import Labelling
from hlo_verify.equality.summands import Cuts, SpentError, Steps, Summand, Unfolding
from hlo_verify.memory import once_a_session
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.term import ONE, Apply, Atom, Number, Poly, Read, Tensor


def same_network(found: Poly, expected: Poly, session: Session, inside: Poly = ONE) -> bool:
    """Whether two terms are equal as sums of products wherever `inside` (a product of guards) holds."""
    steps = Steps(session.limits.network_steps)
    sides = algebra.expanded(inside, found), algebra.expanded(inside, expected)
    opened = frozenset[Tensor]()
    try:
        while True:
            session.check()
            comparison = Comparison(*sides, opened, steps)
            if comparison.holds():
                return True
            more = comparison.to_be_opened()
            if not more:
                return False
            opened |= more
    except SpentError:
        session.reached("network_steps")
        return False


@dataclass(slots=True)
class Comparison:
    """Two terms with some definitions opened."""

    found: Poly
    expected: Poly
    opened: frozenset[Tensor]
    steps: Steps
    left: tuple[list[Summand], list[Summand]] = field(default=([], []))
    unfolding: Unfolding = field(init=False)

    def holds(self) -> bool:
        """Whether the two are equal as they are opened, with ranges as they are or cut."""
        if self._holds({}):
            return True
        cuts = self.unfolding.ends([*self.left[0], *self.left[1]], self.found.free | self.expected.free)
        return bool(cuts) and self._holds(cuts)

    def _holds(self, cuts: Cuts) -> bool:
        unfolding = Unfolding(self.opened, cuts, self.steps)
        labelling = Labelling(unfolding, self.steps)
        if not cuts:
            self.unfolding = unfolding
        if (self.found.doubt | self.expected.doubt) & INFINITE:
            return labelling.of_term(self.found, {}) == labelling.of_term(self.expected, {})
        left = _left(unfolding.of(self.found), unfolding.of(self.expected), labelling)
        if not cuts:
            self.left = left
        return not any(left) and are_numbers(self.found, self.expected, labelling)

    def to_be_opened(self) -> frozenset[Tensor]:
        """The definitions to open next: such as one side alone has, the outermost of them."""
        found, expected = (frozenset(self._definitions(side)) for side in self._sides())
        several = found ^ expected or found | expected
        most = max(map(height, several), default=0)
        return frozenset(source for source in several if height(source) == most)

    def _sides(self) -> tuple[list[Poly], list[Poly]]:
        """What is left of each side."""
        if not any(self.left):
            return [self.found], [self.expected]
        found, expected = ([summand.body for summand in side] for side in self.left)
        return found, expected

    def _definitions(self, side: list[Poly]) -> Iterator[Tensor]:
        """The definitions that some terms are made of and that are not opened, as far as they are seen."""
        todo, seen = list(side), set(side)
        while todo:
            self.steps.take()
            p = todo.pop()
            parts = [p] if p.doubt & INFINITE else [summand.body for summand in self.unfolding.of(p)]
            for atom in (atom for part in parts for mono, _ in part.items for atom, _ in mono):
                if isinstance(atom, Read) and atom.tensor.bodies and atom.tensor not in self.opened:
                    yield atom.tensor
                for inner in self._inside(atom):
                    if inner not in seen:
                        seen.add(inner)
                        todo.append(inner)

    def _inside(self, atom: Atom) -> tuple[Poly, ...]:
        if isinstance(atom, Apply):
            return atom.args
        if isinstance(atom, Read) and atom.tensor in self.opened:
            return self.unfolding.definition(atom)[1]
        return ()


def _left(
    found: tuple[Summand, ...], expected: tuple[Summand, ...], labelling: Labelling
) -> tuple[list[Summand], list[Summand]]:
    """The summands of each side that the other one has not."""
    totals: dict[int, Number] = defaultdict(int)
    numbers: dict[Summand, int] = {}
    for side, sign in ((found, 1), (expected, -1)):
        for summand in side:
            number, times = labelling.of_summand(summand, {})
            numbers[summand] = number
            totals[number] += sign * times
    mine, others = ([s for s in side if totals[numbers[s]]] for side in (found, expected))
    return mine, others


@once_a_session
def height(source: Tensor) -> int:
    """How many definitions lie within one another in a definition."""
    inside = (atom for body in source.bodies for atom in _surface(body))
    return 1 + max((height(atom.tensor) for atom in inside), default=0)


def _surface(p: Poly) -> Iterator[Read]:
    """The definitions that a term reads, in the arguments of functions too."""
    for mono, _ in p.items:
        for atom, _ in mono:
            if isinstance(atom, Read) and atom.tensor.bodies:
                yield atom
            elif isinstance(atom, Apply):
                for arg in atom.args:
                    yield from _surface(arg)
