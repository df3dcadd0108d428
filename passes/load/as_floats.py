"""What floats may give of numbers that are known: intervals that hold it, in place of what real arithmetic gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hlo_verify.passes.load.made_by import SELECTS, Made
from hlo_verify.program.element_types import DTYPES, finfo, is_float, mantissa_bits, sure_digits
from hlo_verify.program.ir import Function, Name, Op, fresh_in
from hlo_verify.program.op_families import ADDS

if TYPE_CHECKING:
    from hlo_verify.evaluate.maps import Array

Floats = npt.NDArray[np.float64]

_AS_IEEE_HAS_IT = SELECTS | frozenset("add subtract multiply constant convert iota".split())
"""Operations of which an exact result is what every machine has."""
_SUMS = frozenset("all_reduce convolution dot_general reduce reduce_scatter reduce_window scatter".split())
"""Operations that may add up many numbers, some of which cancel."""
_BETWEEN_DEVICES = ("all_reduce", "reduce_scatter")
_OF_ONE_NUMBER = 2.0**-48
"""How wide a quotient of two numbers is at most, as a part of it: quotients of what was rounded are wider."""


def in_types(op: Op, made: Made) -> dict[Name, Callable[[Array], Array]]:
    """What an operation of floats gives, of the results that it has of real numbers, where that is not the same."""
    if op.name != "constant" and not made.rounds(op):
        return {}
    floats = {v: type_.dtype for v, type_ in zip(op.results, op.types, strict=True) if is_float(type_.dtype)}
    return {v: _in_type(op, made, dtype) for v, dtype in floats.items()}


def _in_type(op: Op, made: Made, dtype: str) -> Callable[[Array], Array]:
    if op.name == "reduce_precision":  # evaluation has it as the identity
        return partial(_rounded, is_exact=np.zeros_like, off=np.nan, dtype=dtype)
    off = 0.5 ** sure_digits(dtype)
    if op.name == "divide":
        return partial(_divided, by=made.number(op.operands[1]), dtype=dtype, off=off)
    is_unknown = op.name in _SUMS or _adds_to_added(op, made, dtype)
    is_sure = op.name in _AS_IEEE_HAS_IT and not is_unknown
    is_exact = partial(_holds, digits=mantissa_bits(dtype) + 1) if is_sure else np.zeros_like
    return partial(_rounded, is_exact=is_exact, off=np.nan if is_unknown else off, dtype=dtype)


def _adds_to_added(op: Op, made: Made, dtype: str) -> bool:
    """Whether a number is added to a sum with another one, and their own sum is none of the type's: compilers have
    `(a + c) + d` as `a + (c + d)`."""
    if op.name not in ADDS:
        return False
    inner = [
        v for made_by in map(made.ops.get, op.operands) if made_by and made_by.name in ADDS for v in made_by.operands
    ]
    known = (map(made.number, values) for values in (op.operands, inner))
    numbers, others = ([n for n in found if n is not None and np.isfinite(float(n))] for found in known)
    both = [Fraction(float(c)) + sign * Fraction(float(d)) for c in numbers for d in others for sign in (1, -1)]
    return any(Fraction(float(np.asarray(float(each)).astype(DTYPES[dtype]))) != each for each in both)


def with_sizes(main: Function, made: Made) -> tuple[Function, dict[Name, Callable[[Array], Array]]]:
    """The function in which the addends' sizes are added up ahead of each sum, and what such sums give: off by as many
    roundings of the greatest of these as there are addends."""
    fresh, ops = fresh_in(main), list[Op]()
    found: dict[Name, Callable[[Array], Array]] = {}
    for op in main.ops:
        if _adds_up(op, made):
            source, *start = op.operands
            size, total = fresh.some(2)
            type_, greatest = made.types[source], [math.inf]
            ops.append(Op("abs", (source,), (size,), (type_,)))
            ops.append(replace(op, operands=(size, *start), results=(total,)))
            off = _addends(op, type_.shape) * 0.5 ** sure_digits(type_.dtype)
            found[total] = partial(_noted, greatest=greatest)
            found[op.results[0]] = partial(_added, greatest=greatest, off=off)
        ops.append(op)
    return replace(main, ops=tuple(ops)), found


def _adds_up(op: Op, made: Made) -> bool:
    """Whether an operation adds up elements of one tensor of floats."""
    starts = op.name in ("reduce", "reduce_window")
    if not (starts or op.name in _BETWEEN_DEVICES) or not is_float(op.types[0].dtype):
        return False
    if len(op.operands) != 1 + starts or [inner.name for inner in op.regions[0].ops] != ["add"]:
        return False
    return not starts or made.number(op.operands[1]) == 0


def _addends(op: Op, shape: Sequence[int]) -> int:
    """How many numbers are added up, and one that is there in the beginning."""
    if op.name in _BETWEEN_DEVICES:
        return int(np.shape(op.attributes["replica_groups"])[-1]) + 1
    if op.name == "reduce_window":
        return int(math.prod(op.attributes["window_dimensions"])) + 1
    return math.prod(shape) // max(math.prod(op.types[0].shape), 1) + 1


def _noted(values: Array, *, greatest: list[float]) -> Array:
    high = values["high"]
    greatest[0] = math.inf if np.isnan(high).any() else float(np.abs(high).max(initial=0.0))
    return values


def _added(values: Array, *, greatest: list[float], off: float) -> Array:
    """Sums, of which so much of the greatest sum of addends' sizes may be rounded off."""
    from hlo_verify.evaluate.intervals import interval

    off_by = greatest[0] * off if math.isfinite(greatest[0]) else np.nan
    return interval(values["low"] - off_by, values["high"] + off_by)


