"""Donations: a result takes the buffer of one argument that there is, and that is as large.

Source: `input_output_alias` in XLA's hlo_input_output_alias_config.h; `output_to_operand_aliasing` of operations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hlo_verify.diagnostics import Schedule
from hlo_verify.hlo.module import HloModule, Instruction
from hlo_verify.hlo.shapes import Array, Path, Shape, at, integers, same, spelled
from hlo_verify.linter import finding
from hlo_verify.linter.finding import Finding

_ALIAS = re.compile(r"\{([\d,\s]*)\}:\s*\(\s*(\d+),\s*\{([\d,\s]*)\}(?:,\s*(may-alias|must-alias))?\s*\)")


@dataclass(frozen=True, slots=True)
class Alias:
    """A result, the parameter whose buffer it may take, and which part of that."""

    output: Path
    parameter: int
    path: Path

    @property
    def said(self) -> str:
        return f"output {spelled(self.output)}"


def aliases(text: str) -> list[Alias]:
    """What `input_output_alias` or `output_to_operand_aliasing` says."""
    return [Alias(integers(output), int(number), integers(path)) for output, number, path, _ in _ALIAS.findall(text)]


def check(module: HloModule) -> Iterator[Finding]:
    """What is wrong with what a module says of buffers that results take."""
    yield from _entry(module)
    for instruction in module.instructions():
        if "output_to_operand_aliasing" in instruction.rest:
            yield from _operation(instruction)
        elif instruction.opcode == "custom-call" and _target(instruction) == "Pin":
            yield finding.at(instruction, Schedule.ALIAS_ILLEGAL, "a Pin has to take the buffer of its operand")


def _entry(module: HloModule) -> Iterator[Finding]:
    root, parameters = module.entry.root, module.entry.parameters
    if root is None:
        return
    taken: dict[tuple[int, Path], Alias] = {}
    for alias in aliases(module.header.get("input_output_alias", "")):
        parameter = parameters.get(alias.parameter)
        given = None if parameter is None else at(parameter.shape, alias.path)
        result = at(root.shape, alias.output)
        what = f"parameter {alias.parameter}"
        if given is None or result is None:
            missing = f"{what}, of {len(parameters)}" if given is None else f"{alias.said}, which there is not"
            yield _of_output(alias, Schedule.ALIAS_NO_SUCH_PARAMETER, f"it takes the buffer of {missing}")
            continue
        if (other := taken.setdefault((alias.parameter, alias.path), alias)) is not alias:
            said = f"{other.said} and {alias.said} both take the buffer of {what}"
            yield _of_output(alias, Schedule.ALIAS_TWO_OUTPUTS, said, other)
        if _bytes(result) != _bytes(given):
            said = f"{result} takes the buffer of {what}, which is {given}"
            yield _of_output(alias, Schedule.ALIAS_SIZE_MISMATCH, said)


def _of_output(alias: Alias, code: Schedule, message: str, *others: Alias) -> Finding:
    return Finding(code, message, alias.said, related=tuple(other.said for other in others))


def _bytes(shape: Shape) -> int:
    return shape.bytes if isinstance(shape, Array) else 0


def _target(instruction: Instruction) -> str:
    return instruction.attributes.get("custom_call_target", "").strip('"')


def _operation(instruction: Instruction) -> Iterator[Finding]:
    """An operation whose results take the buffers of its operands."""
    if instruction.opcode in ("call", "async-done"):
        said = f"a {instruction.opcode} may not say which buffers its results take"
        yield finding.at(instruction, Schedule.ALIAS_ILLEGAL, said)
        return
    is_start = instruction.opcode.endswith("-start")
    for alias in aliases(instruction.attributes.get("output_to_operand_aliasing", "")):
        output = alias.output
        if is_start and not output:
            yield finding.at(instruction, Schedule.ALIAS_ILLEGAL, "the start as a whole takes no operand's buffer")
            continue
        result = at(instruction.shape, output)
        shapes = instruction.given_shapes or _called_with(instruction)
        operand = at(shapes[alias.parameter], alias.path) if alias.parameter < len(shapes) else None
        if result is None or operand is None:
            which = alias.said if result is None else f"operand {alias.parameter}"
            yield finding.at(instruction, Schedule.ALIAS_ILLEGAL, f"there is no {which}")
        elif is_start and not _is_alike(result, operand):  # others may take a buffer with padding behind, or as bits
            said = f"{alias.said} is {result}, and operand {alias.parameter} is {operand}"
            yield finding.at(instruction, Schedule.ALIAS_ILLEGAL, said)


def _called_with(instruction: Instruction) -> tuple[Shape, ...]:
    """The shapes that its computation takes: of a start that has no operands of its own."""
    return tuple(p.shape for called in instruction.applied for _, p in sorted(called.parameters.items()))


def _is_alike(result: Shape, operand: Shape) -> bool:
    """Of the same shape, and laid out alike where both say how."""
    if not same(result, operand):
        return False
    if isinstance(result, Array) and isinstance(operand, Array):
        return None in (result.order, operand.order) or (result.order, result.tiles) == (operand.order, operand.tiles)
    return True
