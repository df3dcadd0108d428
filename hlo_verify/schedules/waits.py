"""Who waits for whom in a schedule, as a graph: a rank posts its steps in order, each when the one before is done.

A step with a receive is done when what it receives has been posted, one with a send when its receive has (or at once,
where sends are buffered). Between two ranks the first send meets the first receive, and so on. Where no transfers are
written out, a computation waits for those that it needs, wherever they are. A schedule can be gone through if and only
if no step waits for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from hlo_verify.schedules.schedule import Action, Kind, Schedule
from hlo_verify.schedules.timeline import needs, split_of
from hlo_verify.schedules.transfers import homes

Node = tuple[int, int, bool]
"""A rank, one of its steps, and whether it is done (or posted)."""

Channel = tuple[int, int]
"""The rank that sends and the rank that receives."""


@dataclass(frozen=True)
class Ends:
    """The transfers of a schedule by channel: each with its rank, the place of its step, and itself."""

    schedule: Schedule

    @cached_property
    def home(self) -> dict[tuple[int, int], int]:
        return homes(self.schedule)

    def channel(self, rank: int, action: Action) -> Channel | None:
        """Between whom a transfer goes; None where nobody has the stage of its other end."""
        ahead = 1 if action.kind in (Kind.SEND_FORWARD, Kind.RECV_BACKWARD) else -1
        other = self.home.get((action.stage + ahead, action.microbatch))
        if other is None:
            return None
        return (rank, other) if action.kind.is_send else (other, rank)

    @cached_property
    def by_channel(self) -> dict[tuple[Channel, bool], list[tuple[int, int, Action]]]:
        """In order, by channel and whether they send."""
        found: dict[tuple[Channel, bool], list[tuple[int, int, Action]]] = {}
        for rank, place, action in self.schedule.actions():
            if action.kind.is_transfer and (channel := self.channel(rank, action)) is not None:
                found.setdefault((channel, action.kind.is_send), []).append((rank, place, action))
        return found


def cycle(schedule: Schedule, *, buffered: bool = False) -> list[tuple[int, int]]:
    """Steps (rank and place) of which each waits for the next one's rank to come there, and the last for the first's;
    none if all can go on. Of transfers without another end nothing is said."""
    graph: dict[Node, list[Node]] = {}
    for rank, steps in enumerate(schedule.ranks):
        for place in range(len(steps)):
            graph[rank, place, False] = [(rank, place - 1, True)] if place else []
            graph[rank, place, True] = [(rank, place, False)]
    for waiting, awaited in _across(schedule, buffered=buffered):
        graph[waiting].append(awaited)
    ring = _cycle(graph)
    ahead = [*ring[1:], *ring[:1]]
    return [(rank, place) for (rank, place, _), (other, _, _) in zip(ring, ahead, strict=True) if other != rank]


def _across(schedule: Schedule, *, buffered: bool) -> Iterator[tuple[Node, Node]]:
    """What steps of one rank wait for on another."""
    if schedule.has_transfers:
        ends = Ends(schedule).by_channel
        for channel in dict.fromkeys(channel for channel, _ in ends):
            pairs = zip(ends.get((channel, True), ()), ends.get((channel, False), ()), strict=False)
            for (source, sent, _), (target, received, _) in pairs:
                yield (target, received, True), (source, sent, False)
                if not buffered:
                    yield (source, sent, True), (target, received, False)
        return
    at: dict[Action, tuple[int, int]] = {}
    for rank, place, action in schedule.actions():
        at.setdefault(action, (rank, place))
    split = split_of(schedule)
    for rank, place, action in schedule.actions():
        for one in needs(action, schedule.stages, split=split):
            if one in at:
                yield (rank, place, False), (*at[one], True)


def _cycle(graph: dict[Node, list[Node]]) -> list[Node]:
    """Nodes of which each leads to the next, and the last to the first."""
    state: dict[Node, int] = {}
    for start in graph:
        if start in state:
            continue
        path, iterators = [start], [iter(graph[start])]
        state[start] = 1
        while path:
            ahead = next(iterators[-1], None)
            if ahead is None:
                state[path.pop()] = 2
                iterators.pop()
            elif state.get(ahead) == 1:
                return path[path.index(ahead) :]
            elif ahead not in state:
                state[ahead] = 1
                path.append(ahead)
                iterators.append(iter(graph[ahead]))
    return []
