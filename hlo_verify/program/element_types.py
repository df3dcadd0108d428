"""StableHLO's element types: their spelling, their values, and what numpy and JAX call them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

DTYPES: Mapping[str, Any] = {
    "i1": np.bool_,
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
    "bf16": ml_dtypes.bfloat16,
    "i2": ml_dtypes.int2,
    "i4": ml_dtypes.int4,
    "ui2": ml_dtypes.uint2,
    "ui4": ml_dtypes.uint4,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
}
"""StableHLO's element types, by their spelling."""

INTEGER_RANGES = {
    "i1": (0, 1),
    **{f"i{n}": (-(1 << n - 1), (1 << n - 1) - 1) for n in (2, 4, 8, 16, 32, 64)},
    **{f"ui{n}": (0, (1 << n) - 1) for n in (2, 4, 8, 16, 32, 64)},
}
"""Least and greatest value of every integer element type."""

JAX_NAMES = {"i1": "bool", "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16"}
JAX_NAMES |= {f"{u}i{n}": f"{'u' if u else ''}int{n}" for u in ("", "u") for n in (4, 8, 16, 32, 64)}
JAX_NAMES |= {"complex<f32>": "complex64", "complex<f64>": "complex128"}
"""What JAX calls the element types of MLIR."""

ARITHMETIC = re.compile(r"i1|(u?i|f|bf)\d\w*|complex<f\d+>")
"""Element types with StableHLO's plain arithmetic (quantized types have another)."""


def finfo(dtype: str) -> Any:
    """The limits of a floating-point format, as numpy says them."""
    return ml_dtypes.finfo(DTYPES[dtype])  # type: ignore[no-untyped-call]


def element_of(dtype: str, bits: bytes) -> Any:
    """The element of a type that has these bits."""
    return np.frombuffer(bits, DTYPES[dtype])[0]


def exponent_bits(dtype: str) -> int:
    """How many bits of a floating-point format are of the exponent."""
    return int(finfo(dtype).nexp)


def mantissa_bits(dtype: str) -> int:
    """How many bits of a floating-point format are stored of the mantissa."""
    finfo: Any = ml_dtypes.finfo
    return int(finfo(DTYPES[dtype]).nmant)


SPARED = 6
"""One of so many digits of a type is not relied on (`sure_digits`)."""


def sure_digits(dtype: str) -> int:
    """How many binary digits of a floating-point number are right after some operations that round: a sixth less than
    its format has, and one at least."""
    digits = mantissa_bits(dtype) + 1
    return digits - max(digits // SPARED, 1)


def is_float(dtype: str) -> bool:
    """Whether a type is a real floating-point type."""
    return dtype.startswith(("f", "bf"))


def is_inexact(dtype: str) -> bool:
    """Whether a type is a floating-point type, real or complex."""
    return is_float(dtype) or dtype.startswith("complex")


def integer_bits(dtype: str) -> int:
    """How many bits an integer, or a truth value, has."""
    lo, hi = INTEGER_RANGES[dtype]
    return (hi - lo).bit_length()


def is_integer(dtype: str) -> bool:
    """Whether a type is an integer type other than booleans."""
    return dtype in INTEGER_RANGES and dtype != "i1"


COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "GT": operator.gt,
    "GE": operator.ge,
    "LT": operator.lt,
    "LE": operator.le,
}
"""What the directions of a comparison say of two numbers."""


def compare_types(dtype: str) -> frozenset[str]:
    """What a comparison of a type may say that it is: nothing, or an order that the type has."""
    if is_integer(dtype):
        own = {"UNSIGNED"} if dtype.startswith("ui") else {"SIGNED"}
    else:
        own = {"UNSIGNED"} if dtype == "i1" else {"FLOAT", "TOTALORDER"} if is_float(dtype) else {"FLOAT"}
    return frozenset({"NOTYPE", *own})
