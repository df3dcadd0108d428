"""Which operations look at the bits of numbers that were computed: over the reals nobody knows these.

`bitcast_convert` and comparisons in the total order see roundings and the sign of zero, and no assumption about real
arithmetic covers what comes of them. They see the bits of arguments, constants and what was only moved.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from hlo_verify.program.element_types import DTYPES, is_float, is_integer
from hlo_verify.program.ir import Function, Name, Op
from hlo_verify.program.op_families import FORWARDS, MOVES
from hlo_verify.program.operations import ROWS

COMPUTED = "of_computed"
"""The attribute of an operation that looks at bits of what is computed."""

Exact = dict[Name, str]
"""The values whose bits are known, with their element types."""

_MOVING = MOVES | FORWARDS | {"gather", "select"} | {name for name, row in ROWS.items() if row.notation == "movement"}


def marked(function: Function) -> Function:
    """A module's function with the operations marked that look at the bits of what is computed."""
    return _marked(function, _exact_of(function, True))


def _marked(function: Function, exact: Exact) -> Function:
    ops = [_seen(op, exact) for op in function.ops]
    is_same = all(new is old for new, old in zip(ops, function.ops, strict=True))
    return function if is_same else replace(function, ops=tuple(ops))


def _seen(op: Op, exact: Exact) -> Op:
    """The operation, marked if need be; its results are exact from then on, if they are."""
    regions = tuple(_marked(region, exact | _exact_of(region, op.name == "sort")) for region in op.regions)
    if any(new is not old for new, old in zip(regions, op.regions, strict=True)):
        op = replace(op, regions=regions)
    is_exact = all(v in exact for v in op.operands)
    if _looks(op) and not is_exact:
        op = replace(op, attributes={**op.attributes, COMPUTED: True})
    is_plain = op.name == "constant" and _is_plain(op.attributes["value"])
    keeps = is_exact and bool(op.operands) and (op.name in _MOVING or _widens(op, exact))
    are_exact = is_plain or op.name == "bitcast_convert" or keeps
    for v, type_ in zip(op.results, op.types, strict=True):
        if are_exact or _has_no_sign_of_zero(type_.dtype):
            exact[v] = type_.dtype
    return op


def _widens(op: Op, exact: Exact) -> bool:
    """Whether every number of one type is converted to itself in another."""
    if op.name != "convert":
        return False
    old, new = exact[op.operands[0]], op.types[0].dtype
    if not {old, new} <= DTYPES.keys() or not (is_float(old) and is_float(new)):
        return False
    finfo: Any = ml_dtypes.finfo
    narrow, wide = finfo(DTYPES[old]), finfo(DTYPES[new])
    return bool(narrow.nmant <= wide.nmant and narrow.maxexp <= wide.maxexp and narrow.minexp >= wide.minexp)


def _exact_of(region: Function, is_comparator: bool) -> Exact:
    """The arguments of a region whose bits are known: a comparator takes what is sorted."""
    given = zip(region.arguments, region.argument_types, strict=True)
    return {v: type_.dtype for v, type_ in given if is_comparator or _has_no_sign_of_zero(type_.dtype)}


def _has_no_sign_of_zero(dtype: str) -> bool:
    return dtype == "i1" or is_integer(dtype)


def _looks(op: Op) -> bool:
    return op.name == "bitcast_convert" or op.attributes.get("compare_type") == "TOTALORDER"


def _is_plain(value: Any) -> bool:
    """Whether no element is a zero with a sign."""
    array = np.asarray(value)
    if array.dtype.kind in "iub":
        return True
    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return not np.any((wide == 0) & np.signbit(wide.real))
