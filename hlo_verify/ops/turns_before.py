"""What a logical loop carries, by what the turn before made of it.

    carried[t + 1] = made[t]        carried[0] = what it began with        left = made[trips - 1]

A name of what a loop carries and what a turn makes are equal, and a term may have the one or the other. Where a name
is surely one of a later turn it is replaced by what the turn before made, as often as that is sure; but for turns that
are far from the first ones, as these would be replaced turn by turn. Where a device makes several turns of its own, all
but the name of the first of these are replaced; and in gradients, whose terms double with each turn, no others are.
Of two terms, one may have a name alone: `h[t + 1]` where the other one has what a turn made of `h[t]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import groupby

from hlo_verify.equality.opening import ingredients
from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ops.induction import Loop
from hlo_verify.ops.lines import Piped
from hlo_verify.ops.values import Value
from hlo_verify.terms import algebra
from hlo_verify.terms.at_constants import remade
from hlo_verify.terms.definitions import at_places
from hlo_verify.terms.functions import Function
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Apply, Atom, Poly, Read, Tensor


@dataclass(slots=True, eq=False)
class TurnsBefore:
    """The names of what loops carry, and of what they leave."""

    carried: dict[Tensor, list[Piped]] = field(default_factory=dict)
    """Of a name, what makes it: other pipelines may make other turns."""
    left: dict[Tensor, tuple[Loop, int]] = field(default_factory=dict)
    opens_between: bool = True
    """Whether names of turns are replaced that a place makes on its way."""
    opens_ends: bool = True
    """Whether what loops leave is replaced."""
    opens_early: bool = True
    """Whether names of the turns are replaced that the first places make."""
    opened: Set[tuple[Tensor, Index]] = frozenset()
    """Names, and turns, that are replaced in any case."""
    _read: set[tuple[Tensor, Index]] = field(default_factory=set)
    """Names that were left, and in which turns."""
    _made: dict[Atom, Poly | None] = field(default_factory=dict)
    _inside: set[Tensor] = field(default_factory=set)
    """What loops leave of which is looked at what the last turn made."""

    @classmethod
    def of(cls, components: Iterable[Piped]) -> TurnsBefore:
        """Those of components of loops, in all turns of loops around them, that go round a known number of times."""
        found = cls()
        for each in components:
            loop, k = each.loop, each.component
            shape, name, end = loop.state[k].shape, loop.state[k].term.atom, loop.final[k].term.atom
            if loop.test is not None or not isinstance(name, Read) or not isinstance(end, Read):
                continue
            if name.tensor.kind == "loop" and len(name.indices) == 1 + len(shape):
                found.carried.setdefault(name.tensor, []).append(each)
                if end.tensor.kind == "loop" and len(end.indices) == len(shape):
                    found.left[end.tensor] = loop, k
        return found

    def are_in(self, p: Poly) -> bool:
        return any(each in self.carried or each in self.left for each in ingredients(p))

    def turns_outside(self) -> set[int]:
        """How many turns the loops have that are around those of which these are names."""
        every = (each for piped in self.carried.values() for each in piped)
        return {size for each in every for size in each.loop.state[each.component].shape[: each.loop.outside]}

    def replaced_each(self, sides: tuple[Poly, Poly]) -> Iterator[tuple[Poly, Poly]]:
        """Two terms with what turns made in the place of names: of those alone that loops begin with; of those that a
        place makes on its way, too; of what loops leave; of the first turns. Each is larger than the one before."""
        ways = [
            replace(self, opens_between=n > 0, opens_ends=n > 1, opens_early=n > 2, _made={}, _inside=set())
            for n in range(4)
        ]
        pairs = ((way.replaced(sides[0]), way.replaced(sides[1])) for way in ways)
        return (pair for pair, _ in groupby(pairs))

    def go_round(self) -> bool:
        """Whether microbatches go round a line of devices several times in one loop."""
        return any(each.way.rounds > 1 for piped in self.carried.values() for each in piped)

    def alike(self, sides: tuple[Poly, Poly]) -> tuple[Poly, Poly]:
        """Two terms without those names that one of them has alone: the other one may have what a turn made for it."""
        plain = replace(self, opens_between=False, opens_ends=False, opens_early=False)
        found, expected = (replace(plain, _read=set(), _made={}, _inside=set()) for _ in sides)
        for reading, side in ((found, sides[0]), (expected, sides[1])):
            reading.replaced(side)
        opening = replace(plain, opened=found._read ^ expected._read, _made={}, _inside=set())
        return opening.replaced(sides[0]), opening.replaced(sides[1])

    def is_among(self, names: Iterable[Tensor], p: Poly) -> bool:
        """Whether a term, or a turn that is behind a name in it, is made of all these tensors, but for those that turns
        are behind themselves."""
        others = set(names) - self.carried.keys() - self.left.keys()
        return not others or others <= self._behind(p)

    def _behind(self, p: Poly) -> set[Tensor | Function]:
        """What a term is made of, and what the turns are made of that have names in it."""
        found: set[Tensor | Function] = set()
        todo = [p]
        while todo:
            new = ingredients(todo.pop()) - found
            found |= new
            named = [(each.loop, each.component) for name, (each, *_) in self.carried.items() if name in new]
            named += [named for name, named in self.left.items() if name in new]
            todo += (part for loop, k in named for part in (loop.initial[k].term, loop.after[k].term))
        return found

    def replaced(self, p: Poly) -> Poly:
        """The term with what turns made in the place of names."""
        if not self.are_in(p):
            return p
        return algebra.with_atoms(p, self._anew)

    def _anew(self, atom: Atom) -> Poly | None:
        if atom not in self._made:
            self._made[atom] = self._replaced(atom)
        return self._made[atom]

    def _replaced(self, atom: Atom) -> Poly | None:
        if isinstance(atom, Apply):
            return apply(atom.function, tuple(map(self.replaced, atom.args)))
        if not isinstance(atom, Read):
            return None
        source = atom.tensor
        if source in self._inside:
            return None
        if source in self.left and self.opens_ends:
            loop, k = self.left[source]
            self._inside.add(source)
            made = self.replaced(_at(loop.after[k], loop, expr.constant(loop.t.size - 1), atom.indices))
            self._inside.remove(source)
            return made
        if source in self.carried:
            return self._turn(source, atom.indices)
        if not source.bodies or source.seal is not None:
            return None
        count = len(source.params)
        bound, there = at_places(source, atom.indices[:count])
        bodies = tuple(self.replaced(there.poly(body)) for body in source.bodies)
        return remade(source, bound, bodies, atom.indices[count:])

    def _turn(self, name: Tensor, indices: tuple[Index, ...]) -> Poly | None:
        piped = self.carried[name]
        each = piped[0]
        loop, k, at_once = each.loop, each.component, each.way.at_once
        turn, where = indices[loop.outside], (*indices[: loop.outside], *indices[loop.outside + 1 :])
        if turn is expr.constant(0):
            return self.replaced(loop.initial[k].at(list(where)))
        is_near = any(0 < turn.lo - start <= 2 * at_once for other in piped for start in other.way.starts)
        is_early = self.opens_early and not each.is_gradient and is_near
        is_opened = (name, turn) in self.opened and turn.lo > 0 and not each.is_gradient
        if is_opened or is_early or (self.opens_between and _is_within(turn, at_once)):
            return self.replaced(_at(loop.after[k], loop, expr.shift(turn, -1), where))
        self._read.add((name, turn))
        return None


def _is_within(turn: Index, at_once: int) -> bool:
    """Whether a turn is surely another than the first of those that a place makes."""
    return turn.lo > 0 and turn.const % at_once != 0 and all(c % at_once == 0 for _, c in turn.items)


def _at(value: Value, loop: Loop, turn: Index, where: Sequence[Index]) -> Poly:
    return Value(value.type, algebra.substitute(value.term, {loop.t: turn})).at(list(where))
