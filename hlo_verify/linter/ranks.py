"""Ranks with programs of their own: the devices of a group come to the same collectives, in one order.

A communicator matches the operations of its devices in the order in which they come. TPUs match by channel as well, so
that another order may be harmless there; it is reported all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlo_verify.diagnostics import Code, Ranks
from hlo_verify.hlo.groups import COLLECTIVES, PERMUTES, Groups, groups_of, pairs_of
from hlo_verify.hlo.module import HloModule, Instruction
from hlo_verify.linter.course import what
from hlo_verify.linter.finding import Finding, at
from hlo_verify.linter.sends import Program


@dataclass(frozen=True, slots=True)
class Call:
    """A collective that devices come to, and what has to be the same on all of them."""

    instruction: Instruction
    what: str
    channel: int | None


def check(programs: Sequence[Program]) -> Iterator[Finding]:
    """What is wrong with the collectives of several programs together. Devices of one program agree."""
    schedules = [list(_collectives(program.module)) for program in programs]
    owner = {device: number for number, program in enumerate(programs) for device in program.devices}
    devices = sorted(owner)
    said: set[tuple[Code, str]] = set()
    groups = dict.fromkeys(
        group
        for number, program in enumerate(programs)
        for call in schedules[number]
        for group in _communicators(call.instruction, devices)
        if set(group) & set(program.devices)
    )
    for group in groups:
        numbers = list(dict.fromkeys(owner[device] for device in group if device in owner))
        joined = [(n, [c for c in schedules[n] if group in _communicators(c.instruction, devices)]) for n in numbers]
        first = joined[0][1]
        for number, sequence in joined[1:]:
            fault = _compare(first, sequence, programs[numbers[0]], programs[number])
            if fault is not None and (fault.code, fault.instruction) not in said:
                said.add((fault.code, fault.instruction))
                yield fault


def _collectives(module: HloModule) -> Iterator[Call]:
    """The collectives of a program in the order in which a device comes to them, a loop's once."""
    for one in module.in_turn():
        if one.opcode in COLLECTIVES:
            yield Call(one, what(one), one.channel)


def _communicators(instruction: Instruction, devices: Sequence[int]) -> Groups:
    """The groups that a collective joins, each in order; all devices where it names none."""
    if instruction.opcode in PERMUTES:
        return (tuple(sorted({device for pair in pairs_of(instruction) or () for device in pair})),)
    groups = groups_of(instruction)
    return tuple(tuple(sorted(group)) for group in groups or (tuple(devices),))


def _compare(ours: list[Call], theirs: list[Call], us: Program, them: Program) -> Finding | None:
    """The first difference between what two programs do on one communicator."""
    mine, other = Counter(c.what for c in ours), Counter(c.what for c in theirs)
    if mine != other:
        return _missing(ours, theirs, us, them) if mine - other else _missing(theirs, ours, them, us)
    by_channel = Counter(c.channel for c in ours) == Counter(c.channel for c in theirs)
    for a, b in zip(ours, theirs, strict=True):
        if a.what != b.what or (by_channel and a.channel != b.channel):
            message = f"{_run(us)} it where {_run(them)} {b.instruction}"
            return at(a.instruction, Ranks.COLLECTIVE_ORDER, message, b.instruction)
    return None


def _missing(more: list[Call], fewer: list[Call], those: Program, others: Program) -> Finding:
    """A collective that the one program has and the other lacks: by channel where channels are told apart."""
    left = Counter((call.what, call.channel) for call in fewer)
    for call in more:
        if not left[call.what, call.channel]:
            return at(
                call.instruction,
                Ranks.COLLECTIVE_MISSING_ON_RANK,
                f"{_run(those)} it, and {_devices(others)} {'do' if len(others.devices) > 1 else 'does'} not",
            )
        left[call.what, call.channel] -= 1
    last = more[-1]
    return at(last.instruction, Ranks.COLLECTIVE_MISSING_ON_RANK, f"{_devices(others)} has one {last.what} less")


def _run(program: Program) -> str:
    return f"{_devices(program)} {'run' if len(program.devices) > 1 else 'runs'}"


def _devices(program: Program) -> str:
    numbers = program.devices
    if len(numbers) == 1:
        return f"device {numbers[0]}"
    return f"devices {numbers[0]} to {numbers[-1]}" if len(numbers) > 2 else f"devices {numbers[0]} and {numbers[1]}"
