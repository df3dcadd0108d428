"""What elementwise operations compute, by numpy alone. Written apart from hlo_verify, which it judges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tools.fuzz.programs.program import COMPLEX, Kind, Node

Array = npt.NDArray[Any]

DTYPES = {
    f"{sign}i{bits}": np.dtype(f"{'u' if sign else ''}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
}
REAL_NUMBERS = np.dtype(np.longdouble)
DTYPES |= {"i1": np.dtype(bool)} | dict.fromkeys(["f32", "f64", "f16", "bf16"], REAL_NUMBERS)
DTYPES |= {COMPLEX: np.dtype(np.clongdouble)}
"""Floats have 64 bits of mantissa, whatever they are in the program: the verifier speaks of real numbers."""

HUGE = 1e150
"""Beyond it a product may overflow, which real numbers do not."""
DEEP = 300.0
"""Exponentials of more may overflow, or vanish."""
NEAR = 1e-9
"""Numbers so near to each other, relative to their size, may be equal but for rounding: their order says nothing."""


class Meaningless(Exception):
    """The program does something that has no meaning for any input."""


def apply(node: Node, kinds: list[Kind], result: Kind, args: list[Array]) -> tuple[Array, Array | None]:
    """The result, and where (if anywhere) what the operation does is not defined for such operands."""
    special = SPECIAL.get(node.op)
    if special is not None:
        return special(node, kinds, result, args)
    kind = kinds[0]
    table = TRUTH if kind.dtype == "i1" else INTEGER if kind.is_integer else REAL
    found = np.asarray(table[node.op](*args)).astype(DTYPES[result.dtype], copy=False)
    if kind.is_float:
        bad = np.isfinite(found) & (np.abs(found) > HUGE)
        return found, bad | near(*args, np.rint(args[0] * 2) / 2) if node.op in STEPS else bad
    return found, None


def combine(name: str, a: Array, axis: int) -> Array:
    """Elements along an axis together, by a reducer. Integers wrap."""
    if a.dtype == bool:
        table: dict[str, Any] = {"add": np.any, "maximum": np.any, "or": np.any, "xor": np.logical_xor.reduce}
        return np.asarray(table.get(name, np.all)(a, axis=axis))
    functions = {
        "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    }  # fmt: skip
    return np.asarray(functions[name].reduce(a, axis=axis, dtype=a.dtype))


def near(a: Array, b: Array) -> Array:
    """Where numbers are almost equal, but not quite."""
    return (a != b) & (np.abs(a - b) <= NEAR * np.maximum(1, np.abs(a)))


STEPS = frozenset(["floor", "ceil", "sign", "round_nearest_afz", "round_nearest_even"])
"""Functions of real numbers that jump at halves, or at some of them."""


def _round_away(a: Array) -> Array:
    return np.sign(a) * np.floor(np.abs(a) + 0.5)


def _high_half(a: Array, b: Array) -> Array:
    """The upper half of a product of integers without an end."""
    product: Array = np.multiply(a, b, dtype=object)
    return np.floor_divide(product, 2 ** (8 * a.dtype.itemsize)).astype(a.dtype)


_SAME: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "negate": np.negative,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "abs": np.abs,
    "sign": np.sign,
}

INTEGER: dict[str, Callable[..., Any]] = {
    **_SAME,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "mulhi": _high_half,
    "popcnt": lambda a: _bits(a).sum(-1),
    "count_leading_zeros": lambda a: np.where(_bits(a).any(-1), _bits(a).argmax(-1), _bits(a).shape[-1]),
}

TRUTH: dict[str, Callable[..., Any]] = {
    "add": np.logical_or,
    "or": np.logical_or,
    "maximum": np.logical_or,
    "multiply": np.logical_and,
    "and": np.logical_and,
    "minimum": np.logical_and,
    "xor": np.logical_xor,
    "not": np.logical_not,
}


def _complex(a: Array, b: Array) -> Array:
    """Of its parts as they are: `a + 1j*b` has none left where b is no number."""
    found = np.empty(np.broadcast_shapes(a.shape, b.shape), DTYPES[COMPLEX])
    found.real, found.imag = a, b
    return found


REAL: dict[str, Callable[..., Any]] = {
    **_SAME,
    "divide": np.divide,
    "remainder": np.fmod,
    "tanh": np.tanh,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "logistic": lambda a: 1 / (1 + np.exp(-a)),
    "sine": np.sin,
    "exponential_minus_one": np.expm1,
    "log_plus_one": np.log1p,
    "cbrt": np.cbrt,
    "atan2": lambda y, x: np.arctan2(y + 0.0, x + 0.0),  # of real numbers: 0 has no sign
    "cosine": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "round_nearest_afz": _round_away,
    "round_nearest_even": np.rint,
    "is_finite": np.isfinite,
    "complex": _complex,
    "real": np.real,
    "imag": np.imag,
}


def _bits(a: Array) -> Array:
    """The bits of integers, highest first, along a new last dimension."""
    width = a.dtype.itemsize * 8
    plain = a.view(f"u{a.dtype.itemsize}")[..., None]
    return (plain >> np.arange(width - 1, -1, -1).astype(plain.dtype)) & 1


def _exponential(node: Node, kinds: list[Kind], result: Kind, args: list[Array]) -> tuple[Array, Array | None]:
    (a,) = args
    return np.exp(a), np.isfinite(a) & (np.abs(a) > DEEP)


def _divide(node: Node, kinds: list[Kind], result: Kind, args: list[Array]) -> tuple[Array, Array | None]:
    """Towards zero. By zero, and the least number by -1, anything may come out."""
    if kinds[0].is_float:
        found = REAL[node.op](*args)
        return found, np.isfinite(found) & (np.abs(found) > HUGE)
    a, b = args
    bad = b == 0
    if a.dtype.kind == "i":
        bad |= (b == -1) & (a == np.iinfo(a.dtype).min)
    safe = np.where(bad, 1, b).astype(a.dtype)
    low = a // safe
    rest = a - low * safe
    quotient = low + ((rest != 0) & ((a < 0) != (safe < 0))).astype(a.dtype)
    return (quotient if node.op == "divide" else a - quotient * safe).astype(a.dtype), bad


def _shift(node: Node, kinds: list[Kind], result: Kind, args: list[Array]) -> tuple[Array, Array | None]:
    a, by = args
    width = a.dtype.itemsize * 8
    bad = (by < 0) | (by >= width)
    by = np.where(bad, 0, by).astype(a.dtype)
    if node.op == "shift_left":
        return np.left_shift(a, by), bad
    view = ("u" if node.op == "shift_right_logical" else "i") + str(a.dtype.itemsize)
    return np.right_shift(a.view(view), by.view(view)).view(a.dtype), bad


def _compare(node: Node, kinds: list[Kind], result: Kind, args: list[Array]) -> tuple[Array, Array | None]:
    names = {"EQ": "equal", "NE": "not_equal", "LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal"}
    return getattr(np, names[node.attributes["direction"]])(*args), near(*args) if kinds[0].is_float else None


def _select(node: Node, kinds: list[Kind], result: Kind, args: list[Array]) -> tuple[Array, Array | None]:
    predicate, a, b = args
    rank = a.ndim - predicate.ndim
    return np.where(predicate.reshape(predicate.shape + (1,) * rank), a, b), None


def _clamp(node: Node, kinds: list[Kind], result: Kind, args: list[Array]) -> tuple[Array, Array | None]:
    low, a, high = (each.reshape(each.shape + (1,) * (args[1].ndim - each.ndim)) for each in args)
    return np.minimum(np.maximum(a, low), high), None


def _convert(node: Node, kinds: list[Kind], result: Kind, args: list[Array]) -> tuple[Array, Array | None]:
    (a,) = args
    if result.dtype == "i1":
        return a != 0, None
    if not (kinds[0].is_float and result.is_integer):
        return a.astype(DTYPES[result.dtype]), None
    limits = np.iinfo(DTYPES[result.dtype])
    whole = np.trunc(a)
    bad = near(a, np.rint(a)) | ~(
        (whole >= float(limits.min)) & (whole < float(limits.max) + (1 if result.bits < 64 else 0))
    )
    return np.where(bad, 0, whole).astype(DTYPES[result.dtype]), bad


def _bitcast(node: Node, kinds: list[Kind], result: Kind, args: list[Array]) -> tuple[Array, Array | None]:
    return args[0].view(DTYPES[result.dtype]), None


SPECIAL = {
    "exponential": _exponential,
    "divide": _divide,
    "remainder": _divide,
    "shift_left": _shift,
    "shift_right_logical": _shift,
    "shift_right_arithmetic": _shift,
    "compare": _compare,
    "select": _select,
    "clamp": _clamp,
    "convert": _convert,
    "bitcast_convert": _bitcast,
}

NAMES = frozenset(INTEGER) | frozenset(TRUTH) | frozenset(REAL) | frozenset(SPECIAL)
