"""Elementwise operations on enclosures, and on integers of which some are undefined.

What the StableHLO specification leaves open is undefined: an integer divided by zero, the least integer divided by -1,
a shift by the width or more, a number converted to an integer type that does not hold it, and a negative power of an
integer. So is the absolute value of the least integer, which its type does not hold: XLA takes what it computes of that
for non-negative in some programs, and not in others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flint import acb, arb

from hlo_verify.evaluate import enclosures, functions, interval_functions
from hlo_verify.evaluate.balls import (
    BALLS,
    NAN,
    UNDEFINED,
    ZERO,
    Special,
    is_special,
    is_unknown,
    missing,
    settled,
)
from hlo_verify.evaluate.integers import INTEGER
from hlo_verify.evaluate.intervals import INTERVALS, is_point
from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.numbers import bounds, exact, is_complex, is_float, is_integer, storage, width, wrapped
from hlo_verify.evaluate.totals import rounded, without
from hlo_verify.evaluate.unary import UNKNOWN_COMPLEX, trunc
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.program.ir import MADE_BY, Op
from hlo_verify.program.op_families import plain_name

NO_SENSE = {
    "divide": "an integer division by zero, or of the least integer by -1",
    "remainder": "an integer division by zero, or of the least integer by -1",
    "shift_left": "a shift by the width or more",
    "shift_right_logical": "a shift by the width or more",
    "shift_right_arithmetic": "a shift by the width or more",
    "power": "a negative power of an integer",
    "abs": "the absolute value of the least integer",
    "convert": "a number converted to an integer type that does not hold it",
}
"""What is undefined where an operation's result is, in words."""

Note = Callable[[str], None]
Real = np.dtype[Any]
"""`balls.BALLS` or `intervals.INTERVALS`."""

FLOAT64 = np.dtype(np.float64)
"""The type that stands for reals where integers are worked on, which have none."""


def apply(
    op: Op, dtypes: list[str], args: list[Array], note: Note, real: Real, *, has_fixed_amount: bool = False
) -> Array:
    """An elementwise operation; `note` is told what is undefined. Raises `UnknownError`.

    Real numbers are enclosed as `real` says. With a fixed amount, one that the module itself says, a shift by the width
    is defined, though none by more: JAX makes the upper half of a seed of 32 bits by shifting it by 32.
    """
    name, result = plain_name(op.name), op.types[0].dtype
    rule = _TYPED.get(name)
    if rule is not None:
        return rule(op, dtypes, args, note, real)
    dtype = dtypes[0] if dtypes else result
    if dtype == "i1":
        return _of_truth(name, args)
    if is_integer(dtype):
        return _of_integers(name, op, dtype, args, note, has_fixed_amount)
    if real == INTERVALS and name == "multiply" and op.operands[0] == op.operands[1]:
        name, args = "square", args[:1]
    table = interval_functions.REAL if real == INTERVALS else enclosures.REAL
    function = (enclosures.COMPLEX if is_complex(dtype) else table).get(name)
    if function is None:
        raise UnknownError(f"{op.name} of {dtype}, which is not enclosed")
    found = function(*args)
    return settled(found, np.bool_) if result == "i1" else found


OUTSIDE = "a function outside of its domain, or at a pole"


def within_domain(found: Array, args: Sequence[Array], note: Note) -> Array:
    """Nothing is known of what is infinite or no number though all that it was computed from is finite."""
    leaves = np.frompyfunc(lambda y, *given: is_special(y) and all(map(_is_finite, given)), 1 + len(args), 1)
    gap = np.asarray(leaves(found, *args), np.bool_)
    if gap.any():
        note(OUTSIDE)
    return without(found, gap)


def _is_finite(x: Any) -> bool:
    return not isinstance(x, arb | Special) or bool(x.is_finite())


def _of_truth(name: str, args: list[Array]) -> Array:
    if all(a.dtype != object for a in args):
        return functions.TRUTH[name](*args)
    plain = functions.TRUTH[name]
    if name == "not":
        return np.asarray(np.frompyfunc(lambda a: UNDEFINED if a is UNDEFINED else not a, 1, 1)(args[0]), object)
    if plain is np.logical_xor:
        return settled(np.bitwise_xor(*(a.astype(object) for a in args)), np.bool_)
    each = np.bitwise_or if plain is np.logical_or else np.bitwise_and
    return settled(each(*(a.astype(object) for a in args)), np.bool_)


def lifted(function: Callable[..., Array], dtype: str, args: list[Array]) -> Array:
    """A function of integers, undefined where an operand is."""
    gaps = [missing(a) for a in args]
    gap = np.logical_or.reduce(np.broadcast_arrays(*gaps)) if len(gaps) > 1 else gaps[0]
    native = storage(dtype, FLOAT64)
    filled = [
        np.where(g, native.type(1), a).astype(native) if a.dtype == object else a
        for a, g in zip(args, gaps, strict=True)
    ]
    return without(function(*filled), gap)


