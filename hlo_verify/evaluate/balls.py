"""Elements as rigorous enclosures: what a floating-point element holds where `Run.real` is `BALLS`.

A real number is a ball of Arb (FLINT): midpoint and radius, which holds the exact value. Infinities are exact. What is
surely no number is `NAN`; what could not be enclosed is `UNKNOWN`, a ball that may stand for anything. An integer or a
truth value is itself, or `UNDEFINED`, where a comparison of balls that overlap decides it, or where its value is
nowhere defined (an integer divided by zero). Arrays of integers hold objects only where some element is undefined.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from flint import acb, arb, arb_mat, ctx

from hlo_verify.evaluate.maps import Array, unique_rows
from hlo_verify.evaluate.unknown import UnknownError

BALLS = np.dtype(object)
"""The type of arrays of floating-point elements that are enclosures."""

INFINITY, MINUS_INFINITY = arb("inf"), arb("-inf")
UNKNOWN = arb("nan")
ZERO, ONE, HALF = arb(0), arb(1), arb(0.5)


_one_thread = threading.RLock()


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Arithmetic on balls with so many bits: a setting of the whole process, so that one thread at a time is inside."""
    with _one_thread:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


class Special:
    """A number that is none (`NAN`), or an infinity of unknown sign (`INFINITE`): 1/0, as zero has no sign here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def is_finite(self) -> bool:
        return False

    def is_exact(self) -> bool:
        return True

    def __float__(self) -> float:
        return float("nan") if self is NAN else float("inf")

    def __neg__(self) -> Special:
        return self

    def _with(self, other: Any) -> Any:
        """With a number in a sum, a product or a quotient: a sure NaN stays one, all else is not known."""
        return self if self is NAN and not is_unknown(other) else UNKNOWN

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _with
    __pow__ = __rpow__ = _with


NAN, INFINITE = Special("nan"), Special("infinite")


class Undefined:
    """An integer or a truth value that is not known. Arithmetic with it gives it again, and it decides nothing."""

    def __repr__(self) -> str:
        return "undefined"

    def __bool__(self) -> bool:
        raise UnknownError("a decision that rests on a value which is not known or not defined")

    def __int__(self) -> int:
        raise UnknownError("an index that is not known or not defined")

    __index__ = __int__

    def _with(self, other: Any) -> Any:
        return self

    def __and__(self, other: Any) -> Any:
        return False if other is False else self

    def __or__(self, other: Any) -> Any:
        return True if other is True else self

    def __invert__(self) -> Any:
        return self

    __neg__ = __invert__
    __rand__, __ror__ = __and__, __or__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __xor__ = __rxor__ = _with


UNDEFINED = Undefined()


def is_unknown(x: Any) -> bool:
    """Whether nothing is known of a floating-point element."""
    return isinstance(x, arb | acb) and not x.is_finite() and not _is_infinite(x)


def _is_infinite(x: Any) -> bool:
    return isinstance(x, arb) and x.is_exact() and not x.is_nan()


def is_special(x: Any) -> bool:
    """Whether an element is surely infinite, or no number."""
    return isinstance(x, Special) or (_is_infinite(x) and not x.is_finite())


def is_real(x: Any) -> bool:
    """Whether an element is floating point, and no integer or truth value."""
    return isinstance(x, arb | acb | Special)


def _exact(x: Any) -> Any:
    if isinstance(x, complex):
        return acb(x.real, x.imag)
    return NAN if x != x else arb(x)


EXACT = np.frompyfunc(_exact, 1, 1)


def _array(values: Any) -> Array:
    return np.asarray(values, object)


def exact(values: Any) -> Array:
    """Floats, integers, truth values or complex numbers as balls of radius 0; undefined ones as unknown balls."""
    values = np.asarray(values)
    if values.dtype != object:
        if values.dtype.kind in "biu":
            return _array(EXACT(values.astype(object) if values.dtype != bool else values.astype(int)))
        plain, which = np.unique(values.astype(complex if values.dtype.kind == "c" else float), return_inverse=True)
        with np.errstate(all="ignore"):
            return np.asarray(_array(EXACT(plain))[which.reshape(values.shape)], object)
    return _array(np.frompyfunc(lambda x: x if is_real(x) else UNKNOWN if x is UNDEFINED else arb(x), 1, 1)(values))


def around(values: Array, radius: Array) -> Array:
    """The balls of those midpoints and radii; of complex numbers, the radii of both parts."""
    return np.where(radius == 0, exact(values), np.asarray(_AROUND(values, radius), object))


def _around(x: Any, off: Any) -> Any:
    if isinstance(off, complex):
        return acb(arb(x.real, off.real), arb(x.imag, off.imag))
    return arb(float(x), off)


_AROUND = np.frompyfunc(_around, 2, 1)


def rounded(values: Array) -> Array:
    """Balls as the nearest floats; NaN for what is none or not known."""
    found = np.asarray(np.frompyfunc(number, 1, 1)(values), object)
    return found.astype(complex if any(isinstance(x, complex) for x in found.reshape(-1)) else float)


def number(x: Any) -> Any:
    """An element as a number of Python's."""
    if isinstance(x, acb):
        return complex(float(x.real), float(x.imag))
    return float(x) if isinstance(x, arb | Special) else x


