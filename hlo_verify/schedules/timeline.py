"""Run a schedule: when each action begins if it begins as soon as it can, and what each rank keeps meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hlo_verify.schedules.schedule import Action, Kind, Schedule

TIMES: Mapping[Kind, int] = {
    Kind.FORWARD: 1,
    Kind.BACKWARD: 2,
    Kind.BACKWARD_INPUT: 1,
    Kind.BACKWARD_WEIGHT: 1,
    Kind.UPDATE: 1,
}
"""How long actions take if nobody says otherwise: each matrix multiplication of a layer the same. Transfers take no
time."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """For each rank its computations with the time at which they begin; `length` is when all have ended. `kept` is the
    most forwards of a rank whose backward for inputs is still to come, `stored` those whose backward for weights is."""

    ranks: tuple[tuple[tuple[int, Action], ...], ...]
    length: int
    idle: tuple[int, ...]
    kept: tuple[int, ...]
    stored: tuple[int, ...]


def needs(action: Action, stages: int, *, split: frozenset[tuple[int, int]]) -> list[Action]:
    """The computations that one needs to have ended. `split` are the stages and microbatches whose backward is in two
    parts."""
    stage, microbatch, kind = action.stage, action.microbatch, action.kind

    def backward(at: int) -> Action:
        return Action(at, Kind.BACKWARD_INPUT if (at, microbatch) in split else Kind.BACKWARD, microbatch)

    if kind is Kind.FORWARD:
        return [Action(stage - 1, Kind.FORWARD, microbatch)] if stage else []
    if kind is Kind.BACKWARD_WEIGHT:
        return [Action(stage, Kind.BACKWARD_INPUT, microbatch)]
    if kind in (Kind.BACKWARD, Kind.BACKWARD_INPUT):
        found = [Action(stage, Kind.FORWARD, microbatch)]
        return found + ([backward(stage + 1)] if stage < stages - 1 else [])
    return []


def split_of(schedule: Schedule) -> frozenset[tuple[int, int]]:
    """The stages and microbatches whose backward is in two parts."""
    actions = schedule.actions()
    return frozenset((a.stage, a.microbatch) for _, _, a in actions if a.kind is Kind.BACKWARD_INPUT)


def run(schedule: Schedule, times: Mapping[Kind, int] = TIMES) -> Timeline | None:
    """When everything happens; None where a rank waits forever. Transfers take no time, and
    what nobody computes is not waited for."""
    stages, split = schedule.stages, split_of(schedule)
    lists = [[a for step in steps for a in step if not a.kind.is_transfer] for steps in schedule.ranks]
    there = {action for actions in lists for action in actions}
    ended: dict[Action, int] = {}
    placed: list[list[tuple[int, Action]]] = [[] for _ in lists]
    free = [0] * len(lists)
    moved = True
    while moved:
        moved = False
        for rank, actions in enumerate(lists):
            while len(placed[rank]) < len(actions):
                action = actions[len(placed[rank])]
                before = [one for one in needs(action, stages, split=split) if one in there]
                if any(one not in ended for one in before):
                    break
                begin = max([free[rank], *(ended[one] for one in before)])
                placed[rank].append((begin, action))
                free[rank] = begin + times[action.kind]
                ended.setdefault(action, free[rank])
                moved = True
    if any(len(mine) < len(actions) for mine, actions in zip(placed, lists, strict=True)):
        return None
    length = max(free, default=0)
    idle = tuple(length - sum(times[a.kind] for a in actions) for actions in lists)
    kept = tuple(_most(actions, (Kind.BACKWARD, Kind.BACKWARD_INPUT)) for actions in lists)
    stored = tuple(_most(actions, (Kind.BACKWARD, Kind.BACKWARD_WEIGHT)) for actions in lists)
    return Timeline(tuple(map(tuple, placed)), length, idle, kept, stored)


def _most(actions: list[Action], ends: tuple[Kind, ...]) -> int:
    """The most forwards whose end is still to come."""
    count = most = 0
    for action in actions:
        count += (action.kind is Kind.FORWARD) - (action.kind in ends)
        most = max(most, count)
    return most


def draw(schedule: Schedule, times: Mapping[Kind, int] = TIMES) -> str:
    """A line a rank, a column a unit of time, `.` where it waits.

    >>> from hlo_verify.schedules.published import gpipe
    >>> print(draw(gpipe(2, 2)), end="")
    rank 0  0F0  0F1  .    .    .    0B1  ---  0B0  ---
    rank 1  .    1F0  1F1  1B1  ---  1B0  ---  .    .
    """
    timeline = run(schedule, times)
    if timeline is None:
        return "no timeline: a rank waits forever\n"
    width = max((len(str(action)) for mine in timeline.ranks for _, action in mine), default=1) + 2
    lines = []
    for rank, mine in enumerate(timeline.ranks):
        cells = ["."] * timeline.length
        for begin, action in mine:
            for unit in range(times[action.kind]):
                cells[begin + unit] = "-" * (width - 2) if unit else str(action)
        lines.append(f"rank {rank}  " + "".join(cell.ljust(width) for cell in cells).rstrip() + "\n")
    return "".join(lines)
