"""XLA's own live ranges against the module: the schedule that they are of, and whether each lasts as long as somebody
reads the value.

A range ends early where another value goes on in its bytes (in place, or handed on): that is no contradiction. All that
is found here is a warning: bytes that are written too early are found by what is written there (`buffers`).

Source: HloLiveRange in XLA's hlo_live_range.h (NormalizeAliasedBuffers shortens ranges of values that share a buffer).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hlo_verify.diagnostics import Schedule, Severity
from hlo_verify.hlo.buffers import Allocation, Lifetime, Placed
from hlo_verify.hlo.live import LiveRanges
from hlo_verify.hlo.module import ENTERED, HloModule, Instruction
from hlo_verify.linter.finding import Finding, at
from hlo_verify.linter.lifetimes import AS_IT_IS
from hlo_verify.linter.lifetimes import lifetimes as found_out
from hlo_verify.linter.transfers import is_start

READ_NOTHING = AS_IT_IS | frozenset(ENTERED) | {"tuple"}
"""Operations that hand values on, to readers that count for themselves."""


def check(
    module: HloModule,
    live: LiveRanges,
    allocations: Sequence[Allocation],
    lifetimes: Mapping[int, Lifetime] | None = None,
) -> tuple[list[Finding], dict[str, int]]:
    """What contradicts XLA's live ranges, and how many were looked at."""
    order = list(_order(module, live))
    if order:  # ranges of another schedule say nothing of this one
        return order, {"live ranges": 0}
    found = list(_short(module, live, allocations, lifetimes)) if allocations else []
    return found, {"live ranges": len(live.ranges) if allocations else 0}


def _order(module: HloModule, live: LiveRanges) -> Iterator[Finding]:
    """Instructions that the live ranges have in another order than the module, the first of each computation."""
    step = {name: number for number, name in enumerate(live.steps)}
    for computation in module.computations.values():
        last: Instruction | None = None
        for instruction in computation.instructions:
            if instruction.name not in step:
                continue
            if last is not None and step[instruction.name] < step[last.name]:
                said = f"XLA's live ranges have it before {last}, behind which it stands"
                yield _warning(instruction, said, last)
                break
            last = instruction


def _short(
    module: HloModule,
    live: LiveRanges,
    allocations: Sequence[Allocation],
    given: Mapping[int, Lifetime] | None,
) -> Iterator[Finding]:
    """Values that are read behind the end of their range."""
    step = {name: number for number, name in enumerate(live.steps)}
    instructions = {instruction.name: instruction for instruction in module.instructions()}
    lifetimes = found_out(module, allocations) if given is None else given
    for allocation in allocations:
        for placed in allocation.values:
            maker = instructions.get(placed.name)
            kept = live.ranges.get((placed.name, placed.path))
            if maker is None or kept is None or placed.number not in lifetimes or (given is None and is_start(maker)):
                continue
            readers = (instructions.get(name) for name, _, _ in lifetimes[placed.number].uses)
            real = [one for one in readers if one is not None and one.opcode not in READ_NOTHING and one.name in step]
            last = max(real, key=lambda one: step[one.name], default=None)
            if last is not None and step[last.name] > kept[1] and not _goes_on(placed, kept[1], allocation, live):
                said = f"XLA keeps {placed} until {live.steps[min(kept[1], len(live.steps) - 1)]}, and {last} reads it"
                yield _warning(maker, said, last)


def _goes_on(placed: Placed, end: int, allocation: Allocation, live: LiveRanges) -> bool:
    """Whether another value begins in the bytes of one where its range ends."""
    return any(
        other is not placed
        and other.offset < placed.end
        and other.end > placed.offset
        and live.ranges.get((other.name, other.path), (-1,))[0] == end
        for other in allocation.values
    )


def _warning(instruction: Instruction, said: str, *related: Instruction) -> Finding:
    found = at(instruction, Schedule.LIVE_RANGE_MISMATCH, said, *related)
    return replace(found, severity=Severity.WARNING)
