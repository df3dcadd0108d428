"""What a scheduled module does over time, as a picture shows it: instructions, transfers in flight, and bytes.

A loop's body is there once, as the linter's clock has it. Bytes are those of a buffer assignment: of values that share
bytes each byte counts once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo.buffers import Allocation, Lifetime, parse_assignment, parse_values
from hlo_verify.hlo.groups import COLLECTIVES
from hlo_verify.hlo.module import ENTERED, HloModule, Instruction
from hlo_verify.linter.buffers import Value, timed
from hlo_verify.linter.clock import Clock
from hlo_verify.linter.finding import Finding
from hlo_verify.linter.lifetimes import lifetimes as found_out
from hlo_verify.linter.placement.opcodes import moves
from hlo_verify.linter.reading import read, text_of
from hlo_verify.linter.transfers import is_done, is_start, is_update
from hlo_verify.render.pictures.timeline import Kept, Span, Timeline, timeline_picture

MOST_SAMPLES = 1000
"""Ticks at which bytes are counted, of schedules in which more change them: the beginnings of values, evenly chosen."""

_CONTROL = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "after-all", "partition-id", "replica-id"))


def timeline(
    module: HloModule,
    allocations: Sequence[Allocation] = (),
    lifetimes: Mapping[int, Lifetime] | None = None,
    findings: Iterable[Finding] = (),
) -> Timeline:
    """The timeline of a module, with what findings are about marked. Raises `InputError` for a module without a
    schedule: its text is in no order of time."""
    if not module.is_scheduled:
        raise InputError("the module is not scheduled, so there is no timeline of it", Input.USAGE)
    clock = Clock(module)
    blamed = {name for finding in findings for name in (finding.instruction, *finding.related)}
    values = _values(allocations, lifetimes, clock)
    buffers, allocation = _at_fault(values, blamed)
    return Timeline(
        f"{module.name}: what runs, what is in flight" + (", what is kept" if values else ""),
        clock.last - 1,
        tuple(_instructions(clock, blamed)),
        tuple(_transfers(clock, blamed)),
        _memory(values, clock.last - 1),
        allocation,
        buffers,
    )


def picture(
    module: str | Path,
    buffers: str | Path | None,
    values: str | Path | None,
    found: Iterable[Finding],
    *,
    style: bool = True,
) -> str:
    """The timeline of a module as SVG, from what XLA dumps: the module and, where these are at hand, its buffer
    assignment and the list of its values. Raises `InputError` for what cannot be read, or has no schedule."""
    allocations = () if buffers is None else parse_assignment(text_of(buffers))
    lifetimes = None if buffers is None or values is None else parse_values(text_of(values))
    return timeline_picture(timeline(read(module).module, allocations, lifetimes, found), style=style)


def _instructions(clock: Clock, blamed: set[str]) -> Iterable[Span]:
    """What the device does at each tick: what starts something, and what enters something, takes a tick itself."""
    for name, instruction in clock.instructions.items():
        within = clock.started_by.get(name)
        if within is None or is_start(instruction) or is_done(instruction) or is_update(instruction):
            begin = clock.begins[name]
            yield Span(name, begin, begin, _kind(instruction), name in blamed)


def _kind(instruction: Instruction) -> str:
    if is_start(instruction) or is_done(instruction) or is_update(instruction):
        return "start or done"
    if instruction.opcode in COLLECTIVES:
        return "communication"
    if instruction.opcode in _CONTROL or instruction.opcode in ENTERED:
        return "control"
    return "move" if moves(instruction.opcode) else "compute"


def _transfers(clock: Clock, blamed: set[str]) -> Iterable[Span]:
    for name, instruction in clock.instructions.items():
        if is_start(instruction):
            parts = {other for other, start in clock.started_by.items() if start is instruction} if blamed else set()
            yield Span(name, clock.begins[name], clock.ends[name], _carried(instruction), bool(parts & blamed))


def _carried(start: Instruction) -> str:
    """What goes on between a start and its done."""
    if start.opcode in ("copy-start", "slice-start"):
        return "move"
    inner = {one.opcode for computation in start.applied for one in computation.instructions}
    is_communication = start.opcode in ("send", "recv", *COLLECTIVES) or bool(inner & COLLECTIVES)
    return "communication" if is_communication else "compute"


def _values(
    allocations: Sequence[Allocation], lifetimes: Mapping[int, Lifetime] | None, clock: Clock
) -> list[tuple[Allocation, list[Value]]]:
    """The values of each allocation, with their times."""
    if not allocations:
        return []
    lifetimes = found_out(clock.module, allocations) if lifetimes is None else lifetimes
    found = []
    for allocation in allocations:
        if allocation.is_shared:
            each = (timed(one, lifetimes.get(one.number), clock, one.number) for one in allocation.values)
            found.append((allocation, [value for value in each if value is not None]))
    return found


def _memory(values: Sequence[tuple[Allocation, Sequence[Value]]], ticks: int) -> tuple[tuple[int, int], ...]:
    """How many bytes are kept from each of some ticks on. The bytes of the module's parameters are its caller's, which
    keeps them throughout."""
    every = [value for _, those in values for value in those]
    if not every:
        return ()
    begins = sorted({max(value.begins, 1) for value in every})
    ends = sorted({min(value.last, ticks) + 1 for value in every})
    chosen = begins[:: -(-len(begins) // MOST_SAMPLES)] + ends[:: -(-len(ends) // MOST_SAMPLES)]
    at = sorted({1, *(tick for tick in chosen if tick <= ticks)})
    kept = dict.fromkeys(at, sum(one.size for one, _ in values if _is_given(one)))
    for those in (those for one, those in values if not _is_given(one)):
        for tick in at:
            live = [value for value in those if value.begins <= tick <= value.last]
            kept[tick] += _union((value.placed.offset, value.placed.end) for value in live)
    return tuple(kept.items())


def _is_given(allocation: Allocation) -> bool:
    return re.search(r"\bparameter \d", allocation.said) is not None


def _union(pieces: Iterable[tuple[int, int]]) -> int:
    """How many bytes some pieces have together."""
    total, reached = 0, 0
    for low, high in sorted(pieces):
        total += max(high - max(low, reached), 0)
        reached = max(reached, high)
    return total


def _at_fault(values: Sequence[tuple[Allocation, Sequence[Value]]], blamed: set[str]) -> tuple[tuple[Kept, ...], str]:
    """The allocation in which most values are of instructions that something is wrong with; of one alone it is not
    the bytes that are shared wrongly."""
    counted = [(len({value.placed.name for value in those} & blamed), one, those) for one, those in values]
    most = max((count for count, _, _ in counted), default=0)
    if most < 2:
        return (), ""
    allocation, those = next((one, those) for count, one, those in counted if count == most)
    kept = (
        Kept(
            str(value.placed),
            value.begins,
            max(value.last, value.begins),
            value.placed.offset,
            value.placed.end,
            value.placed.name in blamed,
        )
        for value in those
    )
    return tuple(kept), f"allocation {allocation.number}"
