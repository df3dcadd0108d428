"""Run a scheduled module on the bytes of its buffer assignment: the truth that the linter's findings are held against.

Nothing is computed. Each time a value is written its bytes get a mark of their own, and whoever reads it looks whether
they all still have it. Loops take two turns, and a run goes through one branch of each conditional; what is started
writes at once, and its done looks whether its operands and its results are still there. It shares nothing with the
linter but the reader of texts: no clock, no live ranges, no pairs of values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hlo_verify.hlo.buffers import Allocation, Lifetime, Placed
from hlo_verify.hlo.module import Computation, HloModule, Instruction
from hlo_verify.hlo.shapes import Path

TURNS = 2


@dataclass(frozen=True, slots=True)
class Fault:
    """`reader` finds the bytes of a value written over, or has other ones."""

    value: Placed
    reader: str


@dataclass(eq=False)
class Machine:
    """Bytes in pieces that no value begins or ends within, each with the mark of what was written there last."""

    module: HloModule
    allocations: Sequence[Allocation]
    lifetimes: Mapping[int, Lifetime]
    branch: int = 0
    faults: list[Fault] = field(default_factory=list)
    cells: dict[int, npt.NDArray[np.int64]] = field(default_factory=dict)
    where: dict[int, tuple[int, slice]] = field(default_factory=dict)
    placed: dict[int, Placed] = field(default_factory=dict)
    marks: dict[int, int] = field(default_factory=dict)
    flights: dict[str, dict[int, int]] = field(default_factory=dict)
    now: int = 0

    def __post_init__(self) -> None:
        self.made: dict[str, list[int]] = {}
        self.read: dict[str, list[int]] = {}
        self.names = {instruction.name for instruction in self.module.instructions()}
        """XLA's list names readers that its text leaves out: `%x#1` for a get-tuple-element."""
        self.held: dict[tuple[str, Path], int] = {}
        for one in self.allocations:
            if one.is_shared:
                self._lay_out(one)
        for number, lifetime in self.lifetimes.items():
            self.held |= dict.fromkeys(lifetime.positions, number)
            for name, _, _ in lifetime.uses:
                self.read.setdefault(name, []).append(number)

    def _lay_out(self, one: Allocation) -> None:
        values = [value for value in one.values if value.size]
        points = sorted({point for value in values for point in (value.offset, value.end)})
        self.cells[one.number] = np.zeros(len(points), dtype=np.int64)
        for value in values:
            self.where[value.number] = (one.number, slice(points.index(value.offset), points.index(value.end)))
            self.placed[value.number] = value
            if value.end > one.size:
                self.faults.append(Fault(value, "the allocation"))
            self.made.setdefault(value.name, []).append(value.number)

    def run(self) -> list[Fault]:
        """What readers find written over, from the arguments to the results."""
        entry = self.module.entry
        for parameter in entry.parameters.values():
            self._write(self.made.get(parameter.name, ()))
        self._through(entry)
        return self.faults

    def _through(self, computation: Computation) -> None:
        for instruction in computation.instructions:
            if instruction.opcode != "parameter":
                self._step(instruction)
        if computation.root is not None:  # whoever called it reads what it gives
            self._look(
                [n for (name, _), n in self.held.items() if name == computation.root.name], computation.root.name
            )

    def _step(self, instruction: Instruction) -> None:
        opcode, name = instruction.opcode, instruction.name
        if not opcode.endswith("-done"):
            self._look(self.read.get(name, ()), name)
        if opcode == "while":
            self._loop(instruction)
        elif opcode in ("conditional", "call"):
            entered = instruction.entered
            number = self.branch % len(entered) if opcode == "conditional" else 0
            self._hand_over(entered[number], instruction, number)
            self._through(entered[number])
            self._pass_on(name, self._root(entered[number]))
        elif opcode.endswith("-done"):
            self._land(instruction)
            self._write(self.made.get(name, ()))
        else:
            written = [
                *self.made.get(name, ()),
                *(n for inner in _started(instruction) for n in self.made.get(inner, ())),
            ]
            self._write(written)
            self._look([n for n in written if any(self._is_wanted(m) for m in written if self._meet(n, m))], name)
            if _starts(instruction) or opcode.endswith("-update"):
                start = name if _starts(instruction) else self._start_of(instruction).name
                mine = (*self.read.get(name, ()), *written)  # an operand that it works on in place is gone already
                self.flights.setdefault(start, {}).update((n, self.marks[n]) for n in mine if self._is_there(n))

    def _loop(self, loop: Instruction) -> None:
        condition, body = loop.entered
        given = loop.operands[0]
        source = (given.name, given.path)
        for turn in range(TURNS + 1):
            for computation in (condition, body) if turn < TURNS else (condition,):
                self._pass_on(computation.parameters[0].name, source)
                self._through(computation)
            source = self._root(body)
        self._pass_on(loop.name, self._root(body))

    def _hand_over(self, computation: Computation, caller: Instruction, branch: int) -> None:
        for number, parameter in computation.parameters.items():
            place = branch + 1 if caller.opcode == "conditional" else number
            if place < len(caller.operands):
                given = caller.operands[place]
                self._pass_on(parameter.name, (given.name, given.path))

    def _root(self, computation: Computation) -> tuple[str, Path]:
        return (computation.root.name, ()) if computation.root is not None else ("", ())

    def _pass_on(self, name: str, source: tuple[str, Path]) -> None:
        """A value of a computation's parameter, or behind a loop, is what was handed over, in the same bytes."""
        passed = {}
        for number in self.made.get(name, ()):
            path = self.placed[number].path
            given = self.held.get((source[0], (*source[1], *path)))
            if given is None or given == number or given not in self.marks:
                continue
            passed[number] = given
        self._look([given for given in passed.values() if not self._is_table(given)], name)
        for number, given in passed.items():
            if self._bytes(number) != self._bytes(given):
                self.faults.append(Fault(self.placed[number], name))
            self.marks[number] = self.marks[given]

    def _is_table(self, number: int) -> bool:
        """Whether a value says where the parts of a tuple are: who reads `%x#1` knows that without it."""
        return any((name, (*path, 0)) in self.held for name, path in self.lifetimes[number].positions)

    def _bytes(self, number: int) -> tuple[int, int, int]:
        value = self.placed[number]
        return self.where[number][0], value.offset, value.end

    def _land(self, done: Instruction) -> None:
        start = self._start_of(done)
        for number, mark in self.flights.pop(start.name, {}).items():
            self._compare(number, mark, done.name)

    def _start_of(self, instruction: Instruction) -> Instruction:
        while not _starts(instruction):
            instruction = next(iter(instruction.sources))
        return instruction

    def _write(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.now += 1
            allocation, cells = self.where[number]
            self.cells[allocation][cells] = self.now
            self.marks[number] = self.now

    def _look(self, numbers: Iterator[int] | Sequence[int], reader: str) -> None:
        for number in numbers:
            if number in self.marks:
                self._compare(number, self.marks[number], reader)

    def _is_wanted(self, number: int) -> bool:
        lifetime = self.lifetimes.get(number)
        return lifetime is not None and any(name in self.names for name, _, _ in lifetime.uses)

    def _meet(self, a: int, b: int) -> bool:
        """Whether two values share bytes; where nobody reads either of them, that is no fault."""
        (here, mine), (there, others) = self.where[a], self.where[b]
        return here == there and mine.start < others.stop and others.start < mine.stop

    def _is_there(self, number: int) -> bool:
        if number not in self.marks:
            return False
        allocation, cells = self.where[number]
        return bool((self.cells[allocation][cells] == self.marks[number]).all())

    def _compare(self, number: int, mark: int, reader: str) -> None:
        allocation, cells = self.where[number]
        if (self.cells[allocation][cells] != mark).any():
            self.faults.append(Fault(self.placed[number], reader))


def _starts(instruction: Instruction) -> bool:
    return instruction.opcode in ("send", "recv") or instruction.opcode.endswith("-start")


def _started(instruction: Instruction) -> list[str]:
    """The instructions that a start runs elsewhere."""
    applied = instruction.applied if _starts(instruction) else ()
    return [inner.name for computation in applied for inner in computation.instructions]


def faults(module: HloModule, allocations: Sequence[Allocation], lifetimes: Mapping[int, Lifetime]) -> list[Fault]:
    """What goes wrong with the bytes, whichever branches are taken."""
    branches = [len(one.entered) for one in module.instructions() if one.opcode == "conditional"]
    found = [Machine(module, allocations, lifetimes, branch).run() for branch in range(max(branches, default=1))]
    return list(dict.fromkeys(fault for one in found for fault in one))
