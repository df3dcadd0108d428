"""When each instruction of a scheduled module runs: computations that an operation enters are written out in its place.

A loop is written out once, condition first; its tick before tells what was there on entering. What applies a
computation to elements, as a fusion does, is one tick. What is started runs from its start to its done.

Source: HloLiveRange in XLA's hlo_live_range.h flattens a schedule alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hlo_verify.hlo.module import ENTERED, Computation, HloModule, Instruction
from hlo_verify.linter.transfers import flight, is_start


@dataclass(frozen=True, slots=True)
class Place:
    """Where a computation is run: the loops around it, and the branches that it is in, as (conditional, number)."""

    loops: tuple[str, ...] = ()
    branches: tuple[tuple[str, int], ...] = ()

    def excludes(self, other: Place) -> bool:
        """Whether at most one of two places is run: other branches of one conditional."""
        mine = dict(self.branches)
        return any(name in mine and mine[name] != number for name, number in other.branches)


@dataclass(eq=False)
class Clock:
    """`begins` and `ends` of instructions, by name, in ticks; `places` of computations."""

    module: HloModule
    begins: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    instructions: dict[str, Instruction] = field(default_factory=dict)
    started_by: dict[str, Instruction] = field(default_factory=dict)
    now: int = 0

    def __post_init__(self) -> None:
        self._run(self.module.entry, Place())
        self._fly()

    @property
    def last(self) -> int:
        return self.now + 1

    def entered(self, parameter: Instruction) -> int:
        """When the computation of a parameter is entered."""
        callers = self.module.callers.get(parameter.computation.name, ())
        return min((self.begins[c.name] for c in callers if c.name in self.begins), default=self.begins[parameter.name])

    def place(self, instruction: Instruction) -> Place:
        return self.places[instruction.computation.name]

    def _run(self, computation: Computation, place: Place) -> None:
        if computation.name in self.places:  # called twice: the first time stands for all
            return
        self.places[computation.name] = place
        for instruction in computation.instructions:
            self.instructions[instruction.name] = instruction
            self.now += 1
            self.begins[instruction.name] = self.now
            for inner, where in self._entered(instruction, place):
                self._run(inner, where)
            self.now += 1 if instruction.opcode in ENTERED else 0
            self.ends[instruction.name] = self.now

    def _entered(self, instruction: Instruction, place: Place) -> Iterator[tuple[Computation, Place]]:
        for number, computation in enumerate(instruction.entered):
            if instruction.opcode == "while":
                yield computation, Place((*place.loops, instruction.name), place.branches)
            elif instruction.opcode == "conditional":
                yield computation, Place(place.loops, (*place.branches, (instruction.name, number)))
            else:
                yield computation, place

    def _fly(self) -> None:
        """What is started ends with its done, and so does what it runs."""
        for start in list(self.instructions.values()):
            if not is_start(start):
                continue
            followed = flight(start)
            dones = [done for done in followed.dones if done.name in self.begins]
            self.ends[start.name] = max((self.begins[done.name] for done in dones), default=self.begins[start.name])
            for one in (start, *followed.updates, *dones):
                self.started_by[one.name] = start
            begins = self.begins[start.name]
            if not start.operands and followed.updates:  # what it works on comes with an update
                begins = max(self.begins.get(update.name, begins) for update in followed.updates)
            for called in start.applied:
                self._fly_within(start, called, begins)

    def _fly_within(self, start: Instruction, called: Computation, begins: int) -> None:
        if called.name in self.places:
            return
        self.places[called.name] = self.place(start)
        for inner in called.instructions:
            self.instructions[inner.name] = inner
            self.begins[inner.name], self.ends[inner.name] = begins, self.ends[start.name]
            self.started_by[inner.name] = start

    def are_one(self, a: Instruction, b: Instruction) -> bool:
        """Whether two instructions are parts of one asynchronous operation."""
        started = self.started_by.get(a.name)
        return started is not None and started is self.started_by.get(b.name)

    def are_in_turn(self, a: Instruction, b: Instruction) -> bool:
        """Whether two asynchronous operations run on one thread of their own, so one after the other."""
        threads = [self.started_by[i.name].thread if i.name in self.started_by else "" for i in (a, b)]
        return threads[0] == threads[1] != ""
