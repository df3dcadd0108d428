"""Follow every device through a module by itself, as far as its own number says where it goes, and have them meet.

Where the predicate of a loop or conditional is not known, all devices of a group choose alike if they surely agree: a
branch, or one turn. Where devices may disagree, it is `decided` for each device which branch it takes, or how many
turns (one or none): one of the ways in which the module's inputs can make them choose. What is not decided makes the
replay inexact, and so does what is come to twice: nothing follows from it then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from hlo_verify.hlo.groups import COLLECTIVES
from hlo_verify.hlo.module import Computation, Instruction
from hlo_verify.linter.agreement import Tree, Value
from hlo_verify.linter.course import Courses, entered, what
from hlo_verify.linter.flow import Flow, Mask
from hlo_verify.linter.rendezvous import Event, come_through


@dataclass(eq=False)
class Replay(Flow):
    """`doubtful`: loops and conditionals on whose predicates devices that meet in them may disagree; `aim`: the one
    that this is about, which is gone to where nothing else says where to go."""

    doubtful: frozenset[Instruction] = frozenset()
    aim: Instruction | None = None
    decided: Mapping[Instruction, Sequence[int]] = field(default_factory=dict)
    is_exact: bool = True
    quiet: bool = False
    traces: list[list[Event]] = field(default_factory=list)
    steps: int = 0
    _seen: set[Instruction] = field(default_factory=set)
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
        if i in self.decided:
            taken = self._decided(i)
        elif i in self.doubtful:
            self.is_exact = False
        return super().branch(i, [Value(which.labels, taken), *given[1:]], reached)

    def _likely(self, branches: Sequence[Computation]) -> int:
        """The branch that holds the aim, or the first with a collective."""
        holding = [number for number, branch in enumerate(branches) if self.aim in self.courses.choices(branch)]
        meeting = [number for number, branch in enumerate(branches) if self.courses.within(branch)]
        return (holding or meeting or [0])[0]

    def _decided(self, i: Instruction) -> npt.NDArray[np.int64]:
        """How each device chooses. To come there twice, with other data, is not followed."""
        self.is_exact = self.is_exact and i not in self._seen
        self._seen.add(i)
        return np.array(self.decided[i])

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
        if i in self.decided:
            return self._decided(i) > 0
        self.is_exact = self.is_exact and i not in self.doubtful
        return everywhere

    def _quietly(self, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
        """What a loop leaves behind, however often it turns."""
        self.quiet = True
        found = super().loop(i, given, reached)
        self.quiet = False
        return found
