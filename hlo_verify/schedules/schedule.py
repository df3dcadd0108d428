"""A pipeline schedule: for each rank, a list of steps; and its text.

A line a rank, from rank 0, with steps between commas or spaces. `0F2` is the forward of microbatch 2 on stage 0, `B`
its backward, `I` the backward for inputs alone and `W` that for weights; `0U` updates the weights of stage 0.
`0SEND_F2` sends what stage 0 made of microbatch 2 to stage 1, `1RECV_F2` receives it there; `1SEND_B2` and `0RECV_B2`
do so with the gradient. Transfers that are joined by `+` are posted at once. `#` begins a comment; `rank 0:` may stand
in front.

Stages and kinds are spelled as in PyTorch (torch/distributed/pipelining/schedules.py, `_Action`).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError

_ACTION = re.compile(r"(\d+)(F|B|I|W|U|SEND_F|RECV_F|SEND_B|RECV_B)(\d*)")


class Kind(enum.StrEnum):
    """What an action does."""

    FORWARD = "F"
    BACKWARD = "B"
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"
    UPDATE = "U"
    SEND_FORWARD = "SEND_F"
    RECV_FORWARD = "RECV_F"
    SEND_BACKWARD = "SEND_B"
    RECV_BACKWARD = "RECV_B"

    @property
    def is_send(self) -> bool:
        return self in (Kind.SEND_FORWARD, Kind.SEND_BACKWARD)

    @property
    def is_transfer(self) -> bool:
        return self in (Kind.SEND_FORWARD, Kind.RECV_FORWARD, Kind.SEND_BACKWARD, Kind.RECV_BACKWARD)

    @property
    def is_forward(self) -> bool:
        return self in (Kind.FORWARD, Kind.SEND_FORWARD, Kind.RECV_FORWARD)


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a rank does for a stage and a microbatch; an update is for all microbatches (-1)."""

    stage: int
    kind: Kind
    microbatch: int = -1

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch if self.kind is not Kind.UPDATE else ''}"

    @property
    def message(self) -> tuple[bool, int, int]:
        """What a transfer carries, on both of its ends: forward or not, from which stage, of which microbatch."""
        back = 1 if self.kind is Kind.RECV_FORWARD else -1 if self.kind is Kind.RECV_BACKWARD else 0
        return self.kind.is_forward, self.stage - back, self.microbatch


Step = tuple[Action, ...]
"""One action, or transfers that are posted at once."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """What each rank does, in order."""

    ranks: tuple[tuple[Step, ...], ...]

    @property
    def stages(self) -> int:
        return 1 + max((action.stage for _, _, action in self.actions()), default=-1)

    @property
    def microbatches(self) -> int:
        return 1 + max((action.microbatch for _, _, action in self.actions()), default=-1)

    @property
    def has_transfers(self) -> bool:
        """Whether sends and receives are written out."""
        return any(action.kind.is_transfer for _, _, action in self.actions())

    def actions(self) -> Iterator[tuple[int, int, Action]]:
        """Each action with its rank and its place in the rank's steps."""
        for rank, steps in enumerate(self.ranks):
            for place, step in enumerate(steps):
                for action in step:
                    yield rank, place, action

    def __str__(self) -> str:
        return "".join(" ".join("+".join(map(str, step)) for step in steps) + "\n" for steps in self.ranks)


def of(ranks: Iterator[list[Action]] | list[list[Action]]) -> Schedule:
    """A schedule of single actions."""
    return Schedule(tuple(tuple((action,) for action in actions) for actions in ranks))


def parse(text: str) -> Schedule:
    """A schedule from its text. Raises InputError for what is none.

    >>> print(parse("0F0 1SEND_F0+0RECV_B0 # the first rank"), end="")
    0F0 1SEND_F0+0RECV_B0
    """
    ranks = []
    for number, line in enumerate(text.splitlines(), start=1):
        bare = re.sub(r"^\s*rank\s+\d+\s*:", "", line.partition("#")[0])
        if bare.strip():
            ranks.append(tuple(_step(word, number) for word in re.split(r"[\s,]+", bare.strip()) if word))
    if not ranks:
        raise InputError("the schedule has no ranks: a line for each, as `0F0 0F1 0B0 0B1`", Input.DAMAGED)
    return Schedule(tuple(ranks))


def _step(word: str, line: int) -> Step:
    step = tuple(_action(part, line) for part in word.split("+"))
    if len(step) > 1 and not all(action.kind.is_transfer for action in step):
        raise InputError(f"line {line}: {word!r} joins what is no transfer", Input.DAMAGED)
    return step


def _action(word: str, line: int) -> Action:
    found = _ACTION.fullmatch(word)
    if found is None or (found[3] == "") is not (found[2] == "U"):
        raise InputError(f"line {line}: {word!r} is no action, as 0F2, 1RECV_F2 or 0U are", Input.DAMAGED)
    return Action(int(found[1]), Kind(found[2]), int(found[3] or -1))
