"""Values that are handed into a computation or out of it lie in the same bytes on both sides: nobody copies them.

What a loop carries is one buffer from its operand through condition and body to its result; a branch or a call works
on the buffers of its operands, and its root is the result.

Source: HloAliasAnalysis in XLA's hlo_alias_analysis.h (values that have to share a buffer).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hlo_verify.diagnostics import Schedule
from hlo_verify.hlo.buffers import Allocation, Lifetime, Placed
from hlo_verify.hlo.module import HloModule, Instruction, Operand
from hlo_verify.hlo.shapes import Path
from hlo_verify.linter.finding import Finding, at

Position = tuple[str, Path]


def check(module: HloModule, allocations: Sequence[Allocation], lifetimes: Mapping[int, Lifetime]) -> Iterator[Finding]:
    """Values that are handed on to where other bytes are expected."""
    placed = {value.number: (one, value) for one in allocations if one.is_shared for value in one.values}
    held = {where: number for number in placed if number in lifetimes for where in lifetimes[number].positions}
    paths: dict[str, list[Path]] = {}
    for name, path in held:
        paths.setdefault(name, []).append(path)
    for instruction in module.in_turn():
        for source, target in _handed_on(instruction):
            for path in paths.get(target.name, ()):
                given = held.get((source.name, (*source.path, *path)))
                if given is not None:
                    yield from _compare(instruction, target, placed[given], placed[held[target.name, path]])


def _handed_on(instruction: Instruction) -> Iterator[tuple[Operand, Instruction]]:
    """What an operation hands to the computations that it enters, and they to it."""
    for number, computation in enumerate(instruction.entered):
        for index, parameter in computation.parameters.items():
            place = {"while": 0, "conditional": number + 1}.get(instruction.opcode, index)
            if place < len(instruction.operands):
                yield instruction.operands[place], parameter
        if computation.root is None or (instruction.opcode == "while" and number == 0):
            continue
        yield Operand(computation.root.name), instruction
        if instruction.opcode == "while":  # the next turn begins with what the last one left
            for again in instruction.entered:
                yield from ((Operand(computation.root.name), parameter) for parameter in again.parameters.values())


def _compare(
    through: Instruction, target: Instruction, given: tuple[Allocation, Placed], taken: tuple[Allocation, Placed]
) -> Iterator[Finding]:
    if given[1].size and taken[1].size and _bytes(*given) != _bytes(*taken):
        said = f"{taken[1]} lies in {_said(*taken)}, and {given[1]}, which {through} hands on to it, in {_said(*given)}"
        yield at(target, Schedule.HANDED_ON_ELSEWHERE, said, given[1].name, through)


def _bytes(allocation: Allocation, value: Placed) -> tuple[int, int, int]:
    return allocation.number, value.offset, value.end


def _said(allocation: Allocation, value: Placed) -> str:
    return f"bytes {value.offset} to {value.end} of allocation {allocation.number}"
