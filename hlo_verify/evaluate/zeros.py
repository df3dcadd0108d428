"""Which values of a module are 0 where one of its arguments is: with fewer different elements, evaluation is cheaper.

In attention, 2048 positions make 2048 x 2048 different scores, whatever the inputs. If the weights of the queries are
0, all scores are 0, and much else that may be wrong is not. What is found is a guess that only says what to try.

`vanishing` asks another question: what is surely 0 for one choice of zeros, so that evaluation may leave out the rest
of a product or a quotient. It must know of that rest that it is a number, and so says less: nothing of branches, calls
or `log(1 + x)`. Here one walk answers for all arguments at once, a bit for each, and nothing rests on the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hlo_verify.evaluate.numbers import is_float
from hlo_verify.program.ir import Function, Module, Name, Op, operations

ANY_OPERAND = frozenset("multiply and dot_general convolution".split())
"""Operations that are 0 where one of the operands is."""

FIRST_OPERAND = frozenset(
    "divide remainder negate abs sign sqrt cbrt tanh sine tan floor ceil round_nearest_even round_nearest_afz convert "
    "exponential_minus_one log_plus_one reshape transpose broadcast_in_dim slice reverse reduce_precision "
    "dynamic_slice gather all_gather all_to_all collective_permute optimization_barrier "
    "sdy.sharding_constraint sdy.reshard custom_call".split()
)
"""Those that are 0 where the first operand is."""

EACH_OPERAND = frozenset("optimization_barrier all_gather all_to_all collective_permute".split())
"""Those of which each result is 0 where its own operand is."""

FIRST_OPERANDS = frozenset("add subtract maximum minimum concatenate or all_reduce reduce_scatter reduce".split())
"""Those that are 0 where all operands are, of those that hold elements."""

SOME_OPERANDS: Mapping[str, tuple[int, ...]] = {
    "select": (1, 2),
    "pad": (0, 1),
    "dynamic_update_slice": (0, 1),
    "scatter": (0, 2),
    "clamp": (1,),
}
"""Likewise, by number."""

TURNS = 4
"""How often a loop is walked through: what it carries is 0 where it begins so and stays so."""


@dataclass(slots=True)
class Zeros:
    """For each value of a module, the arguments any one of which makes it 0; a bit for each."""

    module: Module
    _by: dict[Name, int] = field(default_factory=dict)
    _damage: list[int] = field(default_factory=list)
    """How many values each argument makes 0."""

    def __post_init__(self) -> None:
        main = self.module.main
        for n, (value, type_) in enumerate(zip(main.arguments, main.argument_types, strict=True)):
            self._by[value] = 1 << n if is_float(type_.dtype) else 0
        self._walk(main)
        self._damage = [0] * len(main.arguments)
        for by in self._by.values():
            if by.bit_count() < len(main.arguments):
                for n in _numbers(by):
                    self._damage[n] += 1

    def sparing(self, refused: frozenset[Name], choice: int) -> frozenset[int]:
        """Arguments that are to be 0, so that those operations which were too large have few different elements: of
        each, one argument, the one that makes as little else 0 as can be, or by `choice` the next. An operation stands
        for all from its line: layers."""
        if not refused:
            return frozenset()
        ops = [(op, (op.name, str(op.location))) for op in operations(self.module.main)]
        lines = {line for op, line in ops if not refused.isdisjoint(op.results)}
        return frozenset(number for op, line in ops if line in lines for number in self._least(op, choice))

    def _least(self, op: Op, choice: int) -> list[int]:
        """The argument to choose for one operation, if there are any."""
        by = 0
        for value in op.operands:
            by |= self._by.get(value, 0)
        numbers = sorted(_numbers(by), key=lambda n: self._damage[n])
        return numbers[min(choice, len(numbers) - 1) :][:1] if numbers else []

    def _walk(self, function: Function) -> None:
        for op in function.ops:
            found = self._of(op)
            for value, by in zip(op.results, found, strict=True):
                self._by[value] = by

    def _of(self, op: Op) -> Sequence[int]:
        given = [self._by.get(value, 0) for value in op.operands]
        if op.name == "while":
            return self._loop(op, given)
        if op.name in ("if", "case"):
            return self._branches(op)
        if op.name in EACH_OPERAND and len(op.operands) == len(op.results):
            return given
        return [self._plain(op, given)] * len(op.results)

    def _plain(self, op: Op, given: Sequence[int]) -> int:
        every = (1 << len(self.module.main.arguments)) - 1
        if op.name == "constant":
            array = np.asarray(op.attributes["value"])
            return 0 if (array if any(array.strides) else array.reshape(-1)[:1]).any() else every
        if not given:
            return 0
        if op.name in ANY_OPERAND:
            return _any(given)
        if op.name in FIRST_OPERAND:
            return given[0]
        if op.name in SOME_OPERANDS:
            return _all([given[n] for n in SOME_OPERANDS[op.name]], every)
        return _all(given, every) if op.name in FIRST_OPERANDS else 0

    def _loop(self, op: Op, carried: Sequence[int]) -> Sequence[int]:
        body = op.regions[1]
        for _ in range(TURNS):
            self._by.update(zip(body.arguments, carried, strict=True))
            self._walk(body)
            after = [self._by.get(value, 0) & by for value, by in zip(body.results, carried, strict=True)]
            if after == list(carried):
                return carried
            carried = after
        return [0] * len(carried)

    def _branches(self, op: Op) -> Sequence[int]:
        for region in op.regions:
            self._walk(region)
        every = (1 << len(self.module.main.arguments)) - 1
        each = zip(*(region.results for region in op.regions), strict=True)
        return [_all([self._by.get(value, 0) for value in values], every) for values in each]


def _numbers(by: int) -> list[int]:
    return [n for n in range(by.bit_length()) if by >> n & 1]


def _any(given: Sequence[int]) -> int:
    found = 0
    for by in given:
        found |= by
    return found


def _all(given: Sequence[int], every: int) -> int:
    for by in given:
        every &= by
    return every
