"""Run collectives on all devices: who waits for whom, and never goes on.

The devices of a communicator match their collectives in the order in which each posts them; a wait ends when all have
posted. A device does nothing else than go on when it can, so the order in which devices are looked at does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

Communicator = tuple[str, tuple[int, ...]]
"""What it is for (`group`, or `pair` of a permute), and its devices."""


@dataclass(frozen=True, slots=True)
class Event:
    """A device posts a collective on its communicators, or `waits` for the same that it has posted last."""

    collective: Hashable
    what: str
    on: tuple[Communicator, ...]
    waits: bool = False


def come_through(traces: Sequence[Sequence[Event]]) -> bool:
    """Whether all devices come to the end of their traces, each collective matched by others of its kind.

    >>> a, b = ("group", (0, 1)), ("group", (0, 1, 2))
    >>> posts = lambda on: [Event("r", "all-reduce", (on,)), Event("r", "all-reduce", (on,), waits=True)]
    >>> come_through([posts(a) + posts(b), posts(a) + posts(b), posts(b)])
    True
    >>> come_through([posts(a) + posts(b), posts(b) + posts(a), posts(b)])
    False
    """
    posted: dict[Communicator, dict[int, list[str]]] = {}
    arrived: Counter[tuple[Communicator, int]] = Counter()
    numbers: list[dict[tuple[Hashable, Communicator], int]] = [{} for _ in traces]
    reached = [0] * len(traces)

    def is_met(device: int, event: Event) -> bool:
        ordinals = ((on, numbers[device].get((event.collective, on), -1)) for on in event.on)
        return all(arrived[on, number] == len(on[1]) for on, number in ordinals if number >= 0)

    def post(device: int, event: Event) -> None:
        for on in event.on:
            mine = posted.setdefault(on, {}).setdefault(device, [])
            numbers[device][event.collective, on] = len(mine)
            arrived[on, len(mine)] += 1
            mine.append(event.what)

    moved = True
    while moved:
        moved = False
        for device, trace in enumerate(traces):
            while reached[device] < len(trace):
                event = trace[reached[device]]
                if event.waits and not is_met(device, event):
                    break
                if not event.waits:
                    post(device, event)
                reached[device] += 1
                moved = True
    if any(at < len(trace) for at, trace in zip(reached, traces, strict=True)):
        return False
    return all(len({tuple(by.get(device, ())) for device in on[1]}) == 1 for on, by in posted.items())