def _rounded(values: Array, *, is_exact: Callable[[Floats], npt.NDArray[Any]], off: float, dtype: str) -> Array:
    """Intervals that hold what floats may give in place of each number, off by so much of it where it is not exact, and
    by the least number of the type; of what is too large for it nothing is known."""
    from hlo_verify.evaluate.intervals import interval, is_point

    low, high = values["low"], values["high"]
    least, most = float(finfo(dtype).smallest_normal), float(finfo(dtype).max)
    is_held = ((low == 0) & (not np.isnan(off))) | (is_exact(low).astype(np.bool_) & (np.abs(low) >= least))
    size = np.maximum(np.abs(low), np.abs(high))
    off_by = np.where(is_point(values) & is_held, 0.0, np.where(np.isnan(off), off, size * off + least))
    off_by = np.where((size > most) & np.isfinite(size), np.nan, off_by)
    return interval(low - off_by, high + off_by)


def _divided(values: Array, *, by: Any, dtype: str, off: float) -> Array:
    """The same of quotients by one number: exact are those that a compiler has as products with its inverse too."""
    from hlo_verify.evaluate.intervals import interval

    if by is None or not by:
        return _rounded(values, is_exact=np.zeros_like, off=off, dtype=dtype)
    as_held = DTYPES[dtype]
    near = (values["low"] / 2 + values["high"] / 2).astype(as_held)
    inverse = np.ones((), as_held) / np.asarray(by).astype(as_held)
    product = (near * np.asarray(by).astype(as_held)) * inverse
    is_inside = (values["low"] <= near) & (near <= values["high"]) & (product == near)
    is_inside &= values["high"] - values["low"] <= _OF_ONE_NUMBER * np.abs(near)
    is_inside &= _holds(near.astype(np.float64), sure_digits(dtype))
    found = interval(*(np.where(is_inside, near, values[side]) for side in ("low", "high")))
    return _rounded(found, is_exact=lambda low: is_inside & (low == near), off=off, dtype=dtype)


def _holds(values: Floats, digits: int) -> npt.NDArray[np.bool_]:
    """Which numbers have no more binary digits."""
    mantissa, _ = np.frexp(values)
    scaled = np.ldexp(mantissa, digits)
    return np.asarray(scaled == np.round(scaled))
