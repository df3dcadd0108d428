"""Let all ranks go through the transfers of a schedule, step by step, until nobody can go on.

It keeps what each rank has posted, and looks at nothing ahead; `waits` asks the same of a graph.
"""

from __future__ import annotations

from collections import Counter

from hlo_verify.schedules.schedule import Kind, Schedule, Step
from hlo_verify.schedules.transfers import homes

Mailbox = tuple[int, int, bool]
"""From which rank to which, and whether it is the sends or the receives that were posted."""

_BESIDE = {Kind.SEND_FORWARD: 1, Kind.RECV_BACKWARD: 1, Kind.RECV_FORWARD: -1, Kind.SEND_BACKWARD: -1}
"""Where the other end of a transfer is, in stages."""


def stuck(schedule: Schedule, *, buffered: bool = False) -> dict[int, int]:
    """By rank, the step at which it stands when nobody can go on; nothing where all come to their end."""
    home = homes(schedule)
    posted: Counter[Mailbox] = Counter()
    at = [0] * len(schedule.ranks)
    waits: list[list[tuple[Mailbox, int]] | None] = [None] * len(schedule.ranks)
    moved = True
    while moved:
        moved = False
        for rank, steps in enumerate(schedule.ranks):
            while at[rank] < len(steps):
                mine = waits[rank]
                if mine is None:
                    mine = waits[rank] = _post(steps[at[rank]], rank, home, posted, buffered=buffered)
                    moved = True
                if any(posted[box] < count for box, count in mine):
                    break
                at[rank] += 1
                waits[rank] = None
                moved = True
    return {rank: place for rank, place in enumerate(at) if place < len(schedule.ranks[rank])}


def _post(
    step: Step, rank: int, home: dict[tuple[int, int], int], posted: Counter[Mailbox], *, buffered: bool
) -> list[tuple[Mailbox, int]]:
    """Post the transfers of a step; what has to be posted on the other side for it to be done."""
    found = []
    for action in step:
        peer = home.get((action.stage + _BESIDE.get(action.kind, 0), action.microbatch))
        if action.kind not in _BESIDE or peer is None:
            continue
        source, target = (rank, peer) if action.kind.is_send else (peer, rank)
        posted[source, target, action.kind.is_send] += 1
        if not (buffered and action.kind.is_send):
            found.append(((source, target, not action.kind.is_send), posted[source, target, action.kind.is_send]))
    return found