def _of_integers(name: str, op: Op, dtype: str, args: list[Array], note: Note, has_fixed_amount: bool) -> Array:
    function = INTEGER.get(name)
    if function is None:
        raise UnknownError(f"{op.name} of {dtype}")

    def checked(*values: Array) -> Array:
        found = wrapped(function(dtype, *values), op.types[0].dtype, FLOAT64)
        gap = _senseless(name, dtype, values, has_fixed_amount)
        if gap.any():
            note(NO_SENSE[name])
        return without(found, gap)

    return lifted(checked, dtype, args)


def _senseless(name: str, dtype: str, values: tuple[Array, ...], has_fixed_amount: bool) -> Array:
    """Where an operation on integers has no defined result."""
    if name in ("divide", "remainder"):
        a, b = values
        least = bounds(dtype)[0]
        return np.asarray((b == 0) | ((a == least) & (b == -1) if least else np.False_))
    if name.startswith("shift_"):
        return np.asarray((values[1] < 0) | (values[1] > width(dtype) - (not has_fixed_amount)))
    if name == "power":
        return np.asarray(values[1] < 0)
    if name == "abs" and bounds(dtype)[0]:
        return np.asarray(values[0] == bounds(dtype)[0])
    return np.zeros((), np.bool_)


def _compare(op: Op, dtypes: list[str], args: list[Array], note: Note, real: Real) -> Array:
    direction = op.attributes["comparison_direction"]
    if is_integer(dtypes[0]) or dtypes[0] == "i1":
        return lifted(functions.COMPARISONS[direction], dtypes[0], args)
    if real == INTERVALS:
        if op.operands[0] == op.operands[1]:
            args = [interval_functions.of_itself(a) for a in args]
        found = interval_functions.compared(direction, *args)
    else:
        is_total = op.attributes.get("compare_type") == "TOTALORDER"
        found = settled(enclosures.elementwise(enclosures.compared(direction, is_total), 2)(*args), np.bool_)
    return _without_signs(found, np.logical_and(*map(is_zero_at, args)), op, note)


def _select(op: Op, dtypes: list[str], args: list[Array], note: Note, real: Real) -> Array:
    return choose(*args)


def choose(condition: Array, a: Array, b: Array) -> Array:
    """`a` where the condition holds, else `b`."""
    if a.dtype == INTERVALS:
        return interval_functions.chosen(condition, a, b)
    if condition.dtype == object:
        found = np.asarray(np.frompyfunc(enclosures.chosen, 3, 1)(condition, a, b), object)  # each open one by itself
    else:
        found = np.where(condition, a, b)
    native = next((x.dtype for x in (a, b) if x.dtype != object), None)
    return settled(found, native) if native is not None else found


def _clamp(op: Op, dtypes: list[str], args: list[Array], note: Note, real: Real) -> Array:
    low, x, high = args
    if is_integer(dtypes[0]) or dtypes[0] == "i1":
        return lifted(lambda a, b, c: np.minimum(np.maximum(b, a), c), dtypes[0], [low, x, high])
    table = interval_functions.REAL if real == INTERVALS else enclosures.REAL
    return table["minimum"](table["maximum"](x, low), high)


def _convert(op: Op, dtypes: list[str], args: list[Array], note: Note, real: Real) -> Array:
    return converted(args[0], dtypes[0], op.types[0].dtype, real, note)


def converted(values: Array, old: str, new: str, real: Real, note: Note = lambda _: None) -> Array:
    """The element type changed: between floats, nothing is."""
    if is_integer(old) or old == "i1":
        if is_integer(new) or new == "i1":
            return lifted(lambda a: a != 0 if new == "i1" else wrapped(a, new, FLOAT64), old, [values])
        values = exact(values, storage(new, real))
        return np.asarray(np.frompyfunc(acb, 1, 1)(values), object) if is_complex(new) else values
    if real == INTERVALS:
        return _of_intervals(values, new, note)
    if is_complex(old) and not is_complex(new):
        values = np.asarray(np.frompyfunc(lambda z: z.real, 1, 1)(values), object)
    if new == "i1":
        return settled(enclosures.elementwise(enclosures.compared("NE", False), 2)(values, np.asarray(ZERO)), np.bool_)
    if is_float(new):
        return values
    if is_complex(new):
        return values if is_complex(old) else np.asarray(np.frompyfunc(_as_complex, 1, 1)(values), object)
    least, most = bounds(new)
    found = np.asarray(np.frompyfunc(lambda x: _whole(x, least, most, note), 1, 1)(values), object)
    return settled(found, storage(new, FLOAT64))


