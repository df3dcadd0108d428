"""Elementwise functions on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hlo_verify.evaluate import special
from hlo_verify.evaluate.integers import INTEGER, unsigned
from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.numbers import bounds, converted, is_complex, is_float, is_integer, width, wrapped
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.program.element_types import DTYPES
from hlo_verify.program.ir import Op
from hlo_verify.program.op_families import plain_name

Function = Callable[..., Array]


def apply(op: Op, dtypes: list[str], args: list[Array], real: Any) -> Array:
    """An elementwise operation on operands of those types, which broadcast. Raises `UnknownError`."""
    name = plain_name(op.name)
    result = op.types[0].dtype
    special_rule = TYPED.get(name)
    if special_rule is not None:
        return special_rule(op, dtypes, args, real)
    dtype = dtypes[0] if dtypes else result
    table = TRUTH if dtype == "i1" else INTEGER if is_integer(dtype) else COMPLEX if is_complex(dtype) else REAL
    function = table.get(name)
    if function is None:
        raise UnknownError(f"{op.name} of {dtype}")
    if table is INTEGER:
        return wrapped(function(dtype, *args), result, real)
    found = function(*args)
    return found if found.dtype == bool and result == "i1" else wrapped(found, result, real)


TRUTH: dict[str, Function] = {
    "add": np.logical_or,
    "or": np.logical_or,
    "maximum": np.logical_or,
    "multiply": np.logical_and,
    "and": np.logical_and,
    "minimum": np.logical_and,
    "xor": np.logical_xor,
    "not": np.logical_not,
}


# Real and complex numbers


def _sign(a: Array) -> Array:
    return np.where(np.isnan(a), a, np.sign(a))


def _round_away(a: Array) -> Array:
    whole = np.trunc(a)
    return np.where(np.abs(a - whole) >= 0.5, whole + np.sign(a), whole)


def _logistic(a: Array) -> Array:
    small = np.exp(-np.abs(a))
    return np.asarray(np.where(a >= 0, 1, small) / (1 + small))


_BOTH: dict[str, Function] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "negate": np.negative,
    "divide": np.divide,
    "power": np.power,
    "abs": np.abs,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "sine": np.sin,
    "cosine": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "square": np.square,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cosh": np.cosh,
    "sinh": np.sinh,
}
"""What numpy means of real numbers and of complex ones."""

REAL: dict[str, Function] = {
    **_BOTH,
    "remainder": np.fmod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "sign": _sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "round_nearest_afz": _round_away,
    "round_nearest_even": np.rint,
    "logistic": _logistic,
    "cbrt": np.cbrt,
    "atan2": np.arctan2,
    "is_finite": np.isfinite,
    **special.FUNCTIONS,
}

COMPLEX: dict[str, Function] = {
    **_BOTH,
    "sign": lambda a: np.where(a == 0, 0, a / np.where(a == 0, 1, np.abs(a))),
    "logistic": lambda a: 1 / (1 + np.exp(-a)),
    "cbrt": lambda a: np.power(a, 1 / 3),
}


# Functions that look at their attributes or at several types

COMPARISONS: dict[str, Function] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _compare(op: Op, dtypes: list[str], args: list[Array], real: Any) -> Array:
    if op.attributes.get("compare_type") == "TOTALORDER" and is_float(dtypes[0]):
        args = [_total_order(a) for a in args]
    return COMPARISONS[op.attributes["comparison_direction"]](*args)


def _total_order(a: Array) -> Array:
    """Integers in the order of floats: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""
    size = a.dtype.itemsize
    plain = np.ascontiguousarray(a).view(f"i{size}")
    return np.where(plain < 0, plain ^ plain.dtype.type(bounds(f"i{8 * size}")[1]), plain)


def _select(op: Op, dtypes: list[str], args: list[Array], real: Any) -> Array:
    return np.where(*args)


def _clamp(op: Op, dtypes: list[str], args: list[Array], real: Any) -> Array:
    low, x, high = args
    return np.minimum(np.maximum(x, low), high)


def _convert(op: Op, dtypes: list[str], args: list[Array], real: Any) -> Array:
    return converted(args[0], dtypes[0], op.types[0].dtype, real)


def _reduce_precision(op: Op, dtypes: list[str], args: list[Array], real: Any) -> Array:
    """Real arithmetic has no precision to reduce: the identity, as conversions between floats are."""
    return args[0]


def _part(which: str) -> Callable[..., Array]:
    def part(op: Op, dtypes: list[str], args: list[Array], real: Any) -> Array:
        (a,) = args
        if is_complex(dtypes[0]):
            return np.ascontiguousarray(a.real if which == "real" else a.imag)
        return a if which == "real" else np.zeros_like(a)

    return part


def _complex(op: Op, dtypes: list[str], args: list[Array], real: Any) -> Array:
    a, b = args
    result = np.empty(np.broadcast_shapes(a.shape, b.shape), np.complex64 if real == np.float32 else np.complex128)
    result.real, result.imag = a, b
    return result


def _next_after(op: Op, dtypes: list[str], args: list[Array], real: Any) -> Array:
    raise UnknownError("next_after of real numbers")


def _bits(op: Op, dtypes: list[str], args: list[Array], real: Any) -> Array:
    """bitcast_convert between types of one width."""
    old, new = dtypes[0], op.types[0].dtype
    if old == new:
        return args[0]
    if is_integer(old) and is_integer(new):
        return wrapped(args[0], new, real)
    return of_bits(to_bits(args[0], old), new, real)


FORMATS = {"bf16": DTYPES["bf16"], "f16": np.float16, "f32": np.float32, "f64": np.float64}


def to_bits(values: Array, dtype: str) -> Array:
    """The bits of elements as unsigned integers. Raises `UnknownError` for numbers that are none of the type."""
    if is_integer(dtype):
        return unsigned(dtype, np.ascontiguousarray(values))
    if dtype not in FORMATS:
        raise UnknownError(f"the bits of {dtype}")
    plain = values.astype(FORMATS[dtype])
    if not np.array_equal(plain.astype(values.dtype), values, equal_nan=True):
        raise UnknownError(f"the bits of real numbers that are no {dtype}")
    return plain.view(f"u{plain.dtype.itemsize}")


def of_bits(bits: Array, dtype: str, real: Any) -> Array:
    """Elements with those bits."""
    if is_integer(dtype):
        return wrapped(bits, dtype, real)
    if dtype not in FORMATS:
        raise UnknownError(f"the bits of {dtype}")
    with np.errstate(invalid="ignore"):  # of bits that are no number
        found: Array = bits.astype(f"u{width(dtype) // 8}").view(FORMATS[dtype]).astype(real)
        return found


TYPED: dict[str, Callable[[Op, list[str], list[Array], Any], Array]] = {
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

NAMES = frozenset({*INTEGER, *TRUTH, *REAL, *COMPLEX, *TYPED})
"""Elementwise operations, without the dialect's prefix."""
