"""How the operands and results of custom calls lie in memory, said by the calls that do not say it.

A kernel sees memory, not indices: after XLA's `layout-assignment` one kernel on a matrix and on the same matrix in
column-major order computes two things. jaxlib's conversion to StableHLO forgets the layouts of tensors but for those
that a custom call demands. So where the layout of an operand or result is not row-major, the call is made to demand
those that its operands have, and those of its results count too. Demands cannot have tiles, nor other parts of layouts:
these become a frontend attribute of the call, `TILES`, which counts as layouts do.
"""

from __future__ import annotations

from hlo_verify.passes.read import proto_edits
from hlo_verify.passes.read.proto_edits import (
    CONSTRAIN_LAYOUT,
    FRONTEND_ATTRIBUTES,
    LAYOUT,
    MEMORY_SPACE,
    MINOR_TO_MAJOR,
    OPCODE,
    OPERAND_SHAPES_WITH_LAYOUT,
    OPERANDS,
    SHAPE,
    TAIL_PADDING,
    TUPLE_SHAPES,
)
from hlo_verify.program.ir import TILES

_SIMPLE = {MINOR_TO_MAJOR, MEMORY_SPACE, TAIL_PADDING}
_CALL = b"custom-call"


def demand_layouts(module: bytes) -> bytes:
    """The serialized HloModuleProto whose custom calls demand the layouts that they have."""
    return proto_edits.edit_computations(module, _demand_layouts) if _CALL in module else module


def _demand_layouts(computation: bytes) -> bytes:
    if _CALL not in computation:
        return computation
    shapes = proto_edits.shapes_of(computation)

    def demand(instruction: bytes) -> bytes:
        if _CALL not in instruction or proto_edits.payloads(instruction, OPCODE) != [_CALL]:
            return instruction
        numbers = proto_edits.numbers_of(instruction)
        operands = [shapes[n] for n in proto_edits.integers(instruction, OPERANDS)]
        results = proto_edits.payloads(instruction, SHAPE)
        if any(_more_than_an_order(shape) for shape in (*operands, *results)):
            said = b"".join(proto_edits.field_bytes(1, shape) for shape in (*operands, *results)).hex().encode()
            entry = proto_edits.field_bytes(1, TILES.encode()) + proto_edits.field_bytes(2, said)
            instruction += proto_edits.field_bytes(FRONTEND_ATTRIBUTES, proto_edits.field_bytes(1, entry))
        if numbers.get(CONSTRAIN_LAYOUT) == [1] or all(map(_is_row_major, (*operands, *results))):
            return instruction
        operands = [_plain(shape) for shape in operands]
        demands = proto_edits.varint(CONSTRAIN_LAYOUT << 3) + proto_edits.varint(1)
        return b"".join(
            (instruction, demands, *(proto_edits.field_bytes(OPERAND_SHAPES_WITH_LAYOUT, shape) for shape in operands))
        )

    return proto_edits.edit_computation(computation, demand)


def _more_than_an_order(shape: bytes) -> bool:
    """Whether a layout has more to it than an order of dimensions and a memory space."""
    parts = {number for layout in proto_edits.payloads(shape, LAYOUT) for number, *_ in proto_edits.fields_of(layout)}
    return bool(parts - _SIMPLE) or any(map(_more_than_an_order, proto_edits.payloads(shape, TUPLE_SHAPES)))


def _plain(shape: bytes) -> bytes:
    """A tensor's shape with a layout that is an order of dimensions alone."""

    def order(layout: bytes) -> bytes:
        return b"".join(raw for number, _, _, raw in proto_edits.fields_of(layout) if number == MINOR_TO_MAJOR)

    return proto_edits.rewrite(shape, LAYOUT, order)


def _is_row_major(shape: bytes) -> bool:
    """Whether a shape has no layout, or the last dimension first in it, and so on; of a tuple, each of its parts."""
    orders = [proto_edits.integers(layout, MINOR_TO_MAJOR) for layout in proto_edits.payloads(shape, LAYOUT)]
    return all(order == sorted(order, reverse=True) for order in orders) and all(
        map(_is_row_major, proto_edits.payloads(shape, TUPLE_SHAPES))
    )
