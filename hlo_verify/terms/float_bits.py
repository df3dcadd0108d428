"""Integers whose bits are read as a float: which of them are numbers, and of which sign.

    bits in [0x3f800000, 0x3fffffff]       bitcast(bits) in [1, 2)

So random numbers are made: no draw is NaN, and `u >= 0.1` is what `u < 0.1` is not.
"""

from __future__ import annotations

from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms.functions import Function
from hlo_verify.terms.signs import POSITIVE, REAL, ZERO
from hlo_verify.terms.term import Poly

_BITS = {
    "f16": (1 << 10, 0x7C00),
    "bf16": (1 << 7, 0x7F80),
    "f32": (1 << 23, 0x7F800000),
    "f64": (1 << 52, 0x7FF << 52),
}
"""Of a type of floats the bits of the least normal number, and of infinity: those between are positive numbers, in
order."""


def is_number(function: Function, args: tuple[Poly, ...]) -> bool:
    """Whether bits of integers are surely no NaN and no infinity."""
    return _bounds(function, args) is not None


def sign_of(function: Function, args: tuple[Poly, ...]) -> int:
    """The signs that they may have. What is less than the least normal number may be taken for 0."""
    found = _bounds(function, args)
    if found is None:
        return REAL
    return POSITIVE if found[0] >= _BITS[function.gives][0] else ZERO | POSITIVE


def _bounds(function: Function, args: tuple[Poly, ...]) -> tuple[int, int] | None:
    """What integers lie between whose bits are those of numbers that are not negative."""
    from hlo_verify.terms.bounds import bounds  # made of terms, which ask whether they are numbers

    is_of_one = len(args) == 1 and not function.attributes and function.takes[0] in INTEGER_RANGES
    if function.name != "bitcast_convert" or not is_of_one or function.gives not in _BITS:
        return None
    found = bounds(args[0])
    return found if found is not None and found[0] >= 0 and found[1] < _BITS[function.gives][1] else None
