"""Sends and receives of a schedule, where a microbatch goes on to another rank."""

from __future__ import annotations

from hlo_verify.schedules.schedule import Action, Kind, Schedule, Step
from hlo_verify.schedules.timeline import run


def homes(schedule: Schedule) -> dict[tuple[int, int], int]:
    """By stage and microbatch, the rank that runs its forward."""
    return {
        (action.stage, action.microbatch): rank for rank, _, action in schedule.actions() if action.kind is Kind.FORWARD
    }


def with_transfers(schedule: Schedule, *, late: bool = False) -> Schedule:
    """The schedule with sends and receives. A send stands behind what gives it, and its receive where the other rank is
    at that time: the steps of all ranks are those of one line of events, of which each transfer is one, so that nobody
    waits for ever, even where a send waits for its receive.

    `late`: a receive stands before what needs it instead, and what stands between two computations is posted at once.
    Raises ValueError for a schedule that cannot be gone through."""
    timeline = run(schedule)
    if timeline is None:
        raise ValueError("the schedule cannot be gone through: its ranks wait for each other")
    if late:
        return _late(schedule)
    home = homes(schedule)
    events = [(begin, rank, action) for rank, mine in enumerate(timeline.ranks) for begin, action in mine]
    found: list[list[Step]] = [[] for _ in schedule.ranks]
    for _, rank, action in sorted(events, key=lambda event: event[:2]):  # what needs another begins behind it
        found[rank].append((action,))
        for send in _sent(action, rank, home, schedule.stages):
            is_forward = send.kind is Kind.SEND_FORWARD
            stage = send.stage + (1 if is_forward else -1)
            kind = Kind.RECV_FORWARD if is_forward else Kind.RECV_BACKWARD
            found[rank].append((send,))
            found[home[stage, send.microbatch]].append((Action(stage, kind, send.microbatch),))
    return Schedule(tuple(map(tuple, found)))


def _late(schedule: Schedule) -> Schedule:
    home = homes(schedule)
    found = []
    for rank, steps in enumerate(schedule.ranks):
        mine: list[Step] = []
        pending: list[Action] = []
        for action in (action for step in steps for action in step):
            pending += _received(action, rank, home, schedule.stages)
            mine += [*([tuple(pending)] if pending else []), (action,)]
            pending = _sent(action, rank, home, schedule.stages)
        found.append((*mine, *([tuple(pending)] if pending else [])))
    return Schedule(tuple(found))


def _received(action: Action, rank: int, home: dict[tuple[int, int], int], stages: int) -> list[Action]:
    stage, microbatch = action.stage, action.microbatch
    if action.kind is Kind.FORWARD and stage and home.get((stage - 1, microbatch), rank) != rank:
        return [Action(stage, Kind.RECV_FORWARD, microbatch)]
    is_backward = action.kind in (Kind.BACKWARD, Kind.BACKWARD_INPUT)
    if is_backward and stage < stages - 1 and home.get((stage + 1, microbatch), rank) != rank:
        return [Action(stage, Kind.RECV_BACKWARD, microbatch)]
    return []


def _sent(action: Action, rank: int, home: dict[tuple[int, int], int], stages: int) -> list[Action]:
    stage, microbatch = action.stage, action.microbatch
    if action.kind is Kind.FORWARD and stage < stages - 1 and home.get((stage + 1, microbatch), rank) != rank:
        return [Action(stage, Kind.SEND_FORWARD, microbatch)]
    is_backward = action.kind in (Kind.BACKWARD, Kind.BACKWARD_INPUT)
    if is_backward and stage and home.get((stage - 1, microbatch), rank) != rank:
        return [Action(stage, Kind.SEND_BACKWARD, microbatch)]
    return []
