"""Operations on single numbers of which floats have the result as it is: `60 * 2**-23` rounds nothing.

IEEE arithmetic gives a sum or a product exactly where that is a number of the type, so every compiler and machine has
the same there, folded or not. What lies below the least normal number is left out: machines may flush it. A quotient is
exact by powers of two alone, as compilers multiply by the inverse: XLA has `41 * (1/41)` for `41 / 41`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from hlo_verify.program.element_types import DTYPES, finfo, is_float
from hlo_verify.program.ir import Name, Op

_OPERATIONS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.mul,
}


def exactly(op: Op, number: Callable[[Name], Any]) -> Any:
    """The one number that an operation gives of single numbers (`number` gives None of an operand that is none), in its
    type; None where it is 0, none of the type's normal numbers, or not known."""
    dtype = op.types[0].dtype if op.types else ""
    if op.name not in _OPERATIONS or not is_float(dtype) or dtype not in DTYPES:
        return None
    numbers = [number(value) for value in op.operands]
    if any(n is None for n in numbers):
        return None
    a, b = (Fraction(float(n)) if np.isfinite(float(n)) else Fraction(0) for n in numbers)
    if not _is_normal(a, dtype) or not _is_normal(b, dtype):
        return None
    if op.name == "divide":
        b = 1 / b
    result = _OPERATIONS[op.name](a, b)
    if not _is_normal(b, dtype) or not _is_normal(result, dtype):
        return None
    return np.dtype(DTYPES[dtype]).type(float(result))


def _is_normal(k: Fraction, dtype: str) -> bool:
    """Whether a number is one of the type's normal ones."""
    limits = finfo(dtype)
    if not float(limits.smallest_normal) <= abs(k) <= float(limits.max):
        return False
    return Fraction(float(np.dtype(DTYPES[dtype]).type(float(k)))) == k
