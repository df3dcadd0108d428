"""What is wrong with a schedule: work that is left out or done twice, order, weights, transfers that never meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hlo_verify.diagnostics import Code, Ranks
from hlo_verify.diagnostics.errors import DisagreementError
from hlo_verify.schedules.schedule import Action, Kind, Schedule
from hlo_verify.schedules.simulate import stuck
from hlo_verify.schedules.timeline import needs, run, split_of
from hlo_verify.schedules.transfers import homes
from hlo_verify.schedules.waits import Ends, cycle

BACKWARDS = (Kind.BACKWARD, Kind.BACKWARD_INPUT, Kind.BACKWARD_WEIGHT)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, on which rank, at which of its steps, and with which action."""

    code: Code
    message: str
    rank: int = -1
    place: int = -1
    action: str = ""


def check(schedule: Schedule, *, buffered: bool = False) -> list[Fault]:
    """All that is wrong with a schedule. Sends wait for their receives unless they are `buffered`."""
    ordered = list(_ordered(schedule))
    found = [*_complete(schedule), *ordered, *_versions(schedule), *_transfers(schedule)]
    if any(fault.code is Ranks.SCHEDULE_TRANSFER for fault in found) or (ordered and not schedule.has_transfers):
        return found  # what hangs then is a consequence
    return found + list(_deadlock(schedule, buffered=buffered))


def _complete(schedule: Schedule) -> Iterator[Fault]:
    """Each microbatch goes forward once on each stage, and backward once: in one piece, or for inputs and for weights.
    A schedule that goes forward alone, for inference, is complete."""
    count = Counter((a.stage, a.microbatch, a.kind) for _, _, a in schedule.actions() if not a.kind.is_transfer)
    places = {action: (rank, place) for rank, place, action in schedule.actions()}
    is_training = any(a.kind in BACKWARDS for _, _, a in schedule.actions())
    for microbatch in range(schedule.microbatches):
        for stage in range(schedule.stages):
            times = {kind: count[stage, microbatch, kind] for kind in (Kind.FORWARD, *BACKWARDS)}
            for kind, number in times.items():
                if number > 1:
                    action = Action(stage, kind, microbatch)
                    yield Fault(Ranks.SCHEDULE_REPEATED, f"is done {number} times", *places[action], str(action))
            whole, inputs, weights = (times[kind] for kind in BACKWARDS)
            if whole and (inputs or weights):
                action = Action(stage, Kind.BACKWARD, microbatch)
                yield Fault(Ranks.SCHEDULE_REPEATED, "is done in one piece and in parts", *places[action], str(action))
            missing = [] if times[Kind.FORWARD] else ["forward"]
            if is_training and not whole:
                missing += [f"backward{name}" for name in _missing(inputs, weights)]
            if missing:
                said = f"microbatch {microbatch} has no {' and no '.join(missing)} on stage {stage}"
                yield Fault(Ranks.SCHEDULE_INCOMPLETE, said)


def _missing(inputs: int, weights: int) -> list[str]:
    if not inputs and not weights:
        return [""]
    return [name for name, number in ((" for inputs", inputs), (" for weights", weights)) if not number]


def _ordered(schedule: Schedule) -> Iterator[Fault]:
    """On each rank, what an action needs has been computed or received before."""
    home, split = homes(schedule), split_of(schedule)
    for rank, steps in enumerate(schedule.ranks):
        had: set[Action] = set()
        for place, step in enumerate(steps):
            for action in step:
                if action.kind in BACKWARDS and home.get((action.stage, action.microbatch), rank) != rank:
                    other = home[action.stage, action.microbatch]
                    said = f"is here, and its forward, with all that it keeps, on rank {other}"
                    yield Fault(Ranks.SCHEDULE_APART, said, rank, place, str(action))
                    continue
                for one in _before(action, schedule, split):
                    here = home.get((one.stage, one.microbatch)) == rank
                    if one not in had and (here or schedule.has_transfers) and (one.stage, one.microbatch) in home:
                        said = (
                            f"stands before {one}, which it needs" if here else f"needs {one}, which was not received"
                        )
                        yield Fault(Ranks.SCHEDULE_ORDER, said, rank, place, str(action))
            had |= {_gives(action, split) for action in step}


