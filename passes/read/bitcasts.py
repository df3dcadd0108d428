"""`bitcast` written out: HLO's operation that takes a tensor's elements, in the order of memory, for those of another.

XLA's `layout-assignment` gives every tensor an order of dimensions in memory, minor to major, and later passes make
transposes and reshapes that move nothing into bitcasts. The conversion to StableHLO forgets layouts, but those of a
bitcast's operand and result it leaves as attributes, as permutations. They are all that counts, unless some layout has
tiles, packed elements or another part that the conversion drops: then bitcasts stay as they are, and mean nothing.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from hlo_verify.jaxlib_api import ir
from hlo_verify.passes.read.expand import operations

BITCAST = b"\x12\x07bitcast"
"""The opcode in a serialized instruction."""

_MORE_THAN_AN_ORDER = re.compile(r"\{[\d,]*:(?!S\(\d+\)\})")
"""A layout in HLO text with more to it than an order of dimensions and a memory space."""


def is_plain(text: str) -> bool:
    """Whether every layout in HLO text is an order of dimensions in some memory space."""
    return _MORE_THAN_AN_ORDER.search(text) is None


def write_out(module: Any) -> None:
    """Put transposes and reshapes in the place of the bitcasts of an MLIR module whose layouts are plain."""
    for operation in list(operations(module.operation)):
        if operation.name == "mhlo.bitcast":
            _write_out(operation)


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
