"""Which operations look at the bits of numbers that were computed: over the reals nobody knows these.

`bitcast_convert` and comparisons in the total order see roundings and the sign of zero. Of arguments, constants and
what was only moved they see what is there. Of all else, bits are a function of the real number and of what made it: the
last operation, and the format that it was rounded to. `0 - x` and `-x` are one real number, and their zeros have
different signs; `f32(bf16(x))` has other bits than `x`. What is made alike is assumed to be rounded alike, by name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from hlo_verify.program.element_types import DTYPES, is_float, is_integer
from hlo_verify.program.ir import Function, Name, Op, operations
from hlo_verify.program.op_families import BORDERS, FORWARDS, MOVES, REDUCTIONS, is_identity
from hlo_verify.program.operations import ROWS

MAKER = "made_by"
"""The attribute of an operation that looks at bits of what is computed: what made it."""

SIGNED_ZERO = "a zero with a sign"
"""What made a constant of which no real number tells the bits."""

ASSUMPTION = (
    "bits of numbers that are computed (bitcast_convert, comparisons in the total order) are those of the real number, "
    "rounded alike by the same operation, with one zero"
)

Makers = dict[Name, str]
"""What made the numbers of a value; nothing of those whose bits are known."""

Types = dict[Name, str]
"""The element types of values."""

_CARRIED = "a region"
_KNOWN = ""
_SEVERAL = "several operations"
_MOVING = MOVES | FORWARDS | {"gather", "select"} | {name for name, row in ROWS.items() if row.notation == "movement"}
_SAME = {"dot": "dot_general"}
"""Two names of one operation."""


def marked(function: Function) -> Function:
    """A module's function with the operations marked that look at the bits of what is computed."""
    return _marked(function, dict.fromkeys(function.arguments, _KNOWN), {})


def notes(function: Function) -> tuple[str, ...]:
    """What is assumed of the bits that the operations of a marked function look at."""
    return (ASSUMPTION,) if any(MAKER in op.attributes for op in operations(function)) else ()


def _marked(function: Function, makers: Makers, types: Types) -> Function:
    types |= zip(function.arguments, (each.dtype for each in function.argument_types), strict=True)
    ops = []
    for op in function.ops:
        types |= zip(op.results, (each.dtype for each in op.types), strict=True)
        ops.append(_seen(op, makers, types))
    is_same = all(new is old for new, old in zip(ops, function.ops, strict=True))
    return function if is_same else replace(function, ops=tuple(ops))


def _seen(op: Op, makers: Makers, types: Types) -> Op:
    """The operation, marked if need be; what makes its results is known from then on."""
    if op.name == "sdy.manual_computation":
        makers.update(zip(op.regions[0].arguments, (makers.get(v, _CARRIED) for v in op.operands), strict=True))
        inside = _marked(op.regions[0], makers, types)
        makers.update(zip(op.results, (makers.get(v, _CARRIED) for v in inside.results), strict=True))
        return op if inside is op.regions[0] else replace(op, regions=(inside,))
    regions = tuple(_marked(region, makers | _given(region, op.name == "sort"), types) for region in op.regions)
    if any(new is not old for new, old in zip(regions, op.regions, strict=True)):
        op = replace(op, regions=regions)
    made = _together({makers.get(v, _CARRIED) for v in op.operands})
    if made and (op.name == "bitcast_convert" or op.attributes.get("compare_type") == "TOTALORDER"):
        op = replace(op, attributes={**op.attributes, MAKER: made})
    for v, type_ in zip(op.results, op.types, strict=True):
        makers[v] = _maker(op, made, type_.dtype, types)
    return op


def _maker(op: Op, made: str, dtype: str, types: Types) -> str:
    if op.name == "bitcast_convert" or dtype == "i1" or is_integer(dtype):
        return _KNOWN
    if op.name == "constant":
        return _KNOWN if _is_plain(op.attributes["value"]) else SIGNED_ZERO
    is_border = op.attributes.get("call_target_name") in BORDERS
    is_moved = op.name in _MOVING or is_identity(op) or is_border or _widens(op, types)
    if op.operands and (is_moved or (made and op.name in REDUCTIONS)):
        return made
    name = made.split(" in ")[0] if op.name == "convert" and made else _SAME.get(op.name, op.name)
    return f"{name} in {dtype}"


def _together(made: set[str]) -> str:
    makers = made - {_KNOWN}
    if SIGNED_ZERO in makers:
        return SIGNED_ZERO
    return _SEVERAL if len(makers) > 1 else "".join(makers)


def _given(region: Function, is_comparator: bool) -> Makers:
    """What made the arguments of a region: a comparator takes what is sorted."""
    given = zip(region.arguments, region.argument_types, strict=True)
    is_known = {v: is_comparator or type_.dtype == "i1" or is_integer(type_.dtype) for v, type_ in given}
    return {v: _KNOWN if known else _CARRIED for v, known in is_known.items()}


def _widens(op: Op, types: Types) -> bool:
    """Whether every number of one type is converted to itself in another."""
    if op.name != "convert":
        return False
    old, new = types.get(op.operands[0], ""), op.types[0].dtype
    if not {old, new} <= DTYPES.keys() or not (is_float(old) and is_float(new)):
        return False
    finfo: Any = ml_dtypes.finfo
    narrow, wide = finfo(DTYPES[old]), finfo(DTYPES[new])
    return bool(narrow.nmant <= wide.nmant and narrow.maxexp <= wide.maxexp and narrow.minexp >= wide.minexp)


def _is_plain(value: Any) -> bool:
    """Whether no element is a zero with a sign."""
    array = np.asarray(value)
    if array.dtype.kind in "iub":
        return True
    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return not np.any((wide == 0) & np.signbit(wide.real))
