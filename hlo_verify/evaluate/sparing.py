"""Which arguments to make 0, so that nothing hangs on what is too large to be evaluated.

If the weights of the values and those of the output of attention are 0, neither results nor gradients need its scores
(`vanishing`), of which 2048 positions make four millions. What is found is a guess that only says what to try.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

from hlo_verify.evaluate.needed import part
from hlo_verify.evaluate.numbers import is_float
from hlo_verify.evaluate.state import as_written
from hlo_verify.evaluate.vanishing import Known, without_vanishing
from hlo_verify.program.ir import Module, Name, Op, operations

CANDIDATES = 8
"""So many arguments are tried in twos."""

LOOKED_AT = 1_000
"""The work of looking at one operation."""


@dataclass(slots=True)
class Sparing:
    """For one module, and some of its results."""

    module: Module
    results: Collection[int]
    _least: int = 0
    _count: int = 0
    work: float = 0.0
    _tried: dict[frozenset[int], tuple[int, int]] = field(default_factory=dict)

    def removing(self, refused: Collection[Name]) -> frozenset[int]:
        """Arguments without which nothing is needed that has as many elements as the least of those values, and as much
        else as can be: one or two; none where there are no such."""
        ops = list(operations(self.module.main))
        sizes = [_size(op) for op in ops if not set(op.results).isdisjoint(refused)]
        self._least = min(sizes, default=0)
        self._count = len(ops)
        every, size = self._left(frozenset())
        types = self.module.main.argument_types
        ones = [frozenset([n]) for n, type_ in enumerate(types) if is_float(type_.dtype)]
        fewer = [one for one in ones if self._left(one)[0] < every]
        some = sorted(fewer, key=lambda one: -self._left(one)[1])[:CANDIDATES]
        found = self._best(fewer)
        if not found or self._left(found)[1] < size / 2:
            found = self._best([found, *(a | b for a, b in combinations(some, 2))])
        return found

    def _best(self, choices: Sequence[frozenset[int]]) -> frozenset[int]:
        """Of those that are enough, the one that leaves the most."""
        enough = [zero for zero in choices if zero and self._left(zero)[0] == 0]
        return max(enough, key=lambda zero: self._left(zero)[1], default=frozenset())

    def _left(self, zero: frozenset[int]) -> tuple[int, int]:
        """How many operations as large are needed where these arguments are 0, and how many of any size."""
        if zero not in self._tried:
            main = self.module.main
            known = [Known.ZERO if n in zero else Known.POSITIVE for n in range(len(main.arguments))]
            marked = part(without_vanishing(main, known, as_written)[0], {main.results[n] for n in self.results})
            ops = list(operations(marked))
            self.work += LOOKED_AT * self._count
            self._tried[zero] = (sum(_size(op) >= self._least for op in ops), len(ops))
        return self._tried[zero]


def _size(op: Op) -> int:
    return max((prod(type_.shape) for type_ in op.types), default=0)
