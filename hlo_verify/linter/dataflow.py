"""Walk through a module with any kind of facts about its arrays: fusions, calls and branches are gone through, loops
until no more is learnt. What an operation does to the facts is the matter of `Facts`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Generic, Protocol, TypeVar

from hlo_verify.hlo.module import Computation, HloModule, Instruction, Operand
from hlo_verify.hlo.shapes import Array, Shape, Tuple, leaves

T = TypeVar("T")

_TURNS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_STAYS = frozenset(("optimization-barrier", "opt-barrier", "domain", "async-update", "add-dependency"))
ROUNDS = 4
"""How often the body of a loop is looked at until no more is learnt."""


class Facts(Protocol[T]):
    """What is known of arrays, and what becomes of it. Facts are compared by `==`."""

    settled: bool
    """Whether what an operation is given is known for good: not in the first rounds through a loop."""

    def unknown(self) -> T: ...

    def argument(self, number: int, parameter: Instruction, shape: Array) -> T: ...

    def computed(self, instruction: Instruction, given: Sequence[T], shape: Array, part: int) -> T:
        """Part `part` of what an operation gives, one array."""

    def carried(self, loop: Instruction, part: int, start: T) -> T:
        """What a loop carries into its first turn."""

    def either(self, where: Instruction, part: int, one: T, other: T) -> T:
        """One of two: of branches, or of the turns of a loop."""

    def left(self, loop: Instruction, part: int, start: T, after: T) -> T:
        """What a loop leaves behind, of what it began with and what its last turn gave."""


class Dataflow(Generic[T]):
    """A walk of one kind of facts through a module. An array is a T, a tuple a tuple of such."""

    def __init__(self, module: HloModule, facts: Facts[T]) -> None:
        self.module = module
        self.facts = facts
        self._places: dict[int, tuple[int, ...]] = {}

    def run(self) -> list[T]:
        """Facts of the arrays that the module gives."""
        number = 0
        arguments: list[list[T]] = []
        for _, parameter in sorted(self.module.entry.parameters.items()):
            arrays = []
            for _, shape in leaves(parameter.shape):
                arrays.append(self.facts.argument(number, parameter, shape))
                number += 1
            arguments.append(arrays)
        return self._enter(self.module.entry, arguments)

    def _enter(self, computation: Computation, arguments: Sequence[list[T]]) -> list[T]:
        values: dict[str, list[T]] = {}
        for instruction in computation.instructions:
            if instruction.opcode == "parameter":
                number = int(instruction.given)
                found = arguments[number] if number < len(arguments) else []
            else:
                given = [self._operand(computation, operand, values) for operand in instruction.operands]
                found = self._value(instruction, given)
            values[instruction.name] = self._fitting(found, instruction.shape)
        root = computation.root or computation.instructions[-1]
        return values[root.name]

    def _fitting(self, found: list[T], shape: Shape) -> list[T]:
        if isinstance(shape, Array):
            return found if len(found) == 1 else [self.facts.unknown()]
        count = sum(1 for _ in leaves(shape))
        return found if len(found) == count else [self.facts.unknown() for _ in range(count)]

    def _operand(self, computation: Computation, operand: Operand, values: dict[str, list[T]]) -> list[T]:
        found = values.get(operand.name, [])
        source = computation.by_name.get(operand.name)
        return self._part(found, source.shape, operand.path) if source is not None and operand.path else found

    def _value(self, i: Instruction, given: Sequence[list[T]]) -> list[T]:
        opcode = i.opcode
        if opcode == "tuple":
            return [one for arrays in given for one in arrays]
        if opcode == "get-tuple-element":
            source = next(i.sources, None)
            number = int(i.attributes.get("index", "0"))
            return self._part(given[0], source.shape, (number,)) if source is not None and given else []
        if opcode in _STAYS:
            return given[0] if given else []
        if opcode in ("fusion", "call", "async-start"):
            found = self._enter(i.applied[0], given) if len(i.applied) == 1 else []
            return self._started(i, given, found) if opcode == "async-start" else found
        if opcode == "while":
            return self._loop(i, given[0]) if len(i.entered) == 2 and len(given) == 1 else []
        if opcode == "conditional":
            return self._branches(i, given[1:])
        if opcode.endswith("-done"):
            return self._done(i, given[0] if given else [])
        arrays = [one for each in given for one in each]
        if opcode.endswith("-start") and opcode not in ("all-reduce-start", "copy-start"):
            shape = i.shape.parts[1] if isinstance(i.shape, Tuple) and len(i.shape.parts) > 1 else i.shape
            return self._started(i, given, self._computed(i, arrays, shape))
        return self._computed(i, arrays, i.shape)

    def _computed(self, i: Instruction, arrays: Sequence[T], shape: Shape) -> list[T]:
        return [self.facts.computed(i, arrays, array, part) for part, (_, array) in enumerate(leaves(shape))]

    def _started(self, i: Instruction, given: Sequence[list[T]], found: list[T]) -> list[T]:
        """What a start gives: its operands, its results, and what nobody reads."""
        count = sum(1 for _ in leaves(i.shape))
        both = [*(one for arrays in given for one in arrays), *found]
        return [*both, *(self.facts.unknown() for _ in range(count - len(both)))]

    def _done(self, i: Instruction, started: list[T]) -> list[T]:
        source = next(i.sources, None)
        if source is None or i.opcode == "all-reduce-done":
            return started
        return self._part(started, source.shape, (0,) if i.opcode == "copy-done" else (1,))

    def _branches(self, i: Instruction, given: Sequence[list[T]]) -> list[T]:
        results = [self._enter(branch, [one]) for branch, one in zip(i.entered, given, strict=False)]
        if not results or len({len(one) for one in results}) > 1:
            return []
        found = results[0]
        for other in results[1:]:
            found = [self.facts.either(i, k, *pair) for k, pair in enumerate(zip(found, other, strict=True))]
        return found

    def _part(self, arrays: list[T], shape: Shape, path: Sequence[int]) -> list[T]:
        """The arrays of a part of a tuple."""
        for number in path:
            if not isinstance(shape, Tuple) or number >= len(shape.parts):
                return []
            places = self._places.get(id(shape))  # shapes live as long as their instructions
            if places is None:
                counts = (sum(1 for _ in leaves(part)) for part in shape.parts)
                places = self._places[id(shape)] = tuple(accumulate(counts, initial=0))
            arrays, shape = arrays[places[number] : places[number + 1]], shape.parts[number]
        return arrays

    def _loop(self, i: Instruction, start: list[T]) -> list[T]:
        facts, settled = self.facts, self.facts.settled
        body = i.entered[1]
        carried = [facts.carried(i, k, one) for k, one in enumerate(start)]
        facts.settled = False
        for _ in range(ROUNDS):
            after = self._fitting(self._enter(body, [carried]), i.shape)
            pairs = enumerate(zip(carried, after, strict=False))
            wider = [facts.either(i, k, before, now) for k, (before, now) in pairs]
            if wider == carried:
                break
            carried = wider
        else:
            carried = [facts.unknown() for _ in carried]
        facts.settled = settled
        after = self._fitting(self._enter(body, [carried]), i.shape) if settled else after
        return [facts.left(i, k, *pair) for k, pair in enumerate(zip(start, after, strict=False))]


def turns(loop: Instruction) -> int | None:
    """How often a loop runs its body: as the compiler noted it, or a counter from a constant to a constant by one."""
    noted = _TURNS.search(loop.rest)
    if noted is not None:
        return int(noted[1])
    condition = loop.entered[0] if len(loop.entered) == 2 else None
    asked = None if condition is None else condition.root or condition.instructions[-1]
    if asked is None or asked.opcode != "compare" or asked.attributes.get("direction") != "LT":
        return None
    sources = list(asked.sources)
    if len(sources) != 2 or sources[0].opcode != "get-tuple-element" or sources[1].opcode != "constant":
        return None
    state = next(loop.sources, None)
    number = int(sources[0].attributes.get("index", "0"))
    first = state.operands[number].name if state is not None and state.opcode == "tuple" else ""
    start = loop.computation.by_name.get(first)
    while start is not None and start.opcode in ("copy", "convert"):
        start = next(start.sources, None)
    texts = (sources[1].given, "" if start is None or start.opcode != "constant" else start.given)
    if not all(text.strip().lstrip("-").isdigit() for text in texts):
        return None
    last, before = map(int, texts)
    return max(last - before, 0)
