"""Which arguments to make 0, so that nothing hangs on what is too large to be evaluated.

If the weights of the values and those of the output of attention are 0, neither results nor gradients need its scores
(`vanishing`), of which 2048 positions make four millions. What is found is a guess that only says what to try.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from hlo_verify.evaluate.needed import part
from hlo_verify.evaluate.numbers import is_float
from hlo_verify.evaluate.state import as_written
from hlo_verify.evaluate.vanishing import Known, without_vanishing
from hlo_verify.program.ir import Function, Location, Module, Name, Op, operations

CANDIDATES = 8
"""So many arguments are tried in twos."""

FEW = 32
"""So many arguments are tried one by one."""

RADIUS = 2
"""So far along its uses it is looked what an argument is for."""

LOOKED_AT = 1_000
"""The work of looking at one operation."""


@dataclass(slots=True)
class Sparing:
    """For one module, and some of its results."""

    module: Module
    results: Collection[int]
    _kinds: set[Hashable] = field(default_factory=set)
    """What is too large: operations as these, of the same lines."""
    _needed: Function = field(init=False)
    """What the results need of it."""
    _count: int = 0
    work: float = 0.0
    _tried: dict[frozenset[int], tuple[int, int]] = field(default_factory=dict)
    _lines: dict[Location, str] = field(default_factory=dict)

    def removing(self, refused: Collection[Name]) -> frozenset[int]:
        """Arguments without which none of those values is needed, nor one like it of another layer, and as much else as
        can be: of one role or two; none where there are no such."""
        self._needed = part(self.module.main, {self.module.main.results[n] for n in self.results})
        ops = list(operations(self._needed))
        self._kinds = {self._kind(op) for op in ops if not set(op.results).isdisjoint(refused)}
        self._count = len(ops)
        every, size = self._left(frozenset())
        fewer = [each for each in self._roles() if self._left(each)[0] < every]
        some = sorted(fewer, key=lambda one: -self._left(one)[1])[:CANDIDATES]
        found = self._best(fewer)
        if not found or self._left(found)[1] < size / 2:
            found = self._best([found, *(a | b for a, b in combinations(some, 2))])
        return found

    def _roles(self) -> list[frozenset[int]]:
        """Arguments by what they are for: of one type, and used alike, as the layers of a network use their weights.
        What is too large in one layer is so in all of them. Where there are few, each by itself too."""
        main = self._needed
        ops = list(operations(main))
        lines = Counter(op.location for op in ops)  # a line of one operation says nothing
        uses: dict[Name, frozenset[Hashable]] = {}
        for _ in range(RADIUS):
            users: dict[Name, set[Hashable]] = {}
            for op in ops:
                line = self._line(op) if lines[op.location] > 1 else ""
                after = tuple(uses.get(value, frozenset()) for value in op.results)
                for slot, value in enumerate(op.operands):
                    users.setdefault(value, set()).add((op.name, op.types, slot, line, after))
            uses = {value: frozenset(found) for value, found in users.items()}
        roles: dict[Hashable, set[int]] = {}
        for n, (value, type_) in enumerate(zip(main.arguments, main.argument_types, strict=True)):
            if is_float(type_.dtype):
                roles.setdefault((type_, uses.get(value, frozenset())), set()).add(n)
        found = list(map(frozenset, roles.values()))
        if len(main.arguments) <= FEW:
            found = list(dict.fromkeys([*(frozenset([n]) for role in found for n in role), *found]))
        return found

    def _best(self, choices: Sequence[frozenset[int]]) -> frozenset[int]:
        """Of those that are enough, the one that leaves the most."""
        enough = [zero for zero in choices if zero and self._left(zero)[0] == 0]
        return max(enough, key=lambda zero: self._left(zero)[1], default=frozenset())

    def _left(self, zero: frozenset[int]) -> tuple[int, int]:
        """How many operations that are too large are needed where these arguments are 0, and how many of all."""
        if zero not in self._tried:
            main, needed = self._needed, {self.module.main.results[n] for n in self.results}
            known = [Known.ZERO if n in zero else Known.POSITIVE for n in range(len(main.arguments))]
            marked = part(without_vanishing(main, known, as_written)[0], needed)
            ops = list(operations(marked))
            self.work += LOOKED_AT * self._count
            self._tried[zero] = (sum(self._kind(op) in self._kinds for op in ops), len(ops))
        return self._tried[zero]

    def _kind(self, op: Op) -> Hashable:
        return op.name, op.types, self._line(op)

    def _line(self, op: Op) -> str:
        """The source line of an operation, which is found in its stack once."""
        line = self._lines.get(op.location)
        if line is None:
            line = self._lines[op.location] = str(op.location)
        return line
