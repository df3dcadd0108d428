"""Elementwise functions of integers, which wrap at their width."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.numbers import bounds, width, wrapped

Function = Callable[..., Array]
"""Of the type and the operands."""


def _divide(dtype: str, a: Array, b: Array) -> Array:
    safe = np.where(b == 0, b.dtype.type(1), b)
    if dtype[0] == "u":
        return np.where(b == 0, b.dtype.type(bounds(dtype)[1]), a // safe)
    quotient = a // safe
    quotient = quotient + ((a - quotient * safe != 0) & ((a < 0) != (safe < 0)))
    return np.asarray(np.where(b == 0, b.dtype.type(-1), quotient))


def _remainder(dtype: str, a: Array, b: Array) -> Array:
    safe = np.where(b == 0, b.dtype.type(1), b)
    return np.where(b == 0, a, np.fmod(a, safe))


def _power(dtype: str, a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    result, base, left = np.ones_like(a), a.copy(), np.where(b < 0, b.dtype.type(0), b)
    while left.any():
        result = np.where(left & 1, result * base, result)
        base, left = base * base, left >> 1
    if dtype[0] == "u":
        return result
    one = a.dtype.type(1)
    negative = np.where(a == 1, one, np.where(a == -1, np.where(b % 2, -one, one), np.where(a == 0, -one, one * 0)))
    return np.where(b < 0, negative, result)


def unsigned(dtype: str, a: Array) -> Array:
    plain = a.view(f"u{a.dtype.itemsize}") if a.dtype.kind == "i" else a
    return np.asarray(plain & plain.dtype.type((1 << width(dtype)) - 1))


def _shift(direction: str) -> Function:
    def shift(dtype: str, a: Array, b: Array) -> Array:
        bits = width(dtype)
        a, b = np.broadcast_arrays(a, b)
        outside = (b < 0) | (b >= bits)
        by = np.where(outside, b.dtype.type(0), b)
        zero = a.dtype.type(0)
        if direction == "left":
            return np.where(outside, zero, np.left_shift(a, by))
        if direction == "logical":
            plain = unsigned(dtype, np.ascontiguousarray(a))
            shifted = np.right_shift(plain, by.astype(plain.dtype)).astype(a.dtype)
            return np.asarray(np.where(outside, zero, shifted))
        signed = a if dtype[0] != "u" else wrapped(a, f"i{bits}", np.dtype(np.float64))
        by = np.where(outside, b.dtype.type(bits - 1), b).astype(signed.dtype)
        return np.asarray(np.right_shift(signed, by).astype(a.dtype))

    return shift


def _high_half(dtype: str, a: Array, b: Array) -> Array:
    """The upper half of the product, which has twice as many bits."""
    product = a.astype(object) * b.astype(object)  # Python's integers, which do not wrap
    return np.asarray(product >> width(dtype)).astype(a.dtype)


def _leading_zeros(dtype: str, a: Array) -> Array:
    plain, bits = unsigned(dtype, a), width(dtype)
    count = np.full(a.shape, bits)
    for k in range(bits):
        count = np.where((plain >> plain.dtype.type(k)) & plain.dtype.type(1), bits - 1 - k, count)
    return count


def _ones(dtype: str, a: Array) -> Array:
    plain = unsigned(dtype, a)
    return np.asarray(
        sum(((plain >> plain.dtype.type(k)) & plain.dtype.type(1)).astype(int) for k in range(width(dtype)))
    )


INTEGER: dict[str, Function] = {
    "add": lambda dtype, a, b: a + b,
    "subtract": lambda dtype, a, b: a - b,
    "multiply": lambda dtype, a, b: a * b,
    "mulhi": _high_half,
    "negate": lambda dtype, a: np.negative(a),
    "divide": _divide,
    "remainder": _remainder,
    "power": _power,
    "maximum": lambda dtype, a, b: np.maximum(a, b),
    "minimum": lambda dtype, a, b: np.minimum(a, b),
    "abs": lambda dtype, a: np.abs(a),
    "sign": lambda dtype, a: np.sign(a),
    "and": lambda dtype, a, b: a & b,
    "or": lambda dtype, a, b: a | b,
    "xor": lambda dtype, a, b: a ^ b,
    "not": lambda dtype, a: ~a,
    "square": lambda dtype, a: a * a,
    "shift_left": _shift("left"),
    "shift_right_logical": _shift("logical"),
    "shift_right_arithmetic": _shift("arithmetic"),
    "count_leading_zeros": _leading_zeros,
    "popcnt": _ones,
}
