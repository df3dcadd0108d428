"""Where each value of a module goes and who reads it, where XLA's own list of that (`…-values.txt`) is not at hand.

Tuples, bitcasts, calls, dones and loops hand values on as they are. What a loop carries is a value of its own where the
buffer assignment has one for it; elsewhere it is what the loop was entered with.

Source: HloDataflowAnalysis in XLA's hlo_dataflow_analysis.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_verify.hlo.buffers import Allocation, Lifetime
from hlo_verify.hlo.module import Computation, HloModule, Instruction, Operand
from hlo_verify.hlo.shapes import Array, Path, Shape
from hlo_verify.linter.transfers import is_done, is_start, is_update

Key = tuple[str, Path]
"""A value: the instruction that makes it, and which part of its result it is."""

AS_IT_IS = frozenset("bitcast optimization-barrier domain add-dependency get-tuple-element".split())


def lifetimes(module: HloModule, allocations: Sequence[Allocation]) -> dict[int, Lifetime]:
    """By number of a value in the allocations, its positions and its uses."""
    numbers = {(placed.name, placed.path): placed.number for one in allocations for placed in one.values}
    flow = _Flow(module, numbers)
    flow.run(module.entry)
    return {
        number: Lifetime(tuple(flow.positions.get(key, ())), tuple(flow.uses.get(key, ())))
        for key, number in numbers.items()
    }


class _Flow:
    """The values of each part of each instruction's result, `at`."""

    def __init__(self, module: HloModule, numbers: dict[Key, int]) -> None:
        self.module = module
        self.numbers = numbers
        self.at: dict[Key, tuple[Key, ...]] = {}
        self.positions: dict[Key, list[tuple[str, Path]]] = {}
        self.uses: dict[Key, list[tuple[str, int, Path]]] = {}

    def run(self, computation: Computation) -> None:
        for instruction in computation.instructions:
            for number, operand in enumerate(instruction.operands):
                for path, keys in self._given(operand, instruction):
                    for key in keys if _reads(instruction, path) else ():
                        self.uses.setdefault(key, []).append((instruction.name, number, path))
            self._enter(instruction)
            if (instruction.name, ()) not in self.at:
                self._settle(instruction, {path: self._values(instruction, path) for path in _nodes(instruction.shape)})

    def _settle(self, instruction: Instruction, values: dict[Path, tuple[Key, ...]]) -> None:
        for path, keys in values.items():
            self.at[instruction.name, path] = keys
            for key in keys:
                self.positions.setdefault(key, []).append((instruction.name, path))

    def _given(self, operand: Operand, instruction: Instruction) -> Iterator[tuple[Path, tuple[Key, ...]]]:
        """The values of an operand, part by part."""
        source = instruction.computation.by_name.get(operand.name)
        if source is None:
            return
        for path in _nodes(source.shape):
            if path[: len(operand.path)] == operand.path:
                yield path[len(operand.path) :], self.at.get((source.name, path), ())

    def _of(self, operand: Operand, path: Path) -> tuple[Key, ...]:
        return self.at.get((operand.name, (*operand.path, *path)), ())

    def _enter(self, instruction: Instruction) -> None:
        """Give the parameters of entered computations their values, and run those."""
        inner = instruction.entered or _started(instruction)
        if instruction.opcode == "while":
            self._settle(instruction, {path: self._values(instruction, path) for path in _nodes(instruction.shape)})
        for number, computation in enumerate(inner):
            for index, parameter in computation.parameters.items():
                if instruction.opcode == "while":
                    values = {path: self.at.get((instruction.name, path), ()) for path in _nodes(parameter.shape)}
                else:
                    place = number + 1 if instruction.opcode == "conditional" else index
                    given = instruction.operands[place] if place < len(instruction.operands) else None
                    nodes = _nodes(parameter.shape)
                    values = {path: self._of(given, path) if given else ((parameter.name, path),) for path in nodes}
                own = {path: ((parameter.name, path),) for path in values if (parameter.name, path) in self.numbers}
                self._settle(parameter, values | own)
            self.run(computation)

    def _values(self, instruction: Instruction, path: Path) -> tuple[Key, ...]:
        own: tuple[Key, ...] = ((instruction.name, path),)
        handed = self._handed_on(instruction, path)
        return own if handed is None or own[0] in self.numbers else handed

    def _handed_on(self, instruction: Instruction, path: Path) -> tuple[Key, ...] | None:
        """The values that an instruction hands on in a part of its result; None where it makes one."""
        operands, opcode = instruction.operands, instruction.opcode
        if not operands:
            return None
        if opcode == "tuple":
            return self._of(operands[path[0]], path[1:]) if path else None
        if opcode in AS_IT_IS:
            index = (int(instruction.attributes.get("index", "0")),) if opcode == "get-tuple-element" else ()
            return self._of(operands[0], (*index, *path))
        if opcode == "while" or is_update(instruction):
            return self._of(operands[0], path)
        if opcode == "recv-done":  # gives the data, and a token of its own
            return self._of(operands[0], path) if path[:1] == (0,) else None
        if is_done(instruction):
            return self._of(operands[0], (0 if opcode == "copy-done" else 1, *path))
        if opcode in ("conditional", "call"):
            return self._roots(instruction.entered, path)
        if is_start(instruction):
            return self._of_start(instruction, path)
        return None

    def _of_start(self, start: Instruction, path: Path) -> tuple[Key, ...] | None:
        if start.opcode == "copy-start":
            return self._of(start.operands[0], path[1:]) if path[:1] == (1,) else None
        if path[:1] == (1,) and start.called:
            return self._roots(_started(start), path[1:])
        if len(path) >= 2 and path[0] == 0 and path[1] < len(start.operands):
            return self._of(start.operands[path[1]], path[2:])
        return self._of(start.operands[0], ()) if path == (0,) and len(start.operands) == 1 else None

    def _roots(self, computations: Sequence[Computation], path: Path) -> tuple[Key, ...]:
        roots = [computation.root for computation in computations]
        found = (key for root in roots if root is not None for key in self.at.get((root.name, path), ()))
        return tuple(dict.fromkeys(found))


def _reads(instruction: Instruction, path: Path) -> bool:
    """Whether an instruction reads that part of an operand, and does not only hand it on: `get-tuple-element` of a pair
    reads the table of the pair, none of its parts."""
    if instruction.opcode in ("tuple", "domain"):
        return False
    return not path or instruction.opcode not in ("get-tuple-element", "copy")


def _started(instruction: Instruction) -> tuple[Computation, ...]:
    """The computation that a start runs."""
    return instruction.applied if is_start(instruction) else ()


def _nodes(shape: Shape, path: Path = ()) -> Iterator[Path]:
    """Each part of a shape, the tuples themselves too."""
    yield path
    if not isinstance(shape, Array):
        for number, part in enumerate(shape.parts):
            yield from _nodes(part, (*path, number))
