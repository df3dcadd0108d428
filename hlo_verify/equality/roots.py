"""Roots and inverses of one term in a product of numbers: they are one power of it, whatever its sign is.

    sqrt(t)**2  =  t        inverse(sqrt(t))**2  =  inverse(t)        sqrt(t) * inverse(3*t)  =  1/3 * inverse(sqrt(t))
    sqrt(2) * sqrt(t)  =  sqrt(2*t)        sqrt(a + b) * sqrt(c + d)  =  sqrt(a*c + a*d + b*c + b*d)

Where a root is a number, what it is of is not negative. So a variance that is written as a difference, of which nothing
shows that, is divided by like any other (`terms.powers` has the same of what is seen to be positive). What cancels must
not be 0: a reference may divide by it where something absorbs that, and be finite, as `minimum(1, 1/sqrt(t))` is.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from math import isqrt, prod

from hlo_verify.limits import allows, limit_of
from hlo_verify.terms import algebra, signs
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import INVERSE, SQRT
from hlo_verify.terms.laws import apply
from hlo_verify.terms.patterns import leading
from hlo_verify.terms.term import Apply, Atom, Monomial, Number, Poly, make_apply, make_poly, number, of_atom

HALF = Fraction(1, 2)

Power = tuple[Fraction, Number]
"""Which power of a term a factor is, and how many times that."""


def joined(mono: Monomial) -> Poly | None:
    """A product with the roots and inverses of one term made one power of it; None where they are."""
    for atom, _ in mono:
        base = _rooted(atom)
        if base is None or base.doubt & INFINITE:
            continue
        own = [(factor, n, _power_of(base, factor)) for factor, n in mono]
        powers = [(n, power) for _, n, power in own if power is not None]
        if any(not isinstance(n, int) for n, _ in powers) or not _is_joint(powers):
            continue
        exponent = sum((n * power[0] for n, power in powers), Fraction(0))
        if len({power[0] < 0 for _, power in powers}) > 1 and signs.of(base) & signs.ZERO:
            continue
        times = prod(Fraction(multiple) ** int(n) for n, (_, multiple) in powers)
        rest = make_poly(((tuple((factor, n) for factor, n, power in own if power is None), times),))
        return algebra.expanded(rest, _written(base, exponent))
    return _with_number(mono) or _of_sums(mono) or _of_numbers(mono)


def _with_number(mono: Monomial) -> Poly | None:
    """A product of roots of numbers and one other root as a root of a multiple, unless laws take that apart."""
    roots = [(atom, n, base) for atom, n in mono if (base := _rooted(atom)) is not None]
    numbers = [(atom, k) for atom, _, base in roots if (k := base.constant) is not None]
    others = [(atom, base) for atom, _, base in roots if base.constant is None]
    if not numbers or len(others) != 1 or any(n != 1 for _, n, _ in roots) or any(k <= 0 for _, k in numbers):
        return None
    ((other, base),) = others
    if base.doubt & INFINITE:
        return None
    k = prod(Fraction(k) if _is_root(atom) == _is_root(other) else 1 / Fraction(k) for atom, k in numbers)
    made = apply(SQRT, (algebra.scale(base, k),))
    if len(made.items) != 1 or sum(_rooted(atom) is not None for atom, _ in made.items[0][0]) != 1:
        return None
    made = made if _is_root(other) else apply(INVERSE, (made,))
    gone = [other, *(atom for atom, _ in numbers)]
    return algebra.expanded(make_poly(((tuple((a, n) for a, n in mono if a not in gone), 1),)), made)


def _of_sums(mono: Monomial) -> Poly | None:
    """A product of roots of sums, or of their inverses, as one of the sums multiplied out, unless laws take that apart:
    none of them is negative, or all but one are positive."""
    for is_root in (True, False):
        atoms = [
            a for a, n in mono if n == 1 and (base := _rooted(a)) and len(base.items) > 1 and _is_root(a) == is_root
        ]
        bases = [base for atom in atoms if (base := _rooted(atom)) is not None]
        found = [signs.of(base) for base in bases]
        known = all(not sign & ~(signs.ZERO | signs.POSITIVE) for sign in found)
        if len(bases) < 2 or any(base.doubt & INFINITE for base in bases):
            continue
        if not known and sum(sign != signs.POSITIVE for sign in found) > 1:
            continue
        if not allows("factored_terms", prod(len(base.items) for base in bases)):
            continue
        made = apply(SQRT, (reduce(algebra.expanded, bases),))
        if len(made.items) != 1 or sum(_rooted(atom) is not None for atom, _ in made.items[0][0]) >= len(bases):
            continue
        made = made if is_root else apply(INVERSE, (made,))
        return algebra.expanded(make_poly(((tuple((a, n) for a, n in mono if a not in atoms), 1),)), made)
    return None


def _of_numbers(mono: Monomial) -> Poly | None:
    """The roots of numbers in a product as one of a whole number without square factors: `sqrt(1/12)` is
    `1/6 * sqrt(3)`."""
    roots = [(atom, n, k) for atom, n in mono if (k := _number_under(atom)) is not None]
    if not roots or any(not isinstance(n, int) for _, n, _ in roots):
        return None
    k = prod(Fraction(k) ** int(n if _is_root(atom) else -n) for atom, n, k in roots)
    whole, outside = k.numerator * k.denominator, Fraction(1, k.denominator)
    most = isqrt(whole)
    if most > limit_of("tried_divisors"):
        return None
    for n in range(2, most + 1):
        while whole % (n * n) == 0:
            whole, outside = whole // (n * n), outside * n
    rest = make_poly(((tuple((a, n) for a, n in mono if _number_under(a) is None), outside),))
    if whole == 1:
        return rest
    made = make_apply(SQRT, (number(whole),))
    return None if [(made, 1)] == [(atom, n) for atom, n, _ in roots] else algebra.expanded(rest, of_atom(made))


def _number_under(atom: Atom) -> Number | None:
    """The number that a root, or the inverse of one, is of; it is positive."""
    base = _rooted(atom)
    k = None if base is None else base.constant
    return k if k is not None and k > 0 else None


def _is_root(atom: Atom) -> bool:
    return isinstance(atom, Apply) and atom.function == SQRT


def _is_joint(powers: Sequence[tuple[Number, Power]]) -> bool:
    """Whether factors can be fewer: roots are squared, or beside inverses."""
    is_squared = any(n > 1 and abs(exponent) == HALF for n, (exponent, _) in powers)
    return is_squared or len({exponent > 0 for _, (exponent, _) in powers}) > 1


def _rooted(atom: Atom) -> Poly | None:
    """What a root, or the inverse of one, is of."""
    if not isinstance(atom, Apply) or atom.function not in (SQRT, INVERSE):
        return None
    (arg,) = atom.args
    if atom.function == SQRT:
        return arg
    return _rooted(arg.atom) if isinstance(arg.atom, Apply) and arg.atom.function == SQRT else None


def _power_of(base: Poly, atom: Atom) -> Power | None:
    """What a factor is of a term, if it is a power of it."""
    rooted = _rooted(atom)
    if rooted is not None and isinstance(atom, Apply):
        return (HALF if atom.function == SQRT else -HALF, 1) if rooted is base else None
    if not isinstance(atom, Apply) or atom.function != INVERSE or not atom.args[0].items:
        return None  # of 0, there is no inverse
    k = Fraction(leading(atom.args[0])) / Fraction(leading(base))
    return (Fraction(-1), 1 / k) if algebra.scale(base, k) is atom.args[0] else None


def _written(base: Poly, exponent: Fraction) -> Poly:
    whole, rest = divmod(abs(exponent), 1)
    root = apply(SQRT, (base,))
    factors = [base, root] if exponent > 0 else [apply(INVERSE, (base,)), apply(INVERSE, (root,))]
    power = algebra.power_of(factors[0], int(whole))
    return algebra.expanded(power, factors[1]) if rest else power
