"""Numbers rounded to whole ones: `floor(31/2)` is 15. A law of the table in `laws`.

Near to where the rounded number jumps, what a machine computes may lie on the other side: `0.7 * 10`, of floats, is 7
or a little less. So only numbers are rounded here that are no closer to a jump than a machine comes, or lie on one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from hlo_verify.terms.addition import scale
from hlo_verify.terms.functions import EXTREMA, MAXIMUM, MINIMUM, Function
from hlo_verify.terms.term import Apply, Number, Poly, number
from hlo_verify.terms.used import used

OF_MAXIMUM, OF_MINIMUM = "rounding of a maximum", "rounding of a minimum"
OF_LESS_MAXIMUM, OF_LESS_MINIMUM = "rounding of less a maximum", "rounding of less a minimum"
"""Names of laws of the table."""

FINEST = 256
"""The greatest denominator of a number that is rounded."""
GREATEST = 1 << 12
"""What it stays below."""


def _away_from_zero(k: Fraction) -> int:
    whole = math.floor(abs(k) + Fraction(1, 2))
    return whole if k > 0 else -whole


ROUNDED: dict[str, Callable[[Fraction], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_nearest_even": round,
    "round_nearest_afz": _away_from_zero,
}


def is_coarse(p: Poly) -> bool:
    """Whether a term is a number on a jump, or far from all of them."""
    k = p.constant
    return k is not None and Fraction(k).denominator <= FINEST and -GREATEST < k < GREATEST


def rounded_number(function: Function, args: tuple[Poly, ...]) -> Poly | None:
    """The whole number that a number is rounded to."""
    k: Number | None = args[0].constant
    return None if k is None else number(ROUNDED[function.name](Fraction(k)))


def rounded_extremum(function: Function, args: tuple[Poly, ...]) -> Poly | None:
    """A rounded maximum or minimum as that of what is rounded, as long as the numbers among this can be."""
    from hlo_verify.terms.laws import apply  # the table that this is a law of

    ((mono, c),) = args[0].items if len(args[0].items) == 1 else (((), 0),)
    atom = mono[0][0] if len(mono) == 1 and mono[0][1] == 1 and (c > 0 or function.name == "floor") else None
    if not isinstance(atom, Apply) or atom.function not in EXTREMA.values():
        return None
    parts = [scale(arg, c) for arg in atom.args]
    if not all(arg.constant is None or is_coarse(arg) for arg in parts):
        return None
    is_greatest = atom.function == MAXIMUM
    if c > 0:
        used(OF_MAXIMUM if is_greatest else OF_MINIMUM)
        joined = atom.function
    else:
        used(OF_LESS_MAXIMUM if is_greatest else OF_LESS_MINIMUM)
        joined = MINIMUM if is_greatest else MAXIMUM
    return apply(joined, tuple(apply(function, (arg,)) for arg in parts))
