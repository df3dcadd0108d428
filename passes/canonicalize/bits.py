"""Which operations look at the bits of numbers that were computed: over the reals nobody knows these.

`bitcast_convert` and comparisons in the total order see roundings and the sign of zero. Of arguments, constants and
what was only moved they see what is there. Of all else, bits are a function of the real number and of what made it: the
last operation, and the format that it was rounded to. `0 - x` and `-x` are one real number, and their zeros have
different signs; `f32(bf16(x))` has other bits than `x`. What is made alike is assumed to be rounded alike, by name. A
sum is made alike however it is written, as the real numbers' are: of parts, by products of matrices, by reductions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hlo_verify.program.attributes import elements_once
from hlo_verify.program.element_types import DTYPES, finfo, is_float, is_integer
from hlo_verify.program.ir import MADE_BY, SIGNED_ZERO, Function, Name, Op, operations
from hlo_verify.program.op_families import BORDERS, FORWARDS, MOVES, REDUCTIONS, RUNS_REGIONS, is_identity
from hlo_verify.program.operations import ROWS

ASSUMPTION = (
    "bits of numbers that are computed (bitcast_convert, comparisons in the total order) are those of the real number, "
    "rounded alike by the same operation (all sums are one, products of matrices too), with one zero"
)

Makers = dict[Name, str]
"""What made the numbers of a value; nothing of those whose bits are known."""

Types = dict[Name, str]
"""The element types of values."""

_UNKNOWN = "a region"
_KNOWN = ""
_OR = " or "
_IN = " in "
_PLAIN_DIGITS = 23
"""Binary digits of f32: a compiler may compute in it what a program says in a narrower type, and then round."""
_MOVING = MOVES | FORWARDS | {"gather", "select"} | {name for name, row in ROWS.items() if row.notation == "movement"}
_SUMS = frozenset({"add", "dot", "dot_general"})
"""What adds up: where a compiler splits a product of matrices, parts of it are added."""


def marked(function: Function) -> Function:
    """A module's function with the operations marked that look at the bits of what is computed."""
    return _marked(function, dict.fromkeys(function.arguments, _KNOWN), {})


def notes(function: Function) -> tuple[str, ...]:
    """What is assumed of the bits that the operations of a marked function look at."""
    return (ASSUMPTION,) if any(MADE_BY in op.attributes for op in operations(function)) else ()


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
    if op.name in RUNS_REGIONS:
        return _handed_on(op, makers, types)
    regions = [_marked(region, makers | _given(region, op.name == "sort"), types) for region in op.regions]
    made = _together(makers.get(v, _UNKNOWN) for v in op.operands)
    if made and (op.name == "bitcast_convert" or op.attributes.get("compare_type") == "TOTALORDER"):
        op = replace(op, attributes={**op.attributes, MADE_BY: made})
    for v, type_ in zip(op.results, op.types, strict=True):
        makers[v] = _maker(op, made, type_.dtype, types)
    return _with_regions(op, regions)


def _handed_on(op: Op, makers: Makers, types: Types) -> Op:
    """An operation that gives what its regions do. What a loop carries was made by what its start was made by or, from
    the second turn on, by its body."""
    carried = [makers.get(v, _UNKNOWN) for v in op.operands]
    while True:
        for region in op.regions:
            makers.update(zip(region.arguments, carried, strict=False))
        regions = [_marked(region, makers, types) for region in op.regions]
        ends = regions[1:] if op.name == "while" else regions
        given = [[makers.get(v, _UNKNOWN) for v in region.results] for region in ends]
        found = [_together(each) for each in zip(*given, *([carried] if op.name == "while" else []), strict=True)]
        if op.name != "while" or found == carried:
            break
        carried = found
    makers.update(zip(op.results, found, strict=True))
    return _with_regions(op, regions)


def _with_regions(op: Op, regions: Sequence[Function]) -> Op:
    is_same = all(new is old for new, old in zip(regions, op.regions, strict=True))
    return op if is_same else replace(op, regions=tuple(regions))


def _maker(op: Op, made: str, dtype: str, types: Types) -> str:
    if op.name == "bitcast_convert" or _has_no_rounding(dtype):
        return _KNOWN
    if op.name == "constant":
        return _KNOWN if _is_plain(op.attributes["value"]) else SIGNED_ZERO
    is_border = op.attributes.get("call_target_name") in BORDERS
    is_moved = op.name in _MOVING or is_identity(op) or is_border or _widens(op, types)
    if op.operands and (is_moved or (made and op.name in REDUCTIONS)):
        return made
    if op.name == "convert" and made:
        return made if made == SIGNED_ZERO else _together(_rounded(each, dtype) for each in made.split(_OR))
    return f"{'sum' if _adds_up(op) else op.name}{_IN}{dtype}"


def _adds_up(op: Op) -> bool:
    """Whether an operation gives a sum, however that is written."""
    if op.name not in REDUCTIONS or len(op.regions) != 1:
        return op.name in _SUMS
    return [inner.name for inner in op.regions[0].ops] == ["add"]


def _rounded(maker: str, dtype: str) -> str:
    """What made a number that is rounded to a type: the operation, with all narrow types that it was rounded to on the
    way, as two roundings are another one than the last of them."""
    operation, *formats = maker.split(_IN)
    narrow = {each for each in formats if each in DTYPES and is_float(each) and finfo(each).nmant < _PLAIN_DIGITS}
    return _IN.join((operation, *sorted(narrow - {dtype}), dtype))


def _together(makers: Iterable[str]) -> str:
    """What made one of several values, nobody says which."""
    found = {each for maker in makers for each in maker.split(_OR)} - {_KNOWN}
    return SIGNED_ZERO if SIGNED_ZERO in found else _OR.join(sorted(found))


def _given(region: Function, is_comparator: bool) -> Makers:
    """What made the arguments of a region: a comparator takes what is sorted."""
    given = zip(region.arguments, region.argument_types, strict=True)
    return {v: _KNOWN if is_comparator or _has_no_rounding(type_.dtype) else _UNKNOWN for v, type_ in given}


def _has_no_rounding(dtype: str) -> bool:
    return dtype == "i1" or is_integer(dtype)


def _widens(op: Op, types: Types) -> bool:
    """Whether every number of one type is converted to itself in another."""
    if op.name != "convert":
        return False
    old, new = types.get(op.operands[0], ""), op.types[0].dtype
    if not {old, new} <= DTYPES.keys() or not (is_float(old) and is_float(new)):
        return False
    narrow, wide = finfo(old), finfo(new)
    return bool(narrow.nmant <= wide.nmant and narrow.maxexp <= wide.maxexp and narrow.minexp >= wide.minexp)


def _is_plain(value: Any) -> bool:
    """Whether no element is a zero with a sign."""
    array = elements_once(value)
    if array.dtype.kind in "iub":
        return True
    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return not np.any((wide == 0) & np.signbit(wide.real))
