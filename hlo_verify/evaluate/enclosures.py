"""Elementwise functions on arrays of enclosures of numbers (`balls`): each result holds the exact value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from flint import acb, arb

from hlo_verify.evaluate import unary
from hlo_verify.evaluate.balls import (
    INFINITE,
    INFINITY,
    MINUS_INFINITY,
    NAN,
    ONE,
    UNDEFINED,
    UNKNOWN,
    ZERO,
    identities,
    is_unknown,
    same,
)
from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.unary import UNKNOWN_COMPLEX, Element, as_complex, is_on_branch_cut, trunc


def elementwise(function: Element, operands: int) -> Callable[..., Array]:
    """A function of elements as one of arrays that broadcast."""
    each = np.frompyfunc(function, operands, 1)
    return once(lambda *arrays: np.asarray(each(*arrays), object))


def once(function: Callable[..., Array]) -> Callable[..., Array]:
    """The function, evaluated once for the same elements: what it gives for them is one object."""

    def apply(*arrays: Array) -> Array:
        code: Any = 0
        firsts = []
        for array in arrays:
            _, first, which = np.unique(identities(array), return_index=True, return_inverse=True)
            code = code * len(first) + which.reshape(array.shape)
            firsts.append((array.reshape(-1), first))
        codes, where = np.unique(code, return_inverse=True)
        operands = []
        left = codes
        for flat, first in reversed(firsts):
            operands.append(flat[first[left % len(first)]])
            left = left // len(first)
        found = np.asarray(function(*reversed(operands)), object)
        return np.asarray(found[where.reshape(np.shape(code))], object)

    return apply


# Arithmetic


def _exact_infinity(x: Any) -> bool:
    return x is INFINITE or not (x.is_finite() or x is NAN or is_unknown(x))


def _sum_edge(a: Any, b: Any) -> Any:
    """A sum that is not finite: infinities of one sign add up, opposite ones are no number."""
    if NAN in (a, b) or is_unknown(a) or is_unknown(b):
        return UNKNOWN if is_unknown(a) or is_unknown(b) else NAN
    if a is INFINITE or b is INFINITE:
        other = b if a is INFINITE else a
        return INFINITE if other.is_finite() else UNKNOWN
    if _exact_infinity(a) and _exact_infinity(b):
        return a if (a > 0) == (b > 0) else NAN
    return a if _exact_infinity(a) else b if _exact_infinity(b) else UNKNOWN


def _product_edge(a: Any, b: Any) -> Any:
    """A product that is not finite: 0 times an infinity is no number."""
    if is_unknown(a) or is_unknown(b):
        return UNKNOWN
    if NAN in (a, b):
        return NAN
    signs = [_sign_of(a), _sign_of(b)]
    if 0 in signs and not (a.is_finite() and b.is_finite()):
        return NAN
    if None in signs or (a.is_finite() and b.is_finite()):
        return UNKNOWN
    if INFINITE in (a, b):
        return INFINITE
    return INFINITY if signs[0] == signs[1] else MINUS_INFINITY


def _sign_of(x: Any) -> int | None:
    """-1, 0 or 1; None where it is not certain."""
    if x is INFINITE:
        return 1
    return 1 if x > 0 else -1 if x < 0 else 0 if x.is_zero() else None


def _quotient_edge(a: Any, b: Any) -> Any:
    if is_unknown(a) or is_unknown(b):
        return UNKNOWN
    if NAN in (a, b):
        return NAN
    if b.is_finite() and b.is_zero():
        if a.is_finite():
            return NAN if a.is_zero() else INFINITE if a > 0 or a < 0 else UNKNOWN
        return INFINITE
    if b.is_finite():
        return UNKNOWN if a.is_finite() else _product_edge(a, b)
    return ZERO if a.is_finite() else NAN


def _checked(inside: np.ufunc, edge: Element) -> Callable[..., Array]:
    """Arithmetic on whole arrays; what is not finite is found again, element by element."""
    again = np.frompyfunc(edge, 2, 1)

    def apply(a: Array, b: Array) -> Array:
        result = np.asarray(inside(a, b), object)
        odd = ~np.asarray(_IS_FINITE(result)).astype(np.bool_)
        if odd.any():
            result[odd] = again(a[odd], b[odd])
        return result

    return once(apply)


_IS_FINITE = np.frompyfunc(lambda x: x.is_finite(), 1, 1)


def _power(a: Any, b: Any) -> Any:
    if b.is_finite() and b.is_zero():
        return ONE
    if not (a.is_finite() and b.is_finite()):
        return UNKNOWN if is_unknown(a) or is_unknown(b) or NAN not in (a, b) else NAN
    if a.is_zero():
        return ZERO if b > 0 else INFINITE if b < 0 else UNKNOWN
    if a < 0 and not b.is_integer():
        return NAN if not b.contains_integer() else UNKNOWN
    y = a**b
    return y if y.is_finite() else UNKNOWN


def _remainder(a: Any, b: Any) -> Any:
    """The remainder of a division that is rounded towards zero."""
    if not (a.is_finite() and b.is_finite()):
        if is_unknown(a) or is_unknown(b):
            return UNKNOWN
        return a if a.is_finite() and b is not NAN else NAN
    if b.is_zero():
        return NAN
    quotient = a / b
    if not quotient.is_finite():
        return UNKNOWN
    return a - trunc(quotient) * b


def _angle(y: Any, x: Any) -> Any:
    """atan2; on the negative axis it depends on the sign of a zero."""
    if not (y.is_finite() and x.is_finite()):
        return NAN if NAN in (x, y) and not is_unknown(x) and not is_unknown(y) else UNKNOWN
    if y.is_zero() and not x > 0:
        return UNKNOWN
    found = arb.atan2(y, x)
    return found if found.is_finite() else UNKNOWN


def larger(a: Any, b: Any) -> Any:
    if isinstance(a, arb) and isinstance(b, arb):
        return a if a is b or a >= b else b if b >= a else a.max(b)
    return _extremum_edge(a, b)


def smaller(a: Any, b: Any) -> Any:
    if isinstance(a, arb) and isinstance(b, arb):
        return a if a is b or a <= b else b if b <= a else a.min(b)
    return _extremum_edge(a, b)


def _extremum_edge(a: Any, b: Any) -> Any:
    known = not (is_unknown(a) or is_unknown(b))
    return NAN if known and NAN in (a, b) else UNKNOWN


def _complex_power(a: Any, b: Any) -> Any:
    a, b = as_complex(a), as_complex(b)
    if b.imag.is_zero() and b.real.is_exact() and b.real.is_integer() and abs(a) > 0:
        return a**b
    return UNKNOWN_COMPLEX if is_on_branch_cut(a) else (a.log() * b).exp()


# Comparisons


def _certain(is_so: Element, is_not: Element) -> Element:
    """A comparison of real numbers, where the balls decide it."""

    def compare(a: Any, b: Any) -> Any:
        if isinstance(a, arb) and isinstance(b, arb):
            if a is b and not is_unknown(a):
                a = b = ZERO
            return True if is_so(a, b) else False if is_not(a, b) else UNDEFINED
        if is_unknown(a) or is_unknown(b) or (INFINITE in (a, b) and NAN not in (a, b)):
            return UNDEFINED
        return None  # NaN

    return compare


def _apart(a: Any, b: Any) -> bool:
    return bool(a < b or a > b)


_DIRECTIONS: dict[str, tuple[Element, bool]] = {
    "EQ": (_certain(lambda a, b: a == b, _apart), False),
    "NE": (_certain(_apart, lambda a, b: a == b), True),
    "LT": (_certain(lambda a, b: a < b, lambda a, b: a >= b), False),
    "LE": (_certain(lambda a, b: a <= b, lambda a, b: a > b), False),
    "GT": (_certain(lambda a, b: a > b, lambda a, b: a <= b), False),
    "GE": (_certain(lambda a, b: a >= b, lambda a, b: a < b), False),
}
"""Each with what it is of NaN."""


def compared(direction: str, is_total: bool) -> Element:
    """A comparison of elements: true, false or undefined. The total order has NaN above all, and one zero."""
    decide, of_nan = _DIRECTIONS[direction]

    def compare(a: Any, b: Any) -> Any:
        if isinstance(a, acb) or isinstance(b, acb):
            return _complex_compared(direction, a, b)
        found = decide(a, b)
        if found is not None:
            return found
        return decide(arb(int(a is NAN)), arb(int(b is NAN))) if is_total else of_nan

    return compare


def _complex_compared(direction: str, a: Any, b: Any) -> Any:
    if direction not in ("EQ", "NE") or not (a.is_finite() and b.is_finite()):
        return UNDEFINED
    real, imag = (_DIRECTIONS["EQ"][0](x, y) for x, y in ((a.real, b.real), (a.imag, b.imag)))
    equal = False if real is False or imag is False else True if real is True and imag is True else UNDEFINED
    return equal if direction == "EQ" or equal is UNDEFINED else not equal


def is_finite(x: Any) -> Any:
    return True if x.is_finite() else UNDEFINED if is_unknown(x) else False


def chosen(condition: Any, a: Any, b: Any) -> Any:
    """`a` or `b`: what holds both where the condition is undefined."""
    if condition is not UNDEFINED:
        return a if condition else b
    if same(a, b):
        return a
    if isinstance(a, arb) and isinstance(b, arb):
        return a.union(b) if a.is_finite() and b.is_finite() else UNKNOWN
    if isinstance(a, acb):
        return UNKNOWN_COMPLEX
    return UNKNOWN if isinstance(a, arb) or isinstance(b, arb) or a is NAN or a is INFINITE else UNDEFINED


_ADD, _MULTIPLY = _checked(np.add, _sum_edge), _checked(np.multiply, _product_edge)

REAL: dict[str, Callable[..., Array]] = {
    **{name: elementwise(function, 1) for name, function in unary.REAL.items()},
    "add": _ADD,
    "subtract": _checked(np.subtract, lambda a, b: _sum_edge(a, -b)),
    "multiply": _MULTIPLY,
    "divide": _checked(np.true_divide, _quotient_edge),
    "power": elementwise(_power, 2),
    "remainder": elementwise(_remainder, 2),
    "atan2": elementwise(_angle, 2),
    "maximum": elementwise(larger, 2),
    "minimum": elementwise(smaller, 2),
    "is_finite": elementwise(is_finite, 1),
}

COMPLEX: dict[str, Callable[..., Array]] = {
    **{name: elementwise(function, 1) for name, function in unary.COMPLEX.items()},
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.true_divide,
    "power": elementwise(_complex_power, 2),
}
