"""`bitcast` written out: HLO's operation that takes a tensor's elements, in the order of memory, for those of another.

XLA's `layout-assignment` gives every tensor an order of dimensions in memory, minor to major, and later passes make
transposes and reshapes that move nothing into bitcasts. The conversion to StableHLO forgets layouts, but those of a
bitcast's operand and result it leaves as attributes, as permutations. They are all that counts, unless some layout has
tiles, packed elements or another part that the conversion drops. So before it, those bitcasts are marked whose operand
and result have the same tiles of the same dimensions in memory, but for dimensions of size one: an element is where it
would be without tiles. Others in such a module stay as they are, and mean nothing.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np

from hlo_verify.jaxlib_api import ir
from hlo_verify.passes.read import proto_edits
from hlo_verify.passes.read.expand import operations
from hlo_verify.passes.read.proto_edits import (
    DIMENSIONS,
    ELEMENT_TYPE,
    FRONTEND_ATTRIBUTES,
    IS_DYNAMIC,
    LAYOUT,
    LAYOUT_TILES,
    MEMORY_SPACE,
    MINOR_TO_MAJOR,
    OPCODE,
    OPERANDS,
    TILE_DIMENSIONS,
)

BITCAST = b"\x12\x07bitcast"
"""The opcode in a serialized instruction."""

_ALIKE = "hlo_verify.lies_alike"
_MARK = proto_edits.field_bytes(1, _ALIKE.encode()) + proto_edits.field_bytes(2, b"true")

_MORE_THAN_AN_ORDER = re.compile(r"\{[\d,]*:(?!S\(\d+\)\})")
"""A layout in HLO text with more to it than an order of dimensions and a memory space."""


def mark(module: bytes) -> bytes:
    """The serialized HloModuleProto whose bitcasts say where operand and result lie alike."""
    return proto_edits.edit_computations(module, _mark) if BITCAST in module else module


def _mark(computation: bytes) -> bytes:
    if BITCAST not in computation:
        return computation
    shapes = proto_edits.shapes_of(computation)

    def edit(instruction: bytes) -> bytes:
        if proto_edits.payloads(instruction, OPCODE) != [b"bitcast"]:
            return instruction
        (operand,) = proto_edits.integers(instruction, OPERANDS)
        own = _lying(shapes[proto_edits.id_of(instruction)])
        fields = proto_edits.fields_of(instruction)
        said = b"".join(raw for number, _, _, raw in fields if number != FRONTEND_ATTRIBUTES)
        marks = proto_edits.field_bytes(FRONTEND_ATTRIBUTES, proto_edits.field_bytes(1, _MARK))
        return said if own is None or own != _lying(shapes[operand]) else said + marks

    return proto_edits.edit_computation(computation, edit)


class _Lying(NamedTuple):
    """How a tensor's elements lie in memory, whatever its dimensions of size one; in whichever memory."""

    element_type: int
    sizes: tuple[int, ...]
    """Of the dimensions in memory, major to minor."""
    tiles: tuple[tuple[int, ...], ...]
    other: frozenset[bytes]
    """What else the layout says."""


def _lying(shape: bytes) -> _Lying | None:
    """How a tensor lies in memory; None for a tuple, one of a size that is not known, or one whose layout is not said.

    A tile is of the last dimensions, and a leading 1 in it says nothing. Where a dimension of size one is in a tile of
    more, or under several tiles, it is kept.
    """
    layouts, sizes = proto_edits.payloads(shape, LAYOUT), proto_edits.integers(shape, DIMENSIONS)
    dynamic = b"".join(proto_edits.payloads(shape, IS_DYNAMIC)).strip(b"\0")
    if len(layouts) != 1 or dynamic:
        return None
    (layout,) = layouts
    order = proto_edits.integers(layout, MINOR_TO_MAJOR)[::-1]
    if sorted(order) != list(range(len(sizes))):
        return None
    (element_type,) = proto_edits.numbers_of(shape)[ELEMENT_TYPE]
    said = (MINOR_TO_MAJOR, LAYOUT_TILES, MEMORY_SPACE)
    other = frozenset(raw for number, _, _, raw in proto_edits.fields_of(layout) if number not in said)
    if math.prod(sizes) == 1:
        return _Lying(element_type, (), (), other)
    tiles = [proto_edits.integers(tile, TILE_DIMENSIONS) for tile in proto_edits.payloads(layout, LAYOUT_TILES)]
    covered = order[max(0, len(order) - len(tiles[0])) :] if tiles else []
    thin = set[int]()
    if len(tiles) == 1 and len(tiles[0]) == len(covered):
        thin = {k for k, n in zip(covered, tiles[0], strict=True) if sizes[k] == n == 1}
        tile = [n for k, n in zip(covered, tiles[0], strict=True) if k not in thin]
        tiles = [tile[next((k for k, n in enumerate(tile) if n != 1), len(tile)) :]]
    kept = (sizes[k] for k in order if sizes[k] != 1 or (k in covered and k not in thin))
    return _Lying(element_type, tuple(kept), tuple(tuple(tile) for tile in tiles if tile), other)


def is_plain(text: str) -> bool:
    """Whether every layout in HLO text is an order of dimensions in some memory space."""
    return _MORE_THAN_AN_ORDER.search(text) is None


def write_out(module: Any, *, plain: bool) -> None:
    """Put transposes and reshapes in the place of the bitcasts of an MLIR module: of those that are marked, and of all
    where its layouts are plain."""
    for operation in list(operations(module.operation)):
        if operation.name == "mhlo.bitcast" and (plain or _is_marked(operation)):
            _write_out(operation)


def _is_marked(operation: Any) -> bool:
    attributes = operation.attributes
    return "mhlo.frontend_attributes" in attributes and _ALIKE in attributes["mhlo.frontend_attributes"]


def _write_out(operation: Any) -> None:
    (operand,), (result,) = operation.operands, operation.results
    source, target = (_order(operation, name) for name in ("source_layout", "result_layout"))
    given, wanted = operand.type, result.type
    if source is None or target is None or given.element_type != wanted.element_type:
        return
    if sorted(source) != list(range(given.rank)) or sorted(target) != list(range(wanted.rank)):
        return
    if math.prod(given.shape) != math.prod(wanted.shape):
        return
    with operation.context, operation.location, ir.InsertionPoint(operation):
        in_memory = _transpose(operand, source)
        shape = [wanted.shape[k] for k in target]
        value = _transpose(_reshape(in_memory, shape), [target.index(k) for k in range(wanted.rank)])
    result.replace_all_uses_with(value)
    operation.erase()


def _order(operation: Any, name: str) -> list[int] | None:
    """The dimensions of a layout, major to minor."""
    if name not in operation.attributes:
        return None
    attribute = operation.attributes[name]
    if not isinstance(attribute, ir.DenseElementsAttr):
        return None
    return [int(n) for n in np.array(attribute).reshape(-1)[::-1]]


def _transpose(value: Any, permutation: list[int]) -> Any:
    if permutation == sorted(permutation):
        return value
    type_ = ir.RankedTensorType.get([value.type.shape[k] for k in permutation], value.type.element_type)
    attribute = {"permutation": ir.DenseI64ArrayAttr.get(permutation)}
    return ir.Operation.create("stablehlo.transpose", [type_], [value], attribute).result


def _reshape(value: Any, shape: list[int]) -> Any:
    if list(value.type.shape) == shape:
        return value
    type_ = ir.RankedTensorType.get(shape, value.type.element_type)
    return ir.Operation.create("stablehlo.reshape", [type_], [value]).result
