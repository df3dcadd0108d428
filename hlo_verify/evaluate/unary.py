"""Functions of one real or complex number on enclosures (`balls`): each result holds the exact value.

Where a function has no value at an exact argument the result is `NAN`, where it has a pole an infinity; where the ball
of an argument only touches such a point, nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flint import acb, arb

from hlo_verify.evaluate.balls import (
    HALF,
    INFINITE,
    INFINITY,
    MINUS_INFINITY,
    NAN,
    ONE,
    UNKNOWN,
    ZERO,
    is_unknown,
    same,
)

Element = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Unary:
    """A function of a real number, and its limits at minus infinity and infinity. `edge` is for arguments at which
    `inside` is not finite."""

    inside: Element
    low: Any
    high: Any
    edge: Element = lambda x: UNKNOWN

    def __call__(self, x: Any) -> Any:
        if x.is_finite():
            y = self.inside(x)
            return y if y.is_finite() else self.edge(x)
        if x is NAN:
            return NAN
        if x is INFINITE:
            return self.low if self.low is self.high else UNKNOWN
        return UNKNOWN if is_unknown(x) else self.high if x > 0 else self.low


def _beyond(is_outside: Element, *poles: tuple[Any, Any]) -> Element:
    """NAN for arguments that are surely outside of the domain; at exact ones, what the function is there."""

    def edge(x: Any) -> Any:
        if is_outside(x):
            return NAN
        return next((value for point, value in poles if x == point), UNKNOWN)

    return edge


def _is_negative(x: Any) -> bool:
    return bool(x < 0)


def _is_beyond_one(x: Any) -> bool:
    return bool(abs(x) > 1)


def _is_pole(x: Any) -> bool:
    """Of the gamma function."""
    return bool(x.is_exact() and x.is_integer() and x <= 0)


def _log_gamma(x: Any) -> Any:
    return x.lgamma() if x > 0 else abs(x.gamma()).log()


def _cube_root(x: Any) -> Any:
    if x.is_zero():
        return ZERO
    return -(-x).root(3) if x < 0 else x.root(3)


def _error_inverse(x: Any) -> Any:
    return x.erfinv() if abs(x) < 1 else UNKNOWN


def sign(x: Any) -> Any:
    return x.sgn()


def trunc(x: Any) -> Any:
    if x >= 0:
        return x.floor()
    if x <= 0:
        return x.ceil()
    return ZERO if abs(x) < 1 else x.ceil().union(x.floor())


def _round_away(x: Any) -> Any:
    if x >= 0:
        return (x + HALF).floor()
    return (x - HALF).ceil() if x <= 0 else (x + HALF).floor().union((x - HALF).ceil())


def _round_even(x: Any) -> Any:
    low, high = (x - HALF).ceil(), (x + HALF).floor()
    if same(low, high):
        return low
    if x.is_exact() and low.is_exact() and high.is_exact() and high - low == 1:  # in the middle
        return low if (low * HALF).is_integer() else high
    return low.union(high)


REAL: dict[str, Unary] = {
    "negate": Unary(lambda x: -x, INFINITY, MINUS_INFINITY),
    "abs": Unary(abs, INFINITY, INFINITY),
    "sign": Unary(sign, -ONE, ONE),
    "square": Unary(lambda x: x**2, INFINITY, INFINITY),
    "exponential": Unary(arb.exp, ZERO, INFINITY),
    "exponential_minus_one": Unary(arb.expm1, -ONE, INFINITY),
    "log": Unary(arb.log, NAN, INFINITY, _beyond(_is_negative, (ZERO, MINUS_INFINITY))),
    "log_plus_one": Unary(arb.log1p, NAN, INFINITY, _beyond(lambda x: x < -1, (-ONE, MINUS_INFINITY))),
    "sqrt": Unary(arb.sqrt, NAN, INFINITY, _beyond(_is_negative)),
    "rsqrt": Unary(arb.rsqrt, NAN, ZERO, _beyond(_is_negative, (ZERO, INFINITE))),
    "cbrt": Unary(_cube_root, MINUS_INFINITY, INFINITY),
    "sine": Unary(arb.sin, NAN, NAN),
    "cosine": Unary(arb.cos, NAN, NAN),
    "tan": Unary(arb.tan, NAN, NAN),
    "tanh": Unary(arb.tanh, -ONE, ONE),
    "logistic": Unary(lambda x: ONE / (ONE + (-x).exp()), ZERO, ONE),
    "erf": Unary(arb.erf, -ONE, ONE),
    "erfc": Unary(arb.erfc, arb(2), ZERO),
    "erf_inv": Unary(_error_inverse, NAN, NAN, _beyond(_is_beyond_one, (-ONE, MINUS_INFINITY), (ONE, INFINITY))),
    "lgamma": Unary(_log_gamma, INFINITY, INFINITY, lambda x: INFINITY if _is_pole(x) else UNKNOWN),
    "digamma": Unary(arb.digamma, NAN, INFINITY, lambda x: NAN if _is_pole(x) else UNKNOWN),
    "acos": Unary(arb.acos, NAN, NAN, _beyond(_is_beyond_one)),
    "asin": Unary(arb.asin, NAN, NAN, _beyond(_is_beyond_one)),
    "acosh": Unary(arb.acosh, NAN, INFINITY, _beyond(lambda x: x < 1)),
    "asinh": Unary(arb.asinh, MINUS_INFINITY, INFINITY),
    "atanh": Unary(arb.atanh, NAN, NAN, _beyond(_is_beyond_one, (-ONE, MINUS_INFINITY), (ONE, INFINITY))),
    "atan": Unary(arb.atan, UNKNOWN, UNKNOWN),
    "cosh": Unary(arb.cosh, INFINITY, INFINITY),
    "sinh": Unary(arb.sinh, MINUS_INFINITY, INFINITY),
    "floor": Unary(arb.floor, MINUS_INFINITY, INFINITY),
    "ceil": Unary(arb.ceil, MINUS_INFINITY, INFINITY),
    "round_nearest_afz": Unary(_round_away, MINUS_INFINITY, INFINITY),
    "round_nearest_even": Unary(_round_even, MINUS_INFINITY, INFINITY),
}


# Complex numbers


def is_on_branch_cut(z: Any) -> bool:
    """Whether a number may lie on the negative axis, where the sign of a zero decides."""
    return not (z.real > 0 or z.imag > 0 or z.imag < 0)


def _off_branch_cut(function: Element) -> Element:
    return lambda z: UNKNOWN_COMPLEX if is_on_branch_cut(z) else function(z)


UNKNOWN_COMPLEX = acb(UNKNOWN, UNKNOWN)
_THIRD = 3


def _complex_sign(z: Any) -> Any:
    if z.real.is_zero() and z.imag.is_zero():
        return acb(0)
    size = abs(z)
    return z / size if size > 0 else UNKNOWN_COMPLEX


def as_complex(z: Any) -> Any:
    """An element of a complex type as such: some are held as real numbers, as the 0 that a device receives of nobody.
    Nothing is known of what is none."""
    return z if isinstance(z, acb) else acb(z) if isinstance(z, arb) else UNKNOWN_COMPLEX


def _of_complex(function: Element) -> Element:
    """The function of any element of a complex type. Methods of `acb` do not ask what they are given: of a real number
    they read memory beside it."""
    return lambda z: function(as_complex(z))


_COMPLEX: dict[str, Element] = {
    "negate": lambda z: -z,
    "abs": abs,
    "sign": _complex_sign,
    "square": lambda z: z * z,
    "exponential": acb.exp,
    "exponential_minus_one": lambda z: z.exp() - 1,
    "log": _off_branch_cut(acb.log),
    "log_plus_one": lambda z: UNKNOWN_COMPLEX if is_on_branch_cut(z + 1) else (z + 1).log(),
    "sqrt": _off_branch_cut(acb.sqrt),
    "rsqrt": _off_branch_cut(acb.rsqrt),
    "cbrt": _off_branch_cut(lambda z: (z.log() / _THIRD).exp()),
    "sine": acb.sin,
    "cosine": acb.cos,
    "tan": acb.tan,
    "tanh": acb.tanh,
    "cosh": acb.cosh,
    "sinh": acb.sinh,
    "logistic": lambda z: 1 / (1 + (-z).exp()),
}

COMPLEX = {name: _of_complex(function) for name, function in _COMPLEX.items()}
