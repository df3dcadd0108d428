"""Follow every device through a module by itself, as far as its own number says where it goes, and have them meet.

Where the predicate of a loop or conditional is not known, all devices of a group choose alike if they surely agree: a
branch, or one turn. One predicate may be a `Suspect`, of which it is known that devices can differ: those of one label
go in, or take one branch, and all others do not. So what is replayed is something that the module does for some input,
or for every one where all is known. What is not of that kind makes the replay inexact, and nothing follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from hlo_verify.hlo.groups import COLLECTIVES
from hlo_verify.hlo.module import Computation, Instruction
from hlo_verify.linter.agreement import Labels, Tree, Value
from hlo_verify.linter.course import Courses, entered, what
from hlo_verify.linter.flow import Flow, Mask
from hlo_verify.linter.rendezvous import Event, come_through


@dataclass(frozen=True, slots=True)
class Suspect:
    """A loop or conditional, labels of independent data that its predicate is a function of, and a device whose label
    goes another way (into the loop; branch `ways[0]`) than all other labels (`ways[1]`)."""

    instruction: Instruction
    labels: Labels
    device: int
    ways: tuple[int, int] = (0, 1)


@dataclass(eq=False)
class Replay(Flow):
    """`doubtful`: loops and conditionals on whose predicates devices that meet in them may disagree."""

    doubtful: frozenset[Instruction] = frozenset()
    suspect: Suspect | None = None
    is_exact: bool = True
    quiet: bool = False
    traces: list[list[Event]] = field(default_factory=list)
    steps: int = 0
    waited: bool = True
    is_apart: bool = False
    """Whether devices that meet may be elsewhere now: then turns count, and one does not stand for all."""

    def hangs(self, arguments: Sequence[Tree]) -> bool:
        """Whether devices surely wait for one another forever, or meet in different collectives."""
        self.courses = Courses(self.meetings)
        self.traces = [[] for _ in range(self.meetings.devices)]
        self.run(arguments)
        return self.is_exact and not come_through(self.traces)

    def give(self, i: Instruction, values: dict[str, Tree], arguments: Sequence[Tree], reached: Mask) -> Tree:
        self.steps += 1
        found = super().give(i, values, arguments, reached)
        if i.opcode.endswith("-done"):
            self._wait(i, reached)
        return found

    def meet(self, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
        if not self.quiet:
            communicators = self.courses.communicators(i)
            for device in np.flatnonzero(reached).tolist():
                on = communicators.get(device, ())
                self.traces[device].append(Event(i, what(i), on))
                if self.waited and not i.opcode.endswith("-start"):
                    self.traces[device].append(Event(i, what(i), on, waits=True))
        return super().meet(i, given, reached)

    def begin(self, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
        before, self.waited = self.waited, False
        found = super().begin(i, given, reached)
        self.waited = before
        return found

    def _wait(self, done: Instruction, reached: Mask) -> None:
        """For what the start of a done has posted; for nothing where the start is not to be seen."""
        start = next(done.sources, None)
        while start is not None and start.opcode.endswith("-update"):
            start = next(start.sources, None)
        if start is None or self.quiet:
            return
        posted = [start] if start.opcode in COLLECTIVES else [o for c in entered(start) for o in self.courses.within(c)]
        for one in posted:
            communicators = self.courses.communicators(one)
            for device in np.flatnonzero(reached).tolist():
                on = communicators.get(device, ())
                self.traces[device].append(Event(one, what(one), on, waits=True))

    def branch(self, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
        within, self.is_apart = self.is_apart, self.is_apart or i in self.doubtful
        found = self._branch(i, given, reached)
        self.is_apart = within
        return found

    def _branch(self, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
        which = given[0] if given else None
        if self.quiet or not isinstance(which, Value) or which.table is not None or len(given) != len(i.entered) + 1:
            return super().branch(i, given, reached)
        taken = np.full(self.meetings.devices, self._likely(i.entered))
        if self.suspect is not None and i is self.suspect.instruction:
            taken = np.where(self._chosen(self.suspect), *self.suspect.ways)
        elif i in self.doubtful:
            self.is_exact = False
        return super().branch(i, [Value(which.labels, taken), *given[1:]], reached)

    def _likely(self, branches: Sequence[Computation]) -> int:
        """The branch that the suspect is in, or the first with a collective."""
        wanted = None if self.suspect is None else self.suspect.instruction
        holding = [number for number, branch in enumerate(branches) if wanted in self.courses.choices(branch)]
        meeting = [number for number, branch in enumerate(branches) if self.courses.within(branch)]
        return (holding or meeting or [0])[0]

    def _chosen(self, suspect: Suspect) -> Mask:
        """The devices whose data send them in. To come to it twice, with other data, is not followed."""
        self.is_exact = self.is_exact and not self._seen_suspect
        self._seen_suspect = True
        return np.equal(suspect.labels, suspect.labels[suspect.device])

    _seen_suspect: bool = False

    def loop(self, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
        if self.quiet or len(i.entered) != 2 or len(given) != 1:
            return super().loop(i, given, reached)
        condition, body = i.entered
        state = self.fit(i.shape, given[0])
        apart = self.is_apart or any(one in self.doubtful for one in (i, *self.courses.choices(body)))
        active = reached
        for _ in range(self.limits.turns):
            which = self.enter(condition, [state], active)
            active = active & self._goes_on(i, which)
            if not active.any():
                return state
            after = self.fit(i.shape, self.enter(body, [state], active))
            if not isinstance(which, Value) or which.table is None or not apart:
                self.enter(condition, [state], active)
                return self._quietly(i, given, reached)
            state = self.combine(partial(self.agreements.chosen, Value(which.labels, active)), [after, state])
            if self.steps > self.limits.steps:
                break
        self.is_exact = False
        return self._quietly(i, given, reached)

    def _goes_on(self, i: Instruction, which: Tree) -> Mask:
        """The devices that take another turn."""
        everywhere = np.ones(self.meetings.devices, np.bool_)
        if isinstance(which, Value) and which.table is not None:
            return np.broadcast_to(which.table.reshape(-1).astype(np.bool_), everywhere.shape)
        if self.suspect is not None and i is self.suspect.instruction:
            return self._chosen(self.suspect)
        self.is_exact = self.is_exact and i not in self.doubtful
        return everywhere

    def _quietly(self, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
        """What a loop leaves behind, however often it turns."""
        self.quiet = True
        found = super().loop(i, given, reached)
        self.quiet = False
        return found
