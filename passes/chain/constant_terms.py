"""Terms of numbers alone, such as `1 + sqrt(2)`, as numbers in many digits.

Irrational numbers are atoms of terms, so that `sqrt(2)*x - 1.41421354*x` is a sum of two products to the normal form.
Whether something is left of such a sum is told by its digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, DecimalException, localcontext
from fractions import Fraction

from hlo_verify.passes.chain.constant_values import DIGITS
from hlo_verify.terms.term import Apply, Atom, Monomial, Poly

_FUNCTIONS: Mapping[str, Callable[[Decimal], Decimal]] = {
    "sqrt": Decimal.sqrt,
    "rsqrt": lambda x: 1 / x.sqrt(),
    "log": Decimal.ln,
    "exponential": Decimal.exp,
    "inverse": lambda x: 1 / x,
}


def is_number(p: Poly) -> bool:
    """Whether a term is made of numbers and of functions of numbers alone."""
    return all(_is_number(atom) for mono, _ in p.items for atom, _ in mono)


def apart(mono: Monomial) -> tuple[Monomial, Fraction | None]:
    """A product without its factors that are numbers, and the product of these; None where a value is not known."""
    value: Fraction | None = Fraction(1)
    for atom, power in mono:
        if _is_number(atom) and value is not None:
            known = _value(atom, Fraction(power))
            value = None if known is None else value * known
    return tuple(item for item in mono if not _is_number(item[0])), value


def _is_number(atom: Atom) -> bool:
    return isinstance(atom, Apply) and bool(atom.args) and all(map(is_number, atom.args))


def _value(atom: Atom, power: Fraction) -> Fraction | None:
    if not isinstance(atom, Apply) or not (atom.function.is_real or atom.function.is_name) or atom.function.attributes:
        return None
    compute = _FUNCTIONS.get(atom.function.name)
    if compute is None:
        return None
    given = Fraction(0)
    for mono, c in atom.args[0].items:
        _, value = apart(mono)
        if value is None:
            return None
        given += c * value
    try:
        with localcontext(prec=DIGITS):
            return Fraction(compute(_decimal(given)) ** _decimal(power))
    except (DecimalException, OverflowError, ValueError):
        return None


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)
