"""Sines and cosines of sums and multiples, as polynomials of those of their parts.

    cos(a + b) = cos(a) cos(b) - sin(a) sin(b)        sin(2*a) = 2 sin(a) cos(a)        sin(a)**2 = 1 - cos(a)**2

Each product of an angle counts by the greatest number of which all its coefficients are multiples: with `cos(2*x)` and
`sin(x/3 + y)`, `x/3` and y are the parts, and of places their digits. The sines and cosines of parts then are powers of
cosines, times a sine or none: that is one form. Every step holds of all real numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import reduce
from math import gcd, lcm

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.limits import allows
from hlo_verify.terms import algebra
from hlo_verify.terms.addition import plain
from hlo_verify.terms.functions import real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Ix, Monomial, Number, Poly, make_ix, make_poly, of_atom

SINE, COSINE = real("sine"), real("cosine")
OF_ANGLES = (SINE, COSINE)

Parts = dict[Monomial, Number]
Turn = tuple[Poly, Poly]
"""The cosine and the sine of an angle."""


def images(applied: Iterable[Apply]) -> dict[Atom, Poly]:
    """What the sines and cosines among some functions are of those of their parts; empty where they are many."""
    asked = [a for a in applied if a.function in OF_ANGLES]
    parts = {angle: _in_parts(angle) for angle in dict.fromkeys(a.args[0] for a in asked)}
    units = _units(parts.values())
    turns = sum(abs(int(c / units[mono])) for a in asked for mono, c in parts[a.args[0]].items())
    if not allows("turned_angles", turns):
        return {}
    return {a: _turned(parts[a.args[0]], units)[a.function == SINE] for a in asked}


def _in_parts(angle: Poly) -> Parts:
    """An angle as a sum of products, each with one digit at most."""
    found: Parts = {}
    for mono, c in angle.items:
        place = next((atom for atom, n in mono if isinstance(atom, Ix) and n == 1), None)
        rest = make_poly(((tuple(item for item in mono if item[0] is not place), 1),))
        for digit, k in [(ONE, 1)] if place is None else _digits(place.index):
            for own, n in algebra.times(rest, digit).items:
                found[own] = found.get(own, 0) + n * k * c
    return {mono: c for mono, c in found.items() if c}


def _digits(place: Index) -> list[tuple[Poly, int]]:
    digits = [(of_atom(make_ix(expr.of_atom(atom))), c) for atom, c in place.items]
    return [*digits, (ONE, place.const)] if place.const else digits


def _units(angles: Iterable[Parts]) -> dict[Monomial, Fraction]:
    """The number of which all coefficients of a product are multiples."""
    units: dict[Monomial, Fraction] = {}
    for parts in angles:
        for mono, c in parts.items():
            unit = units.get(mono, Fraction(0))
            bottom = lcm(unit.denominator, Fraction(c).denominator)
            units[mono] = Fraction(gcd(int(unit * bottom), int(c * bottom)), bottom)
    return units


def _turned(angle: Parts, units: dict[Monomial, Fraction]) -> Turn:
    turns = (_multiple(mono, units[mono], int(c / units[mono])) for mono, c in angle.items())
    return reduce(_together, turns, (ONE, ZERO))


def _multiple(mono: Monomial, unit: Fraction, n: int) -> Turn:
    part = make_poly(((mono, plain(unit)),))
    cosine, sine = apply(COSINE, (part,)), apply(SINE, (part,))
    one = cosine, sine if n > 0 else algebra.scale(sine, -1)
    return reduce(_together, [one] * abs(n), (ONE, ZERO))


def _together(one: Turn, other: Turn) -> Turn:
    (cosine, sine), (also, beside) = one, other
    return (
        reduced(algebra.subtract(algebra.expanded(cosine, also), algebra.expanded(sine, beside))),
        reduced(algebra.add(algebra.expanded(sine, also), algebra.expanded(cosine, beside))),
    )


def reduced(p: Poly) -> Poly:
    """A term without squares of sines: `1 - cos(a)**2` is in their place."""
    while (found := _first_square(p)) is not None and allows("question_terms", len(p.items)):
        mono, c, sine, n = found
        rest = make_poly(((tuple(item for item in mono if item[0] is not sine), c),))
        left = of_atom(sine) if n % 2 else ONE
        cosine = apply(COSINE, sine.args)
        other = reduce(algebra.expanded, [algebra.subtract(ONE, algebra.times(cosine, cosine))] * (n // 2), left)
        without = algebra.build({own: k for own, k in p.items if own != mono})
        p = algebra.add(without, algebra.expanded(rest, other))
    return p


def _first_square(p: Poly) -> tuple[Monomial, Number, Apply, int] | None:
    for mono, c in p.items:
        for atom, n in mono:
            if isinstance(n, int) and n > 1 and isinstance(atom, Apply) and atom.function == SINE:
                return mono, c, atom, n
    return None
