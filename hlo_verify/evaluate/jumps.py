"""Where functions jump, and whether rounding may decide on which side of a jump an evaluation is.

Numbers that are equal in real arithmetic may be computed in two ways, and differ by a rounding: then `x >= y` and
`floor(x)` are whatever the rounding makes of them, and say nothing of what the program computes. Numbers that are
exactly equal, as whole numbers and copies are, are no such case; unless a function that is saturated made them so
(`tanh(100) < 1` is true of real numbers).
"""

from __future__ import annotations

import numpy as np

from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.numbers import is_float, is_integer
from hlo_verify.ir import Op

RELATIVE = 2e-7
"""Numbers that differ by no more than this fraction may be equal: literals of 32 bits are rounded by less."""

ABSOLUTE = 1e-13
"""Numbers that differ by no more may be equal too: what is left of numbers near 1 that should cancel."""

WHOLE = frozenset("floor ceil remainder".split())
"""Functions that jump at whole numbers (a remainder where the quotient is one)."""

HALF = frozenset("round_nearest_afz round_nearest_even".split())
"""Functions that jump halfway between whole numbers."""


def is_unclear(op: Op, name: str, kinds: list[str], args: list[Array]) -> bool:
    """Whether some element of an elementwise operation's result, of that plain name, may be decided by rounding."""
    if not kinds or not is_float(kinds[0]):
        return False
    if name == "compare":
        return nearly_equal(*args)
    if name == "sign":
        return nearly_equal(args[0], np.zeros((), args[0].dtype))
    if name == "convert" and op.types[0].dtype == "i1":
        return nearly_equal(args[0], np.zeros((), args[0].dtype))
    if name in WHOLE or (name == "convert" and is_integer(op.types[0].dtype)):
        x = args[0] / args[1] if name == "remainder" else args[0]
        return nearly_equal(x, np.rint(x))
    if name in HALF:
        return nearly_equal(args[0], np.floor(args[0]) + 0.5)
    return False


SATURATING = frozenset("tanh logistic exponential erf erfc erf_inv atan".split())
"""Functions that have their limits as values in floating point, though no real number takes them there."""


def is_saturated(name: str, args: list[Array], result: Array) -> bool:
    """Whether an operation, of that plain name, has a limit as its value that it does not have in real arithmetic."""
    if name not in SATURATING or result.dtype.kind != "f":
        return False
    at_limit = (result == 0) | (np.abs(result) == 1)
    return bool(np.any(at_limit & np.isfinite(args[0]) & (args[0] != 0)))


def is_tied(name: str, kinds: list[str], args: list[Array]) -> bool:
    """Whether equal numbers are compared, or have their sign taken, that a saturated function may have given."""
    if name not in ("compare", "sign") or not kinds or not is_float(kinds[0]):
        return False
    a, b = args if name == "compare" else (args[0], np.zeros((), args[0].dtype))
    return bool(np.any((a == b) & ((a == 0) | (np.abs(a) == 1))))


def nearly_equal(a: Array, b: Array) -> bool:
    """Whether two elements at one place are equal but for rounding, and not equal."""
    with np.errstate(all="ignore"):
        gap = np.abs(a - b)
        near = gap <= RELATIVE * np.maximum(np.abs(a), np.abs(b)) + ABSOLUTE
    return bool(np.any(near & (gap > 0) & np.isfinite(gap)))


def is_order_unclear(key: Array) -> bool:
    """Whether the order of numbers along the first axis may be decided by rounding."""
    if key.dtype.kind != "f":
        return False
    inorder = np.sort(key, axis=0)
    return nearly_equal(inorder[1:], inorder[:-1])