def _before(action: Action, schedule: Schedule, split: frozenset[tuple[int, int]]) -> list[Action]:
    """What an action needs on its own rank."""
    if action.kind.is_send:
        is_split = (action.stage, action.microbatch) in split
        backward = Kind.BACKWARD_INPUT if is_split else Kind.BACKWARD
        return [Action(action.stage, Kind.FORWARD if action.kind.is_forward else backward, action.microbatch)]
    return [] if action.kind.is_transfer else needs(action, schedule.stages, split=split)


def _gives(action: Action, split: frozenset[tuple[int, int]]) -> Action:
    """What is there behind an action: a receive gives what the other stage computed."""
    if action.kind is Kind.RECV_FORWARD:
        return Action(action.stage - 1, Kind.FORWARD, action.microbatch)
    if action.kind is Kind.RECV_BACKWARD:
        is_split = (action.stage + 1, action.microbatch) in split
        return Action(action.stage + 1, Kind.BACKWARD_INPUT if is_split else Kind.BACKWARD, action.microbatch)
    return action


def _versions(schedule: Schedule) -> Iterator[Fault]:
    """A backward works with the weights that its forward had."""
    for rank, steps in enumerate(schedule.ranks):
        updates: Counter[int] = Counter()
        had: dict[tuple[int, int], int] = {}
        for place, action in ((place, action) for place, step in enumerate(steps) for action in step):
            key = action.stage, action.microbatch
            if action.kind is Kind.UPDATE:
                updates[action.stage] += 1
            elif action.kind is Kind.FORWARD:
                had[key] = updates[action.stage]
            elif action.kind in BACKWARDS and had.get(key, updates[action.stage]) != updates[action.stage]:
                times = updates[action.stage] - had[key]
                said = f"works with weights that were updated {times} time{'s' if times > 1 else ''} since its forward"
                yield Fault(Ranks.WEIGHTS_VERSION, said, rank, place, str(action))


def _transfers(schedule: Schedule) -> Iterator[Fault]:
    """Each send has a receive of the same, in the order of the two ranks."""
    ends = Ends(schedule)
    for rank, place, action in schedule.actions():
        if action.kind.is_transfer and ends.channel(rank, action) is None:
            said = "has no other end: nobody runs the forward there"
            yield Fault(Ranks.SCHEDULE_TRANSFER, said, rank, place, str(action))
    for channel in dict.fromkeys(channel for channel, _ in ends.by_channel):
        sends, receives = (ends.by_channel.get((channel, is_send), []) for is_send in (True, False))
        for (rank, place, send), (_, _, receive) in zip(sends, receives, strict=False):
            if send.message != receive.message:
                said = f"meets {receive} of rank {channel[1]}, which takes it for something else"
                yield Fault(Ranks.SCHEDULE_TRANSFER, said, rank, place, str(send))
                break
        else:
            for rank, place, one in sends[len(receives) :] + receives[len(sends) :]:
                said = f"has no other end on rank {channel[one.kind.is_send]}"
                yield Fault(Ranks.SCHEDULE_TRANSFER, said, rank, place, str(one))


def _deadlock(schedule: Schedule, *, buffered: bool) -> Iterator[Fault]:
    """Ranks that wait for each other: by the graph of waits, and by letting them go."""
    ring = cycle(schedule, buffered=buffered)
    is_stuck = bool(stuck(schedule, buffered=buffered)) if schedule.has_transfers else run(schedule) is None
    if bool(ring) is not is_stuck:
        raise DisagreementError("a schedule hangs by its waits and not when it is run, or the other way round")
    if not ring:
        return
    steps = [(rank, "+".join(map(str, schedule.ranks[rank][place]))) for rank, place in ring]
    said = "; ".join(f"rank {rank} waits in {step}" for rank, step in steps)
    yield Fault(Ranks.SCHEDULE_DEADLOCK, f"is one of a ring: {said}", *ring[0], steps[0][1])
