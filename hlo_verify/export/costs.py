"""What an operation costs on a device, counted by its shapes: floating-point operations, bytes, bytes for others.

An estimate for looking at, not for deciding: a fused operation reads and writes less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlo_verify.export.graph import Node
from hlo_verify.program.element_types import DTYPES
from hlo_verify.program.ir import Op, TensorType
from hlo_verify.program.op_families import COLLECTIVES, CONTROL, REDUCTIONS, RESHAPES, RUNS_REGIONS
from hlo_verify.program.operations import ROWS

MOVES = RESHAPES | {
    name for name, row in ROWS.items() if row.notation in ("movement", "constants", "conversion") or name == "gather"
}
"""Operations that compute no numbers."""


@dataclass(frozen=True, slots=True)
class Cost:
    """`flops` are multiplications and additions, `touched` the bytes that are read and written, `sent` the bytes that a
    device gives to a collective."""

    flops: int
    touched: int
    sent: int


def cost_of(node: Node) -> Cost | None:
    """What an operation costs; None for what is none, and for those that only run others."""
    if node.op is None or node.op.name in RUNS_REGIONS | CONTROL:
        return None
    given, gives = sum(map(size, node.operand_types)), sum(map(size, node.outputs))
    touched = gives if node.op.name in ("constant", "iota") else given + gives
    return Cost(_flops(node.op, node.operand_types), touched, given if node.op.name in COLLECTIVES else 0)


def size(type_: TensorType) -> int:
    """How many bytes a tensor has; none where its elements have no size, as tokens."""
    found = DTYPES.get(type_.dtype)
    return 0 if found is None else math.prod(type_.shape) * int(np.dtype(found).itemsize)


def _flops(op: Op, operands: Sequence[TensorType]) -> int:
    elements = sum(math.prod(type_.shape) for type_ in op.types)
    if op.name == "dot_general":
        contracted: Sequence[int] = op.attributes["dot_dimension_numbers"]["lhs_contracting_dimensions"]
        return 2 * elements * math.prod(operands[0].shape[k] for k in contracted)
    if op.name == "convolution":
        kernel = operands[1].shape
        features: int = op.attributes["dimension_numbers"]["kernel_output_feature_dimension"]
        return 2 * elements * (math.prod(kernel) // max(kernel[features], 1))
    if op.name in MOVES:
        return 0
    if op.name in REDUCTIONS or op.name in COLLECTIVES:
        return sum(math.prod(type_.shape) for type_ in operands) if op.name in REDUCTIONS else 0
    return elements
