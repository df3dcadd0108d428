"""Decimals and small fractions in numbers that people wrote: 0.65 is 13/20 and 0.333333343 is 1/3, rounded.

A stencil by `0.65*u` and one by `u - 0.1*u - 0.2*u - 0.05*u`, or a mean that is updated part by part (`1/2`, `1/3`,
`1/4`), agree as people mean their numbers, and not as floats hold them. Each number is read by itself, so that two
numbers of one type are never read as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from hlo_verify.passes.chain.constant_values import Computed, Key, applied, number_of
from hlo_verify.program.element_types import DTYPES, element_of, finfo

DIGITS = 6
"""The digits of a decimal that people write: decimals of so many are different numbers in single precision."""

LARGEST_DIVISOR = 64
"""The largest number that people divide another by, where the quotient has more digits."""


def decimals(numbers: Iterable[Key]) -> dict[Key, Computed]:
    """What some numbers are read as."""
    return {number: read for number in numbers if (read := decimal_number(number)) is not None}


def decimal_number(number: Key) -> Computed | None:
    """A number as the quotient of whole numbers that it is the rounding of; None of what is one exactly, or has too
    many digits."""
    dtype, value = number[0], element_of(*number)
    if np.dtype(DTYPES[dtype]).itemsize < 4 or not np.isfinite(value) or not value:
        return None
    exact = Fraction(float(value))
    for meant in (_decimal(value), exact.limit_denominator(LARGEST_DIVISOR)):
        if max(map(abs, meant.as_integer_ratio())) > float(finfo(dtype).max):
            continue
        above, below = (number_of(dtype, type(value)(x)) for x in meant.as_integer_ratio())
        if above is None or below is None or above.exact != meant.numerator or below.exact != meant.denominator:
            continue
        for found in applied("divide", (above, below)):
            if found.key == number and found.is_rounded:
                return found
    return None


def _decimal(value: np.floating) -> Fraction:
    """The decimal of a few digits that is closest to a number."""
    return Fraction(f"{float(value):.{DIGITS - 1}e}")
