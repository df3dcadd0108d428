"""How many digits numbers have, and how many of one size can be added up before the sum stands still."""

from __future__ import annotations

from hlo_verify.hlo.module import Instruction
from hlo_verify.hlo.shapes import Array, Shape, leaves

DIGITS = {
    "f64": 53,
    "f32": 24,
    "f16": 11,
    "bf16": 8,
    "f8e3m4": 5,
    "f8e4m3": 4,
    "f8e4m3fn": 4,
    "f8e4m3fnuz": 4,
    "f8e4m3b11fnuz": 4,
    "f8e5m2": 3,
    "f8e5m2fnuz": 3,
    "f4e2m1fn": 2,
}
"""Binary digits of a significand, with the one that is not written down."""

FULL = DIGITS["f32"]
"""Digits from which on nothing is said: a sum in f32 stands still at 16 million."""

QUANTIZED = frozenset(("s8", "s4", *(dtype for dtype in DIGITS if dtype.startswith(("f8", "f4")))))
"""Types that numbers are stored in beside a scale."""


def digits_of(shape: Shape) -> int:
    """Of floats, the digits; of what is no float, as many as f64 has: nothing is lost there."""
    return DIGITS.get(shape.dtype, DIGITS["f64"]) if isinstance(shape, Array) else DIGITS["f64"]


def fewest(instruction: Instruction) -> int:
    """The digits of what an instruction gives: of several arrays, of the one with the fewest."""
    return min((digits_of(array) for _, array in leaves(instruction.shape)), default=DIGITS["f64"])


def stands_still(terms: int, digits: int) -> bool:
    """Whether a sum of so many equal terms, one after another, stands still before its end: at `2^digits` times the
    term, half the distance to the next number is more than the term.

    >>> stands_still(256, 8), stands_still(257, 8)
    (False, True)
    """
    return digits < FULL and terms > 1 << digits
