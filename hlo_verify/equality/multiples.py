"""One of all multiples of a term, of which a function is a multiple of one value.

    tanh(-t) = -tanh(t)       1/(3*t) = 1/3 * 1/t       [2*t > 0] = [t > 0]       sqrt(8*t) = 2 * sqrt(2*t)

A term is given as its addends, each a number that stands for it and a coefficient, in the order of these numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from hlo_verify.terms.functions import INVERSE, IS_ZERO, POSITIVE, SQRT, Function, real
from hlo_verify.terms.term import Number

Addends = tuple[tuple[int, Number], ...]

Scaling = Callable[[Addends], tuple[Addends, Number]]
"""The multiple that stands for all, and how many times it a term is."""

DEFINED = "defined"
"""Functions of that name are where another function has a value: the condition on its argument."""

NOT_ZERO, ABOVE_ZERO, NOT_BELOW_ZERO = "not zero", "positive", "not negative"

BY_SIGN = frozenset(Function(DEFINED, variant=what) for what in (NOT_ZERO, ABOVE_ZERO, NOT_BELOW_ZERO))
"""Those that the sign of what they are of decides."""

PRIMES = (2, 3, 5, 7, 11, 13)
"""Squares of these leave a root."""


def unscaled(addends: Addends) -> tuple[Addends, Number]:
    return addends, 1


def by_sign(addends: Addends) -> tuple[Addends, Number]:
    """One of a term and its opposite."""
    return _divided(addends, 1 if not addends or addends[0][1] > 0 else -1)


def by_positive(addends: Addends) -> tuple[Addends, Number]:
    """One of all positive multiples."""
    return _divided(addends, _size(addends[0][1]) if addends else 1)


def by_any(addends: Addends) -> tuple[Addends, Number]:
    """One of all multiples."""
    return _divided(addends, addends[0][1] if addends else 1)


def by_squares(addends: Addends) -> tuple[Addends, Number]:
    """One of all multiples by squares; how many times is the root of that."""
    root = _root(Fraction(addends[0][1])) if addends else Fraction(1)
    return _divided(addends, root * root)[0], root


def _divided(addends: Addends, by: Number) -> tuple[Addends, Number]:
    return tuple((number, Fraction(c) / by) for number, c in addends) if by != 1 else addends, by


def _root(c: Fraction) -> Fraction:
    """The root of the largest square of a few primes that divides a number."""
    top, bottom = abs(c.numerator), c.denominator
    root = Fraction(1)
    for p in PRIMES:
        while top % (p * p) == 0:
            top, root = top // (p * p), root * p
        while bottom % p == 0:
            low = 2 if bottom % (p * p) == 0 else 1
            bottom //= p**low
            top, root = (top, root / p) if low == 2 else (top * p, root / p)
    return root


@dataclass(frozen=True, slots=True)
class _Law:
    scaling: Scaling
    value: Callable[[Number], Number]


def _itself(times: Number) -> Number:
    return times


def _nothing(times: Number) -> Number:
    return 1


def _size(times: Number) -> Number:
    return times if times > 0 else -times


def _inverse(times: Number) -> Number:
    return 1 / Fraction(times)


_LAWS: Mapping[Function, _Law] = {
    INVERSE: _Law(by_any, _inverse),
    IS_ZERO: _Law(by_any, _nothing),
    POSITIVE: _Law(by_positive, _nothing),
    SQRT: _Law(by_squares, _itself),
    real("rsqrt"): _Law(by_squares, _inverse),
    real("abs"): _Law(by_any, _size),
    Function(DEFINED, variant=NOT_ZERO): _Law(by_any, _nothing),
    Function(DEFINED, variant=ABOVE_ZERO): _Law(by_positive, _nothing),
    Function(DEFINED, variant=NOT_BELOW_ZERO): _Law(by_positive, _nothing),
}

_ODD, _EVEN, _OTHER = _Law(by_sign, _itself), _Law(by_sign, _nothing), _Law(unscaled, _nothing)


def _law(function: Function) -> _Law:
    own = _LAWS.get(function)
    if own is not None or not function.is_real:
        return own or _OTHER
    return _ODD if function.properties.odd else _EVEN if function.properties.even else _OTHER


def scaling_for(function: Function) -> Scaling:
    """Which multiples of its argument a function takes to multiples of its value."""
    return _law(function).scaling


def of_function(function: Function, times: Number) -> Number:
    """How many times its value for the multiple that stands for all a function has for so many times that."""
    return _law(function).value(times)
