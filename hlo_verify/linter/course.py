"""What two devices that meet do together in a computation: their collectives, in order, whatever else each does."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from hlo_verify.hlo.groups import COLLECTIVES, PERMUTES, kind
from hlo_verify.hlo.meetings import Meetings
from hlo_verify.hlo.module import Computation, Instruction
from hlo_verify.linter.rendezvous import Communicator

Step = Hashable
"""A collective that both come to, as `("meet", what, communicator)`; a loop, with its steps; or a conditional, with
those of its branches."""


@dataclass(eq=False)
class Courses:
    """Collectives of computations, with all that they enter, and who meets in them."""

    meetings: Meetings
    is_cyclic: bool = False
    """Whether a computation was seen that enters itself, which is no HLO."""
    _open: set[Computation] = field(default_factory=set)
    _communicators: dict[tuple[str, int], dict[int, tuple[Communicator, ...]]] = field(default_factory=dict)
    _choices: dict[Computation, tuple[Instruction, ...]] = field(default_factory=dict)
    _within: dict[Computation, tuple[Instruction, ...]] = field(default_factory=dict)

    def within(self, computation: Computation) -> tuple[Instruction, ...]:
        """The collectives of a computation and of all that it enters, in order."""
        if computation in self._open:
            self.is_cyclic = True
            return ()
        if computation not in self._within:
            self._open.add(computation)
            self._within[computation] = tuple(self._collectives(computation))
            self._open.discard(computation)
        return self._within[computation]

    def _collectives(self, computation: Computation) -> Iterator[Instruction]:
        for one in computation.instructions:
            if one.opcode in COLLECTIVES:
                yield one
            for inner in entered(one):
                yield from self.within(inner)

    def choices(self, computation: Computation) -> tuple[Instruction, ...]:
        """The loops and conditionals of a computation and of all that it enters."""
        if computation not in self._choices:
            here = (one for one in computation.instructions if one.opcode in ("while", "conditional"))
            inner = (each for one in computation.instructions for each in entered(one))
            self._choices[computation] = (*here, *(one for each in inner for one in self.choices(each)))
        return self._choices[computation]

    def communicators(self, collective: Instruction) -> dict[int, tuple[Communicator, ...]]:
        """Whom a collective brings together with each device: none that is alone."""
        what = "pair" if collective.opcode in PERMUTES else "group"
        groups = self.meetings.groups(collective) or ()
        key = what, id(groups)  # many collectives are over the same groups
        if key not in self._communicators:
            found: dict[int, tuple[Communicator, ...]] = {}
            for group in groups:
                for device in set(group) if len(set(group)) > 1 else ():
                    found[device] = (*found.get(device, ()), (what, group))
            self._communicators[key] = found
        return self._communicators[key]

    def groups(self, collective: Instruction) -> list[tuple[int, ...]]:
        """The groups of more than one device that a collective brings together."""
        of_all = self.communicators(collective).values()
        return list(dict.fromkeys(group for each in of_all for _, group in each))

    def steps(self, computation: Computation, a: int, b: int) -> tuple[Step, ...]:
        """What the devices `a` and `b` do together in a computation."""
        return tuple(self._steps(computation, a, b))

    def channels(self, computation: Computation, a: int, b: int) -> list[int | None]:
        """The channels of the collectives that two devices may come to together in a computation, in order."""
        found = self.within(computation)
        return [one.channel for one in found if any(b in on[1] for on in self.communicators(one).get(a, ()))]

    def _steps(self, computation: Computation, a: int, b: int) -> Iterator[Step]:
        for one in computation.instructions:
            if one.opcode in COLLECTIVES:
                both = (on for on in self.communicators(one).get(a, ()) if b in on[1])
                yield from (("meet", what(one), on) for on in both)
                continue
            inner = [self.steps(each, a, b) for each in entered(one) if self.within(each)]
            if one.opcode == "while":
                if any(inner):
                    yield ("loop", one, tuple(inner))
            elif one.opcode != "conditional":
                yield from (step for steps in inner for step in steps)
            elif any(inner):
                branches = {self.steps(each, a, b) for each in one.entered}
                yield from next(iter(branches)) if len(branches) == 1 else (("branch", one, tuple(inner)),)


def what(collective: Instruction) -> str:
    """What has to be the same on all devices of a communicator: the operation, by what it joins, and shapes."""
    return f"{kind(collective)}{_joined_by(collective)} of {', '.join(map(str, collective.given_shapes))}"


def _joined_by(collective: Instruction) -> str:
    """By what a reduction joins: ` (add)`. What it converts before and behind is of no account."""
    computations = collective.computation.module.computations
    reducers = (computations[name] for name in collective.called if name in computations)
    joins = (one for reducer in reducers for one in reducer.instructions if len(one.operands) == 2)
    found = sorted({one.opcode for one in joins} - {"tuple"})
    return f" ({', '.join(found)})" if found else ""


def entered(instruction: Instruction) -> tuple[Computation, ...]:
    """The computations whose collectives a device comes to in an instruction."""
    return instruction.applied if instruction.opcode in ("fusion", "async-start") else instruction.entered
