"""Values that share bytes: none is written over while another one is still to be read there.

A value is written when the instruction that makes it runs (what is started writes until its done), and read by its
uses. Of two values in the same bytes the later one must not be written before the last use of the earlier one. A use
within a loop of what was made outside of it is one in every turn, so it lasts as long as the loop. What a loop carries
is a value at the beginning of a turn (a parameter), one at its end, and one behind the loop.

Source: HloLiveRange and the rules of BufferAssignment; what is taken for a conflict: docs/lint/buffers.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hlo_verify.diagnostics import Code, Schedule
from hlo_verify.hlo.buffers import Allocation, Lifetime, Placed
from hlo_verify.hlo.module import ENTERED, HloModule, Instruction
from hlo_verify.hlo.shapes import Array, Path, at
from hlo_verify.linter import finding, handed_on
from hlo_verify.linter.clock import Clock, Place
from hlo_verify.linter.donation import aliases
from hlo_verify.linter.finding import Finding
from hlo_verify.linter.lifetimes import lifetimes as found_out
from hlo_verify.linter.transfers import is_done, is_start


@dataclass(frozen=True, slots=True)
class Use:
    """Someone reads a value at a tick; `inside` is where."""

    at: int
    reader: Instruction
    inside: Place


@dataclass(frozen=True, slots=True)
class Value:
    """A value with its bytes, when it begins to be written, until when that lasts, and its uses."""

    placed: Placed
    maker: Instruction
    begins: int
    written: int
    uses: tuple[Use, ...]
    place: Place
    owner: int

    @property
    def last(self) -> int:
        return max((use.at for use in self.uses), default=self.begins)


def check(
    module: HloModule, allocations: Sequence[Allocation], lifetimes: Mapping[int, Lifetime] | None = None
) -> Iterator[Finding]:
    """What is wrong with a buffer assignment under a module's schedule. Without XLA's list of who reads what, that is
    found out from the module."""
    clock = Clock(module)
    lifetimes = found_out(module, allocations) if lifetimes is None else lifetimes
    owners = _owners(lifetimes, [placed for one in allocations for placed in one.values], clock)
    yield from handed_on.check(module, allocations, lifetimes)
    for allocation in allocations:
        yield from _sizes(allocation, clock)
        if allocation.is_shared:
            values = [
                timed(placed, lifetimes.get(placed.number), clock, owners.get(placed.number, placed.number))
                for placed in allocation.values
            ]
            yield from _conflicts([value for value in values if value is not None], allocation, clock)


def _sizes(allocation: Allocation, clock: Clock) -> Iterator[Finding]:
    for placed in allocation.values:
        maker = clock.instructions.get(placed.name)
        where = f"allocation {allocation.number}"
        if placed.end > allocation.size:
            said = f"{placed} has bytes {placed.offset} to {placed.end} of {where}, which has {allocation.size}"
            yield _of(placed, maker, Schedule.VALUE_OUTSIDE_ALLOCATION, said)
        shape = None if maker is None else at(maker.shape, placed.path)
        if not isinstance(shape, Array):
            continue
        if placed.size * shape.pieces < shape.bytes:
            said = f"{placed} has {placed.size} bytes in {where}, and {shape} takes {shape.bytes}"
            yield _of(placed, maker, Schedule.VALUE_SMALLER_THAN_SHAPE, said)
        if shape.order is not None and shape.space != placed.space:
            said = f"{placed} is in memory space {placed.space} in {where}, and its layout says {shape.space}"
            yield _of(placed, maker, Schedule.MEMORY_SPACE_MISMATCH, said)


def _of(placed: Placed, maker: Instruction | None, code: Code, message: str) -> Finding:
    if maker is None:
        return Finding(code, message, placed.name)
    return finding.at(maker, code, message)


def timed(placed: Placed, lifetime: Lifetime | None, clock: Clock, owner: int) -> Value | None:
    """A value with its times; None where the schedule does not have it."""
    maker = clock.instructions.get(placed.name)
    if maker is None or lifetime is None or not placed.size:
        return None
    place = clock.place(maker)
    begins, written = clock.begins[maker.name], clock.ends[maker.name]
    if maker.opcode in ENTERED:  # what comes out of a loop, a branch or a call
        begins = written
    elif maker.opcode == "parameter":
        begins = written = 0 if maker.computation.is_entry else clock.entered(maker)
    elif not is_start(maker) and maker.name not in clock.started_by:
        written = begins
    return Value(
        placed,
        maker,
        begins,
        written,
        tuple(_uses(lifetime, place, clock)),
        place,
        owner,
    )


def _owners(lifetimes: Mapping[int, Lifetime], values: Sequence[Placed], clock: Clock) -> dict[int, int]:
    """By number of a value, the one whose buffer it takes, as instructions say, and of that again."""
    held = {position: number for number, lifetime in lifetimes.items() for position in lifetime.positions}
    owners: dict[int, int] = {}
    for placed in sorted(values, key=lambda one: clock.begins.get(one.name, 0)):
        maker = clock.instructions.get(placed.name)
        for position in _taken(maker, placed.path) if maker is not None else ():
            if position in held:
                owners[placed.number] = owners.get(held[position], held[position])
    return owners


def _taken(maker: Instruction, path: Path) -> Iterator[tuple[str, Path]]:
    """Whose buffer a part of a result takes, as the instruction says."""
    for alias in aliases(maker.attributes.get("output_to_operand_aliasing", "")):
        if alias.output == path and alias.parameter < len(maker.operands):
            operand = maker.operands[alias.parameter]
            yield operand.name, (*operand.path, *alias.path)


def _uses(lifetime: Lifetime, made: Place, clock: Clock) -> Iterator[Use]:
    for name, _, _ in lifetime.uses:
        reader = clock.instructions.get(name)
        if reader is None:
            continue
        tick = clock.begins[name] if reader.opcode in ENTERED else clock.ends[name]
        yield Use(_in_loops(tick, clock.place(reader), made, clock), reader, clock.place(reader))
    for name, _ in lifetime.positions:
        holder = clock.instructions.get(name)
        if holder is not None and holder is holder.computation.root:
            tick = clock.last if holder.computation.is_entry else clock.ends[name]
            yield Use(_in_loops(tick, clock.place(holder), made, clock), holder, clock.place(holder))


def _in_loops(tick: int, place: Place, made: Place, clock: Clock) -> int:
    """When a use is over: one in a loop, of what was made outside of it, with the loop."""
    outer = next((name for name in place.loops if name not in made.loops), None)
    return tick if outer is None else max(tick, clock.ends[outer])


def _conflicts(values: list[Value], allocation: Allocation, clock: Clock) -> Iterator[Finding]:
    """Pairs of which the later is written while the earlier is to be read."""
    if len(values) < 2:
        return
    low = np.array([value.placed.offset for value in values])
    high = np.array([value.placed.end for value in values])
    begins = np.array([value.begins for value in values])
    last = np.array([value.last for value in values])
    said: set[tuple[int, int]] = set()
    for number, later in enumerate(values):
        meets = (
            (low < later.placed.end) & (high > later.placed.offset) & (begins <= later.begins) & (last > later.begins)
        )
        meets[number] = False
        for other in map(int, np.flatnonzero(meets)):
            if (number, other) not in said:  # of two that begin together, once
                found = list(_conflict(values[other], later, allocation, clock))
                said |= {(other, number)} if found else set()
                yield from found


def _conflict(earlier: Value, later: Value, allocation: Allocation, clock: Clock) -> Iterator[Finding]:
    if earlier.place.excludes(later.place) or _are_one_parameter(earlier, later):
        return
    are_one = earlier.maker is later.maker or clock.are_one(earlier.maker, later.maker)
    if earlier.owner == later.owner or (not are_one and clock.are_in_turn(earlier.maker, later.maker)):
        return
    uses = [
        use
        for use in earlier.uses
        if use.at > later.begins
        and not use.inside.excludes(later.place)
        and (are_one or not clock.are_one(use.reader, later.maker))
    ]
    if not uses:
        return
    use = min(uses, key=lambda one: one.at)
    code = _code(earlier, later, clock)
    said = (
        f"{later.placed} is written into bytes {max(earlier.placed.offset, later.placed.offset)} to "
        f"{min(earlier.placed.end, later.placed.end)} of allocation {allocation.number} while {earlier.placed} is "
        f"still read there, by {use.reader}"
    )
    yield finding.at(later.maker, code, said, earlier.maker, use.reader)


def _are_one_parameter(a: Value, b: Value) -> bool:
    """Whether two values are what a loop carries, as its condition and as its body take it."""
    makers = (a.maker, b.maker)
    if any(maker.opcode != "parameter" or maker.computation.is_entry for maker in makers):
        return False
    return a.begins == b.begins and a.maker.computation is not b.maker.computation and a.placed.path == b.placed.path


def _code(earlier: Value, later: Value, clock: Clock) -> Code:
    """Which kind of conflict it is, by who is still at work."""
    if earlier.maker.opcode == "parameter" and earlier.maker.computation.is_entry:
        return Schedule.DONATED_INPUT_READ_AFTER_WRITE
    if earlier.begins == later.begins:
        return Schedule.BUFFERS_OVERLAP
    if is_start(earlier.maker) and earlier.begins < later.begins < earlier.written:
        return Schedule.RACE_ASYNC_RESULT
    if _in_flight(earlier, later.begins, clock):
        return Schedule.RACE_ASYNC_OPERAND
    if is_start(later.maker):
        return Schedule.RACE_ASYNC_RESULT_EARLY
    return Schedule.OVERWRITTEN_WHILE_LIVE


def _in_flight(earlier: Value, tick: int, clock: Clock) -> bool:
    """Whether something that was started before a tick, and is waited for behind it, reads a value."""
    readers = {use.reader.name: use.reader for use in earlier.uses}.values()
    return any(is_start(r) and clock.begins[r.name] < tick <= clock.ends[r.name] for r in readers) or any(
        is_done(r) and clock.begins[r.name] >= tick and _started_before(r, tick, clock) for r in readers
    )


def _started_before(done: Instruction, tick: int, clock: Clock) -> bool:
    return any(is_start(source) and clock.begins.get(source.name, tick) < tick for source in done.sources)
