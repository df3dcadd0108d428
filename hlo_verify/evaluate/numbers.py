"""How elements are held: integers at their width, floats of every format as one real type."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from hlo_verify.evaluate import balls, intervals
from hlo_verify.evaluate.balls import BALLS, UNDEFINED, settled
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.unknown import UnknownError


def is_integer(dtype: str) -> bool:
    """Whether a type is an integer's; truth values are not."""
    return dtype != "i1" and re.fullmatch(r"u?i\d+", dtype) is not None


def is_complex(dtype: str) -> bool:
    return dtype.startswith("complex")


def is_float(dtype: str) -> bool:
    return re.fullmatch(r"b?f\d+.*", dtype) is not None


def width(dtype: str) -> int:
    """The number of bits of an element."""
    if is_complex(dtype):
        return 2 * width(dtype[8:-1])
    digits = re.match(r"[a-z]*(\d+)", dtype)
    if digits is None:
        raise UnknownError(f"the bits of {dtype}")
    return int(digits[1])


def bounds(dtype: str) -> tuple[int, int]:
    """The least and greatest value of an integer type."""
    bits = width(dtype)
    return (0, (1 << bits) - 1) if dtype.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)


def storage(dtype: str, real: np.dtype) -> np.dtype:
    """The numpy type that holds elements of a type."""
    if dtype in ("i1", "token") or dtype.startswith("!"):
        return np.dtype(np.bool_)
    if is_integer(dtype):
        return np.dtype(f"{'uint' if dtype[0] == 'u' else 'int'}{max(8, width(dtype))}")
    if real == BALLS and (is_complex(dtype) or is_float(dtype)):
        return BALLS
    if real == INTERVALS and is_complex(dtype):
        raise UnknownError("complex numbers, for which there are no intervals")
    if is_complex(dtype):
        return np.dtype(np.complex64 if real == np.float32 else np.complex128)
    if is_float(dtype):
        return real
    raise UnknownError(f"elements of type {dtype}")


def held(values: Array, dtype: str, real: np.dtype) -> Array:
    """Values as elements of a type are held. Raises `UnknownError` where undefined integers would be numbers."""
    stored = storage(dtype, real)
    if stored in (BALLS, INTERVALS) and values.dtype != stored:
        return exact(values, stored)
    return values.astype(stored, copy=False)


def exact(values: Any, real: Any) -> Array:
    """Numbers as enclosures: balls or intervals."""
    return balls.exact(values) if real == BALLS else intervals.exact(values)


def wrapped(values: Array, dtype: str, real: np.dtype) -> Array:
    """Values as the machine holds them: integers modulo 2^n."""
    stored = storage(dtype, real)
    values = np.asarray(values)
    if stored in (BALLS, INTERVALS):
        return values if values.dtype == stored else exact(values, stored)
    if values.dtype == object:  # some are undefined
        least, count = bounds(dtype)[0] if is_integer(dtype) else 0, 1 << width(dtype)
        each = np.frompyfunc(lambda x: x if x is UNDEFINED else (int(x) - least) % count + least, 1, 1)
        return settled(np.asarray(each(values), object), stored)
    if values.dtype != stored:
        values = values.astype(stored)
    if is_integer(dtype) and width(dtype) < 8:
        bits = width(dtype)
        values = values & stored.type((1 << bits) - 1)
        if dtype[0] != "u":
            values = (values ^ stored.type(1 << bits - 1)) - stored.type(1 << bits - 1)
    return values


def converted(values: Array, old: str, new: str, real: np.dtype) -> Array:
    """The element type changed (StableHLO convert): floats are truncated to integers, and stay inside their range."""
    if is_complex(old) and not is_complex(new):
        values, old = values.real, "f64"
    if new == "i1":
        return np.asarray(values != 0)
    if is_integer(new) and is_float(old):
        lo, hi = bounds(new)
        if np.isnan(values).any():
            values = np.where(np.isnan(values), 0, values)
        whole = np.trunc(values)
        inside = np.clip(whole, float(lo), np.nextafter(float(hi), 0) if hi > 1 << 52 else float(hi))
        plain = inside.astype(storage(new, real))
        if hi > 1 << 52:
            plain = np.where(whole >= float(hi), storage(new, real).type(hi), plain)
        return plain
    return wrapped(values, new, real)