def _of_intervals(values: Array, new: str, note: Note) -> Array:
    """Intervals as elements of another type."""
    if new == "i1":
        return interval_functions.compared("NE", values, exact(0.0, INTERVALS))
    if is_float(new):
        return values
    found, is_outside = interval_functions.whole(values, *bounds(new))
    if is_outside:
        note(NO_SENSE["convert"])
    return settled(found if found.dtype == object else found.astype(storage(new, FLOAT64)), storage(new, FLOAT64))


def _as_complex(x: Any) -> Any:
    return UNKNOWN_COMPLEX if x is NAN or not x.is_finite() else acb(x)


def _whole(x: Any, least: int, most: int, note: Callable[[str], None]) -> Any:
    """A real number without its fraction, in an integer type with those bounds."""
    if not x.is_finite():
        if not is_unknown(x):
            note(NO_SENSE["convert"])
        return UNDEFINED
    found = trunc(x).unique_fmpz()
    if found is None:
        return UNDEFINED
    if not least <= int(found) <= most:
        note(NO_SENSE["convert"])
        return UNDEFINED
    return int(found)


def _reduce_precision(op: Op, dtypes: list[str], args: list[Array], note: Note, real: Real) -> Array:
    return args[0]


def _part(which: str) -> Callable[..., Array]:
    def part(op: Op, dtypes: list[str], args: list[Array], note: Note, real: Real) -> Array:
        (a,) = args
        if is_complex(dtypes[0]):
            return np.asarray(np.frompyfunc(lambda z: getattr(z, which), 1, 1)(a), object)
        return a if which == "real" else np.full(a.shape, exact(0.0, real)[()], real)

    return part


def _complex(op: Op, dtypes: list[str], args: list[Array], note: Note, real: Real) -> Array:
    def joined(a: Any, b: Any) -> Any:
        return acb(a, b) if a.is_finite() and b.is_finite() else UNKNOWN_COMPLEX

    return enclosures.elementwise(joined, 2)(*args)


def _bits(op: Op, dtypes: list[str], args: list[Array], note: Note, real: Real) -> Array:
    """bitcast_convert between types of one width."""
    old, new = dtypes[0], op.types[0].dtype
    if old == new:
        return args[0]
    if is_integer(old) and is_integer(new):
        return lifted(lambda a: wrapped(a, new, FLOAT64), old, args)
    found = of_bits(to_bits(args[0], old), new, real)
    return _without_signs(found, is_zero_at(args[0]), op, note)


SIGN = "the sign of a zero that was computed"


def _without_signs(found: Array, gap: Array, op: Op, note: Note) -> Array:
    """What looks at the bits of numbers, where some are zeros: of computed ones real numbers do not say the sign."""
    if MADE_BY not in op.attributes or not gap.any():
        return found
    note(SIGN)
    return without(found, gap)


def is_zero_at(values: Array) -> Array:
    """Which elements are exactly zero."""
    if values.dtype == INTERVALS:
        return np.asarray((values["low"] == 0) & (values["high"] == 0))
    if values.dtype != object:
        return np.asarray(values == 0)
    return np.asarray(np.frompyfunc(lambda x: isinstance(x, arb) and x.is_zero(), 1, 1)(values)).astype(np.bool_)


def to_bits(values: Array, dtype: str) -> Array:
    """The bits of elements. Raises `UnknownError` for what is not known exactly."""
    if not is_integer(dtype) and not _are_exact(values):
        raise UnknownError("the bits of real numbers that are not known exactly")
    if not is_integer(dtype):
        plain = rounded(values)
        if values.dtype == object and not _are_same(values, exact(plain, BALLS)):
            raise UnknownError(f"the bits of real numbers that are no {dtype}")
        values = plain
    elif values.dtype == object:
        values = values.astype(storage(dtype, FLOAT64))
    return functions.to_bits(values, dtype)


def _are_same(balls: Array, others: Array) -> bool:
    return all(a is NAN or bool(a == b) for a, b in zip(balls.flat, others.flat, strict=True))


def _are_exact(values: Array) -> bool:
    if values.dtype == INTERVALS:
        return bool(is_point(values).all())
    return all(x.is_exact() for x in values.reshape(-1))


def of_bits(bits: Array, dtype: str, real: Real) -> Array:
    """Elements with those bits."""
    found = functions.of_bits(bits, dtype, FLOAT64)
    return found if is_integer(dtype) else exact(found, real)


def _next_after(op: Op, dtypes: list[str], args: list[Array], note: Note, real: Real) -> Array:
    raise UnknownError("next_after of real numbers")


_TYPED: dict[str, Callable[[Op, list[str], list[Array], Note, Real], Array]] = {
    "compare": _compare,
    "select": _select,
    "clamp": _clamp,
    "convert": _convert,
    "reduce_precision": _reduce_precision,
    "real": _part("real"),
    "imag": _part("imag"),
    "complex": _complex,
    "next_after": _next_after,
    "bitcast_convert": _bits,
}