def radius(values: Array) -> float:
    """The largest radius of balls; infinite where something is not known, 0 of what is exact."""
    if values.dtype != object:
        return 0.0
    return max(map(_radius, values.reshape(-1)), default=0.0)


def _radius(x: Any) -> float:
    if isinstance(x, acb):
        return max(_radius(x.real), _radius(x.imag))
    if isinstance(x, arb):
        return float(x.rad()) if x.is_finite() else math.inf if is_unknown(x) else 0.0
    return math.inf if x is UNDEFINED else 0.0


def settled(values: Any, dtype: Any) -> Array:
    """Integers or truth values in their own type, unless some are undefined."""
    held: Array = np.asarray(values)
    if held.dtype != object or missing(held).any():
        return held
    return np.asarray(held.astype(dtype))


def missing(values: Array) -> Array:
    """Which integers or truth values are undefined."""
    if values.dtype != object:
        return np.zeros((1,) * values.ndim, np.bool_)
    return np.asarray(np.frompyfunc(lambda x: x is UNDEFINED, 1, 1)(values)).astype(np.bool_)


def without(values: Array, gap: Array) -> Array:
    """The values, with nothing known of those where there is a gap."""
    if not gap.any():
        return values
    shape = np.broadcast_shapes(values.shape, gap.shape)
    result = np.broadcast_to(values, shape).astype(object)
    result[np.broadcast_to(gap, shape)] = UNKNOWN if is_real(result.reshape(-1)[0]) else UNDEFINED
    return result


def same(a: Any, b: Any) -> bool:
    """Whether two elements are surely equal: one and the same object, or the same exact number."""
    if a is b:
        return not is_unknown(a)
    if isinstance(a, acb) and isinstance(b, acb):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, arb) and isinstance(b, arb):
        return bool(a == b)
    return type(a) is type(b) and not isinstance(a, Special | Undefined) and bool(a == b)


def are_same(a: Array, b: Array) -> Array:
    """Element by element, which are surely equal."""
    found: Array = np.asarray(np.frompyfunc(same, 2, 1)(a, b)).astype(np.bool_)
    return found


def identities(values: Array) -> Array:
    """A number for each element, the same for one object; of native integers and truth values, these themselves.

    Elements that are computed in one way from the same objects are made one object (`shared`), and so are known to be
    equal though they are not known exactly. What an undecided choice gives is an object of its own each time.
    """
    if values.dtype != object:
        return values.astype(np.int64)
    plain = np.ascontiguousarray(values)
    pointers = (ctypes.c_int64 * plain.size).from_address(plain.ctypes.data)
    return np.frombuffer(bytes(pointers), np.int64).reshape(plain.shape)


def shared(values: Array, keys: Array) -> Array:
    """The values, where those with one key are one object."""
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) == values.size:
        return values
    return values.reshape(-1)[first][which.reshape(-1)].reshape(values.shape)


MANY = 1 << 12
"""So many products of balls are left to FLINT's own product of matrices."""


def matrix_product(x: Array, y: Array) -> Array:
    """Products of stacks of matrices of balls; those of equal rows and columns are one object."""
    rows, columns = _numbers(identities(x)), _numbers(identities(np.swapaxes(y, 1, 2)))
    keys = rows[:, :, None] * (int(columns.max(initial=0)) + 1) + columns[:, None, :]
    return shared(_matrix_product(x, y), keys)


def _numbers(identities: Array) -> Array:
    """A number for each row of a stack of matrices, the same for equal rows."""
    return unique_rows(identities.reshape(-1, identities.shape[-1]))[1].reshape(identities.shape[:-1])


def _matrix_product(x: Array, y: Array) -> Array:
    if x.size * y.shape[-1] < MANY or not (_are_finite(x) and _are_finite(y)):
        return np.asarray(np.matmul(x, y))
    result = np.empty((len(x), x.shape[1], y.shape[2]), object)
    matrix: Any = arb_mat
    for n, (a, b) in enumerate(zip(x, y, strict=True)):
        product = matrix(*a.shape, a.reshape(-1).tolist()) * matrix(*b.shape, b.reshape(-1).tolist())
        result[n].reshape(-1)[:] = product.entries()
    return result


def _are_finite(values: Array) -> bool:
    """Whether all elements are real numbers of a moderate size."""
    try:
        return bool(np.isfinite(values.astype(np.float64)).all())
    except TypeError:  # complex numbers
        return False


def zeros(shape: Any, dtype: Any) -> Array:
    """Zeros of a type; of balls, exact ones."""
    result = np.zeros(shape, dtype)
    if dtype == BALLS:
        result.fill(ZERO)
    return result


def is_zero(values: Array) -> bool:
    """Whether all elements are exactly zero."""
    if values.dtype != object:
        return not values.any()
    return all(isinstance(x, arb) and x.is_zero() for x in values.reshape(-1))


def certain_order(key: Array) -> Array:
    """The stable order, ascending, of balls along the first axis. Raises `UnknownError` where they overlap."""
    order = np.argsort(rounded(key), axis=0, kind="stable")
    inorder = np.take_along_axis(key, order, axis=0)
    pairs = zip(inorder[:-1].reshape(-1), inorder[1:].reshape(-1), strict=True)
    for a, b in pairs:
        if isinstance(a, Special) or isinstance(b, Special) or not (a < b or (same(a, b) and a.is_exact())):
            raise UnknownError("an order of numbers that may be equal")
    return order
