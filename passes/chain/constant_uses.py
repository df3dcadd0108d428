"""What uses the numbers that a module's constants hold, each number where all elements of a constant are that.

Numbers are followed into manual regions and out of these: the way back of a program that a person distributed is a
region of its own, which is handed the numbers that the way forward has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hlo_verify.passes.chain.constant_values import Key, literal
from hlo_verify.program.ir import Function, Name, Op, TensorType
from hlo_verify.program.op_families import KEEPS_SPLATS, REGION
from hlo_verify.program.sharding import Sharding


@dataclass(frozen=True, slots=True)
class Use:
    """An operand of the operation that gives a value, of which it is the first result; and the operand's type."""

    user: Name
    number: int
    type: TensorType


Seen = tuple[Any, ...]
"""What a use looks like: operation, operand, type, source line."""
Uses = Mapping[Key, Mapping[Use, Seen]]
"""Of every number that constants hold, what uses it."""

Numbers = Mapping[Name, tuple[Key, TensorType]]
"""The values of which all elements are one number."""


def uses_of(function: Function) -> Uses:
    """What uses each number of a function, in regions too."""
    uses: dict[Key, dict[Use, Seen]] = {}
    _note_uses(function, {}, uses)
    return uses


def _note_uses(
    function: Function, numbers: dict[Name, tuple[Key, TensorType]], uses: dict[Key, dict[Use, Seen]]
) -> None:
    for op in function.ops:
        found = literal(op)
        if found is not None:
            numbers[op.results[0]] = found.key, op.types[0]
        elif op.name in KEEPS_SPLATS and len(op.results) == 1 and op.operands[0] in numbers:
            numbers[op.results[0]] = numbers[op.operands[0]][0], op.types[0]
        elif op.name != REGION:
            for n, operand in enumerate(op.operands):
                if operand in numbers and op.results:
                    key, type_ = numbers[operand]
                    uses.setdefault(key, {})[Use(op.results[0], n, type_)] = (
                        op.name,
                        n,
                        op.types[:1],
                        str(op.location),
                    )
        if op.name == REGION:
            numbers.update(_handed_in(op, numbers))
        for region in op.regions:
            _note_uses(region, numbers, uses)
        if op.name == REGION:
            numbers.update(_handed_out(op, numbers))


def _handed_in(op: Op, numbers: Numbers) -> Iterator[tuple[Name, tuple[Key, TensorType]]]:
    """The arguments of a manual region that are shards of a number: the way back is handed those of the way forward."""
    (region,) = op.regions
    handed = zip(op.operands, region.arguments, region.argument_types, op.attributes["in_shardings"], strict=True)
    for outer, inner, type_, sharding in handed:
        if outer in numbers and _is_of_shards(numbers[outer][1], type_, sharding):
            yield inner, (numbers[outer][0], type_)


def _handed_out(op: Op, numbers: Numbers) -> Iterator[tuple[Name, tuple[Key, TensorType]]]:
    """The results of a manual region of which each shard is a number."""
    for inner, outer, type_, sharding in zip(
        op.regions[0].results, op.results, op.types, op.attributes["out_shardings"], strict=True
    ):
        if inner in numbers and _is_of_shards(type_, numbers[inner][1], sharding):
            yield outer, (numbers[inner][0], type_)


def _is_of_shards(whole: TensorType, shard: TensorType, sharding: Sharding | None) -> bool:
    """Whether a tensor is made of such shards, with nothing beyond its ends, and not of addends."""
    if sharding is None or sharding.addend_count > 1:
        return False
    return whole.shape == tuple(n * count for n, count in zip(shard.shape, sharding.tiles, strict=True))
