"""Integers that hang on the device alone, computed for all devices at once: axis indices, offsets, predicates.

An array has the devices in front: `(devices, *sizes)`, or `(1, *sizes)` where all hold the same. A rule gives None
where it does not know the value: a division by zero, a shift beyond the type, a layout that is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify.hlo.module import Instruction
from hlo_verify.hlo.shapes import Array, integers

Table = npt.NDArray[Any]
Rule = Callable[[Instruction, Array, Sequence[Table]], "Table | None"]

DTYPES = {f"{sign}{bits}": np.dtype(f"{kind}{bits // 8}") for sign, kind in ("si", "uu") for bits in (8, 16, 32, 64)}
DTYPES["pred"] = np.dtype(bool)

_LITERAL = re.compile(r"-?\d+|true|false")
_COMMENT = re.compile(r"/\*.*?\*/")
_RANGE = re.compile(r"\[(\d+):(\d+)(?::(\d+))?\]")


def compute(instruction: Instruction, operands: Sequence[Table], elements: int) -> Table | None:
    """What an operation gives on each device; None where it is not an integer of at most `elements`, or not known."""
    rule = RULES.get(instruction.opcode)
    shape = instruction.shape
    if rule is None or not isinstance(shape, Array) or shape.dtype not in DTYPES or shape.count > elements:
        return None
    try:
        found = rule(instruction, shape, operands)
    except (ValueError, IndexError, TypeError, OverflowError):  # operands that do not fit: a broken module
        return None
    if found is None or found.shape[1:] != shape.sizes or found.size > elements:
        return None
    return found.astype(DTYPES[shape.dtype])


def _constant(instruction: Instruction, shape: Array, _: Sequence[Table]) -> Table | None:
    words = _LITERAL.findall(_COMMENT.sub("", instruction.given))
    if len(words) != shape.count:
        return None  # left out by the printer
    values = [word == "true" if word in ("true", "false") else int(word) for word in words]
    return np.array(values, DTYPES[shape.dtype]).reshape((1, *shape.sizes))


def _iota(instruction: Instruction, shape: Array, _: Sequence[Table]) -> Table | None:
    dimension = instruction.attributes.get("iota_dimension", "0" if len(shape.sizes) == 1 else "")
    if not dimension.isdigit():
        return None
    return np.asarray(np.indices(shape.sizes)[int(dimension)][None])


def _elementwise(function: Callable[..., Table]) -> Rule:
    def rule(_: Instruction, __: Array, operands: Sequence[Table]) -> Table:
        return function(*operands)

    return rule


def _divided(instruction: Instruction, _: Array, operands: Sequence[Table]) -> Table | None:
    a, b = operands
    if not b.all() or a.dtype == bool:
        return None
    low = np.iinfo(a.dtype).min
    if low and ((a == low) & (b == np.array(-1, b.dtype))).any():
        return None
    if instruction.opcode == "remainder":
        return np.asarray(np.fmod(a, b))
    quotient = a // b
    return np.asarray(quotient + ((a - quotient * b != 0) & ((a < 0) != (b < 0))))


def _shifted(instruction: Instruction, shape: Array, operands: Sequence[Table]) -> Table | None:
    a, by = operands
    if a.dtype == bool or (by < 0).any() or (by >= shape.bits).any():
        return None
    if instruction.opcode == "shift-left":
        return np.asarray(np.left_shift(a, by))
    signed = np.dtype(f"{'i' if instruction.opcode == 'shift-right-arithmetic' else 'u'}{a.dtype.itemsize}")
    return np.asarray(np.right_shift(a.view(signed), by.astype(signed)).view(a.dtype))


def _compared(instruction: Instruction, _: Array, operands: Sequence[Table]) -> Table | None:
    function = _COMPARISONS.get(instruction.attributes.get("direction", ""))
    return None if function is None else np.asarray(function(*operands))


_COMPARISONS: dict[str, Callable[..., Table]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _selected(_: Instruction, __: Array, operands: Sequence[Table]) -> Table | None:
    which, yes, no = operands
    return np.where(_spread(which, yes), yes, no)


def _clamped(_: Instruction, __: Array, operands: Sequence[Table]) -> Table:
    low, given, high = operands
    return np.minimum(np.maximum(given, _spread(low, given)), _spread(high, given))


def _spread(scalar: Table, like: Table) -> Table:
    """A scalar beside an array: its devices stay in front."""
    return scalar if scalar.ndim == like.ndim else scalar.reshape(scalar.shape[0], *[1] * (like.ndim - 1))


def _broadcast(instruction: Instruction, shape: Array, operands: Sequence[Table]) -> Table | None:
    dimensions = _ints(instruction.attributes.get("dimensions", "{}"))
    inner = [1] * len(shape.sizes)
    for dimension, size in zip(dimensions, operands[0].shape[1:], strict=True):
        inner[dimension] = size
    lead = operands[0].shape[0]
    return np.broadcast_to(operands[0].reshape(lead, *inner), (lead, *shape.sizes))


def _reshaped(_: Instruction, shape: Array, operands: Sequence[Table]) -> Table:
    return operands[0].reshape(operands[0].shape[0], *shape.sizes)


def _bitcast(instruction: Instruction, shape: Array, operands: Sequence[Table]) -> Table | None:
    """A view of the same bytes: the same elements in the same order where there is one dimension at most."""
    [given] = operands
    sizes = given.shape[1:]
    if given.dtype != DTYPES[shape.dtype] or prod(sizes) != shape.count:
        return None
    flat = all(sum(size > 1 for size in one) <= 1 for one in (sizes, shape.sizes))
    return _reshaped(instruction, shape, operands) if flat else None


def _transposed(instruction: Instruction, _: Array, operands: Sequence[Table]) -> Table:
    dimensions = _ints(instruction.attributes.get("dimensions", "{}"))
    return operands[0].transpose(0, *(dimension + 1 for dimension in dimensions))


def _sliced(instruction: Instruction, _: Array, operands: Sequence[Table]) -> Table:
    ranges = _RANGE.findall(instruction.attributes.get("slice", ""))
    return operands[0][(slice(None), *(slice(int(a), int(b), int(c or 1)) for a, b, c in ranges))]


def _sliced_at(instruction: Instruction, _: Array, operands: Sequence[Table]) -> Table:
    given, *starts = operands
    sizes = _ints(instruction.attributes.get("dynamic_slice_sizes", "{}"))
    lead = max(one.shape[0] for one in operands)
    rows = []
    for device in range(lead):
        row = given[device % given.shape[0]]
        begins = [int(start.reshape(-1)[device % start.shape[0]]) for start in starts]
        clamped = [min(max(b, 0), whole - n) for b, whole, n in zip(begins, row.shape, sizes, strict=True)]
        rows.append(row[tuple(slice(b, b + n) for b, n in zip(clamped, sizes, strict=True))])
    return np.stack(rows)


def _joined(instruction: Instruction, _: Array, operands: Sequence[Table]) -> Table:
    lead = max(one.shape[0] for one in operands)
    [dimension] = _ints(instruction.attributes.get("dimensions", "{0}"))
    return np.concatenate([np.broadcast_to(o, (lead, *o.shape[1:])) for o in operands], axis=dimension + 1)


def _converted(_: Instruction, shape: Array, operands: Sequence[Table]) -> Table:
    return operands[0] != 0 if shape.dtype == "pred" else operands[0].astype(DTYPES[shape.dtype])


def _ints(text: str) -> tuple[int, ...]:
    return integers(text.strip("{}"))


RULES: dict[str, Rule] = {
    "constant": _constant,
    "iota": _iota,
    "add": _elementwise(np.add),
    "subtract": _elementwise(np.subtract),
    "multiply": _elementwise(np.multiply),
    "and": _elementwise(np.bitwise_and),
    "or": _elementwise(np.bitwise_or),
    "xor": _elementwise(np.bitwise_xor),
    "not": _elementwise(np.invert),
    "negate": _elementwise(np.negative),
    "maximum": _elementwise(np.maximum),
    "minimum": _elementwise(np.minimum),
    "clamp": _clamped,
    "divide": _divided,
    "remainder": _divided,
    "shift-left": _shifted,
    "shift-right-logical": _shifted,
    "shift-right-arithmetic": _shifted,
    "compare": _compared,
    "select": _selected,
    "convert": _converted,
    "copy": _reshaped,
    "reshape": _reshaped,
    "bitcast": _bitcast,
    "broadcast": _broadcast,
    "transpose": _transposed,
    "slice": _sliced,
    "dynamic-slice": _sliced_at,
    "concatenate": _joined,
}
"""By opcode. What is not here has no table."""
