"""The positive factors that all products of a term have: roots, logarithms and inverses are taken of each alone."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import reduce

from hlo_verify.terms import signs
from hlo_verify.terms.addition import build, plain
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE, ZERO_TIMES
from hlo_verify.terms.products import add, expanded, power
from hlo_verify.terms.term import ONE, Apply, Atom, Monomial, Number, Poly, make_apply, make_poly, of_atom

Factors = dict[Atom, Number]
"""Atoms with their powers."""


def is_exponential(atom: Atom) -> bool:
    """Whether a factor is an exponential, which is a number, and positive."""
    return isinstance(atom, Apply) and atom.function == EXPONENTIAL


def is_positive(atom: Atom) -> bool:
    """Whether a factor is a positive number."""
    return not atom.doubt & INFINITE and signs.of_atom(atom) == signs.POSITIVE


def is_never_negative(atom: Atom) -> bool:
    """Whether a factor is a number, and none less than 0."""
    return not atom.doubt & INFINITE and not signs.of_atom(atom) & (signs.NEGATIVE | signs.BEYOND)


def common(p: Poly) -> Factors:
    """Positive factors of all products of a term, each with the least power that it has there.

    An exponential that is in some products only has the power 0 in the others: `exp(-a) + 1` is `exp(-a)*(1 + exp(a))`.
    """
    found: Factors | None = None
    for mono, _ in p.items:
        here = {a: n for a, n in mono if is_exponential(a) or is_positive(a)}
        if found is None:
            found = here
            continue
        exponentials = {a for a in (*found, *here) if is_exponential(a)}
        least = {a: min(found.get(a, 0), here.get(a, 0)) for a in exponentials}
        least |= {a: min(n, here[a]) for a, n in found.items() if a in here and a not in exponentials}
        found = {a: n for a, n in least.items() if n}
    return found or {}


def product(factors: Factors, sign: int = 1) -> Poly:
    """The product of powers, or what cancels it."""
    result = ONE
    for atom, n in factors.items():
        if is_exponential(atom):
            own = make_poly(((((atom, plain(Fraction(n) * sign)),), 1),))
        elif sign > 0:
            own = power(of_atom(atom), int(n))
        else:
            own = inverse(atom, int(n))
        result = expanded(result, own)
    return result


def inverse(atom: Atom, n: int) -> Poly:
    """The inverse of a power of a positive factor. That of an inverse is undefined where this is: what cancels in a
    term leaves 1/0 there, or NaN (`q + q - q`), of which one has the inverse 0."""
    if not isinstance(atom, Apply) or atom.function != INVERSE:
        return power(of_atom(make_apply(INVERSE, (of_atom(atom),))), n)
    found = power(atom.args[0], n)
    return add(found, of_atom(make_apply(ZERO_TIMES, (of_atom(atom),)))) if atom.doubt else found


def apart(p: Poly) -> tuple[Factors, Poly]:
    """The positive factors that all products of a term have, and the rest of it."""
    factors = common(p)
    return factors, build({_without(mono, factors): c for mono, c in p.items}) if factors else p


def in_one_quotient(p: Poly) -> tuple[Poly, Poly]:
    """The positive numbers that parts of a sum are divided by, multiplied, and the sum times these: `1 - a/s` is
    `(s - a)/s`. Only names and functions are multiplied by, so that no product of sums is made."""
    most: dict[Atom, int] = {}
    for mono, _ in p.items:
        for atom, n in mono:
            if isinstance(atom, Apply) and atom.function == INVERSE and isinstance(n, int) and n > 0 and not atom.doubt:
                divisor = atom.args[0].atom
                if divisor is not None and is_positive(divisor):
                    most[divisor] = max(n, most.get(divisor, 0))
    divided = reduce(expanded, (power(of_atom(atom), n) for atom, n in most.items()), ONE)
    return divided, expanded(p, divided)


def _without(mono: Monomial, factors: Factors) -> Monomial:
    powers = dict(mono)
    for atom, n in factors.items():
        powers[atom] = plain(Fraction(powers.get(atom, 0)) - Fraction(n))
    return tuple(sorted(((atom, n) for atom, n in powers.items() if n), key=lambda item: item[0].uid))


def of_factors(items: Iterable[tuple[Atom, Number]]) -> Poly:
    """The product of these powers of different atoms, in any order."""
    return make_poly(((tuple(sorted(items, key=lambda item: item[0].uid)), 1),))
