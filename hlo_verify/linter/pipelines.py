"""A pipeline's schedule as a module that is linted: its faults as findings."""

from __future__ import annotations

from hlo_verify.linter.finding import Finding
from hlo_verify.schedules.checks import Fault, check
from hlo_verify.schedules.schedule import Schedule
from hlo_verify.schedules.timeline import run


def findings(schedule: Schedule, *, buffered: bool) -> tuple[Finding, ...]:
    """What is wrong with a schedule."""
    return tuple(map(_finding, check(schedule, buffered=buffered)))


def _finding(fault: Fault) -> Finding:
    if fault.rank < 0:
        return Finding(fault.code, fault.message, "schedule")
    return Finding(fault.code, f"{fault.message} (rank {fault.rank}, step {fault.place + 1})", fault.action)


def looked_at(schedule: Schedule) -> dict[str, int]:
    """What a schedule has, and the most microbatches, of one stage each, that a rank keeps for their backward."""
    timeline = run(schedule)
    kept = {} if timeline is None else {"microbatches kept at most on a rank": max(timeline.stored, default=0)}
    count = sum(1 for _ in schedule.actions())
    numbers = {"stages": schedule.stages, "microbatches": schedule.microbatches, "actions": count}
    return {"ranks": len(schedule.ranks), **numbers, **kept}
