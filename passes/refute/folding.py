"""What a compiler may fold operations on constants to: enclosures that hold the numbers of a type that are next to it.

tanh(6) is 1 in a narrow type, and `x * 1` is x; exp(-120) is 0 in single precision, and what is too large an infinity.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from flint import acb, arb

from hlo_verify.evaluate import balls, intervals
from hlo_verify.evaluate.maps import Array
from hlo_verify.program.element_types import DTYPES, finfo, is_float
from hlo_verify.program.ir import Function, Name, Op, operations, used
from hlo_verify.program.operations import ROWS

CONSTANTS = frozenset({"constant", "iota"})
"""Operations that values begin with which no argument takes part in."""


def moves(op: Op) -> bool:
    """Whether an operation makes no number that was not there."""
    row = ROWS.get(op.name)
    return row is not None and row.notation == "movement"


def computed_of_constants(function: Function) -> dict[Name, str]:
    """The floating-point values that a function, and its regions, compute of constants alone, by more than moving
    them, with their types: of complex ones, those of their parts."""
    known: set[Name] = set()
    found = {}
    for op in operations(function):
        if op.name not in CONSTANTS and not (op.operands and known.issuperset(used(op))):
            continue
        known.update(op.results)
        if op.name == "constant" or moves(op):
            continue
        for name, type_ in zip(op.results, op.types, strict=True):
            dtype = type_.dtype.removeprefix("complex<").removesuffix(">")
            if is_float(dtype):
                found[name] = dtype
    return found


def folded(values: Array, dtype: str) -> Array:
    """Enclosures with the nearest numbers of a type on either side, but for numbers of the type; of what is smaller
    than those that the type holds with all of its bits, from 0 to the least of these."""
    if values.dtype == intervals.INTERVALS:
        return _of_intervals(values, dtype)
    return np.asarray(np.frompyfunc(partial(_of_ball, dtype=dtype), 1, 1)(values), object)


def _of_intervals(values: Array, dtype: str) -> Array:
    low, high = values["low"], values["high"]
    info = finfo(dtype)
    least, most, step = float(info.smallest_normal), float(info.max), 2.0 ** -int(info.nmant)
    with np.errstate(all="ignore"):
        is_number = intervals.is_point(values) & (low.astype(DTYPES[dtype]).astype(float) == low)
        below, above = low - np.abs(low) * step, high + np.abs(high) * step
    is_small = (low < least) & (high > -least)
    below = np.where(is_small, np.minimum(below, np.where(low < 0, -least, 0.0)), below)
    above = np.where(is_small, np.maximum(above, np.where(high > 0, least, 0.0)), above)
    found = intervals.interval(np.where(is_number, low, below), np.where(is_number, high, above))
    return intervals.without(found, ~is_number & ((low < -most) | (high > most)))


def _of_ball(x: Any, dtype: str) -> Any:
    if isinstance(x, acb):
        return acb(_of_ball(x.real, dtype), _of_ball(x.imag, dtype))
    if not isinstance(x, arb) or not x.is_finite():
        return x
    info, middle = finfo(dtype), float(x.mid())
    with np.errstate(all="ignore"):
        if x.is_exact() and arb(middle) == x and float(np.asarray(middle).astype(DTYPES[dtype])) == middle:
            return x
    size = float(abs(x).upper())
    if size > float(info.max):
        return balls.UNKNOWN
    found, least = x + arb(0, size * 2.0 ** -int(info.nmant)), float(info.smallest_normal)
    if float(abs(x).lower()) >= least:
        return found
    found = found.union(balls.ZERO)
    found = found if x <= 0 else found.union(arb(least))
    return found if x >= 0 else found.union(arb(-least))
