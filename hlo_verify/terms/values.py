"""Enclosures of terms that are made of numbers alone: `1 - power(0.9, 2147483647)` is a number, and not 0."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hlo_verify.memory import once_a_session
from hlo_verify.terms.functions import Function
from hlo_verify.terms.signs import ANY, NEGATIVE, POSITIVE, ZERO

if TYPE_CHECKING:
    from hlo_verify.terms.term import Number, Poly

_VALUES: dict[str, Callable[..., Any]] = {
    "inverse": lambda x: 1 / x,
    "log": lambda x: x.log(),
    "rsqrt": lambda x: x.rsqrt(),
    "sqrt": lambda x: x.sqrt(),
    "power": lambda x, y: x**y,
    "exponential": lambda x: x.exp(),
    "sine": lambda x: x.sin(),
    "cosine": lambda x: x.cos(),
    "tanh": lambda x: x.tanh(),
}


def signs_of_numbers(p: Poly) -> int:
    """The signs that a term may have, as its ball shows: any, where it is not of numbers alone."""
    ball = _enclosed(p)
    if ball is None:
        return ANY
    return (0 if ball >= 0 else NEGATIVE) | (ZERO if ball.contains(0) else 0) | (0 if ball <= 0 else POSITIVE)


def _is_of_reals(function: Function) -> bool:
    return function.is_name or {*function.takes, function.gives} == {"real"}


@once_a_session
def _enclosed(p: Poly) -> Any:
    """A ball that the value of a term lies in; None where it is not of numbers alone, or is not told."""
    from flint import arb, fmpq

    from hlo_verify.terms.term import Apply

    def exact(c: Number) -> Any:
        c = Fraction(c)
        return arb(fmpq(c.numerator, c.denominator))

    total = arb(0)
    for mono, c in p.items:
        product = exact(c)
        for atom, n in mono:
            if not isinstance(atom, Apply) or atom.function.name not in _VALUES or not _is_of_reals(atom.function):
                return None
            parts = [_enclosed(arg) for arg in atom.args]
            if any(part is None for part in parts):
                return None
            product *= _VALUES[atom.function.name](*parts) ** exact(n)
        total += product
    return total if total.is_finite() else None
