"""Roots and inverses of one base in a product: they are one power of it.

    inverse(sqrt(S)) * inverse(sqrt(S))  =  inverse(S)        S * inverse(sqrt(S))  =  sqrt(S)

A power of base S is written as S, inverse(S), sqrt(S) and inverse(sqrt(S)), each at most as often as it needs to be.
What cancels is seen to be positive. Of what may be 0, roots are joined with roots and inverses with inverses alone: at
0 `inverse(S)` is an infinity, which a function may absorb (`minimum(1, 1/S)`), and `S * inverse(S)**2` no number.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session
from hlo_verify.terms import signs
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import ABS, INVERSE, SQRT, Function
from hlo_verify.terms.used import used

if TYPE_CHECKING:
    from hlo_verify.terms.term import Apply, Atom, Monomial, Number, Poly

HALF = Fraction(1, 2)

Joined = tuple[tuple[tuple["Atom", int], ...], "Number"]
"""Factors, each with its power, and what they are multiplied by."""


def base_of(function: Function, args: tuple[Poly, ...]) -> tuple[Poly, Fraction] | None:
    """What a root or an inverse is a power of, and which; None of other functions, and of what may be negative."""
    if function not in (INVERSE, SQRT):
        return None
    (base,) = args
    exponent = HALF if function == SQRT else Fraction(-1)
    inner = base.atom
    root = getattr(inner, "power", None)
    if root is not None:
        if function == SQRT or root[1] != HALF:
            return None
        base, exponent = root[0], -HALF
    if base.doubt & INFINITE or signs.of(base) & (signs.NEGATIVE | signs.BEYOND):
        return None
    return base, exponent


def joined(powers: dict[Atom, Number], rooted: list[Apply]) -> Number:
    """Make the powers of each base in a product one; the number that it is multiplied by then.

    Bases are alike up to a positive multiple: `inverse(2*x)` is written as `inverse(x)/2`, `sqrt(2*x)` as it stands, so
    that `inverse(x) * sqrt(2*x)` is `2 * inverse(sqrt(2*x))`.
    """
    if len(rooted) == 1 and powers[rooted[0]] == 1 and (not rooted[0].power or len(rooted[0].power[0].items) > 1):
        return 1  # nothing else is a power of a sum
    by_base: dict[Poly, list[Apply]] = {}
    for atom in rooted:
        if atom.power is not None:
            by_base.setdefault(_plain(atom.power[0]), []).append(atom)
    factor: Number = 1
    for base, atoms in by_base.items():
        rooted_at = {a.power[0] for a in atoms if a.power is not None and a.power[1] != -1}
        for each in rooted_at if len(rooted_at) > 1 else ():
            factor *= _made_one(powers, each, [a for a in atoms if a.power is not None and a.power[0] is each])
        if len(rooted_at) <= 1:
            factor *= _made_one(powers, next(iter(rooted_at), base), atoms)
    return factor


@once_a_session
def _plain(base: Poly) -> Poly:
    """What a base is a positive multiple of, as the law of inverses writes it."""
    from hlo_verify.terms.addition import scale
    from hlo_verify.terms.patterns import leading

    k = 1 if base.constant is not None else leading(base)
    return base if k <= 0 or k == 1 else scale(base, 1 / Fraction(k))


def _made_one(powers: dict[Atom, Number], base: Poly, atoms: list[Apply]) -> Number:
    """Make the powers of a base one; the number that the product is multiplied by then."""
    own = _plain(base).atom
    found: list[tuple[Atom, Number]] = [(a, powers[a]) for a in atoms]
    if own is not None and own in powers:
        found.append((own, powers[own]))
    made = _one_power(base, tuple(found))
    if made is None:
        return 1
    new, factor = made
    for atom, _ in found:
        del powers[atom]
    for atom, n in new:  # which is there, as a power of another multiple of the base
        powers[atom] = powers.get(atom, 0) + n
    return factor


@once_a_session
def _one_power(base: Poly, found: tuple[tuple[Atom, Number], ...]) -> Joined | None:
    return _join(base, found)


def _join(base: Poly, found: tuple[tuple[Atom, Number], ...]) -> Joined | None:
    """Powers of a base as one; None where they are."""
    from hlo_verify.terms.addition import plain

    own = _plain(base).atom
    exponents = [n * (1 if atom is own else _exponent(atom)) for atom, n in found]
    if len(found) == 1 and -HALF <= exponents[0] < 1:
        return None
    above, below = sum(e for e in exponents if e > 0), sum(e for e in exponents if e < 0)
    cancels = bool(above and below)
    groups = [above, below] if cancels and signs.of(base) != signs.POSITIVE else [above + below]
    new: dict[Atom, int] = {}
    factor = Fraction(1)
    for exponent in groups:
        new |= _written(base, Fraction(exponent))
        if exponent < 0 and base.constant:
            factor /= Fraction(base.constant) ** int(-exponent)
    if new == dict(found):
        return None
    if cancels and len(groups) == 1:
        used("powers of a positive base")
    else:
        used("powers of one base")
    return tuple(new.items()), plain(factor * _times(base, dict(found)) / _times(base, new))


def _exponent(atom: Atom) -> Fraction:
    """Which power of its base a root or an inverse is."""
    power: tuple[Poly, Fraction] = atom.power  # type: ignore[union-attr, assignment]
    return power[1]


def _times(base: Poly, powers: Mapping[Atom, Number]) -> Fraction:
    """What powers of a base, and inverses of its multiples, are a multiple of, as a power of the base alone."""
    whole, k = _plain(base), _multiple(base)
    times = Fraction(1)
    for atom, n in powers.items():
        power = getattr(atom, "power", None)
        if atom is whole.atom:
            times /= k ** int(n)
        elif power is not None and power[1] == -1:
            times *= (k / _multiple(power[0])) ** int(n)
    return times


def _multiple(base: Poly) -> Fraction:
    """What multiple a base is of the one that stands for all of them."""
    from hlo_verify.terms.patterns import leading

    return Fraction(1) if _plain(base) is base else Fraction(leading(base))


def _written(base: Poly, exponent: Fraction) -> dict[Atom, int]:
    """The factors that a power is written as, but for numbers; the square of a root stays one where the base is no
    multiple of an atom."""
    from hlo_verify.terms.term import make_apply, of_atom

    if not exponent:
        return {}
    root, own = make_apply(SQRT, (base,)), _plain(base)
    if exponent > 0 and own.atom is None:
        return {root: int(2 * exponent)}
    whole, rest = divmod(abs(exponent), 1)
    factors: list[tuple[Atom, Number]] = []
    if exponent > 0 and own.atom is not None:
        factors = [(own.atom, whole), (root, 2 * rest)]
    else:
        wholes = 0 if own.constant else whole
        factors = [(make_apply(INVERSE, (own,)), wholes), (make_apply(INVERSE, (of_atom(root),)), 2 * rest)]
    return {atom: int(n) for atom, n in factors if n}


def multiple(p: Poly, base: Poly) -> Poly | None:
    """What a positive sum is multiplied by, where a term is it times a number and positive factors."""
    from hlo_verify.terms.addition import scale
    from hlo_verify.terms.factors import apart, product
    from hlo_verify.terms.patterns import leading

    if signs.of(base) != signs.POSITIVE:
        return None
    factors, rest = apart(p)
    k = Fraction(leading(rest)) / Fraction(leading(base))
    return scale(product(factors), k) if scale(base, k) is rest else None


def of_number(c: Number, n: Number) -> Fraction | None:
    """`c**n` where that is a rational number that may be multiplied out: a whole power, or such a power of a positive
    number that is one of another."""
    c, n = Fraction(c), Fraction(n)
    if c == 1:
        return c
    if not c or not allows("expanded_power", abs(n.numerator)):
        return None
    if n.denominator == 1:
        return c ** int(n)
    top, bottom = (_whole_root(k, n.denominator) for k in (c.numerator, c.denominator))
    return None if top is None or bottom is None else Fraction(top, bottom) ** n.numerator


def _whole_root(m: int, n: int) -> int | None:
    """The natural number of which m is the n-th power."""
    least, most = 0, 1 << m.bit_length() // n + 1
    if m < 0 or n > m.bit_length():  # 2**n is more than m
        return m if m in (0, 1) else None
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if middle**n <= m else (least, middle)
    return least if least**n == m else None


def squared_roots(mono: Monomial) -> tuple[Monomial, Poly, int] | None:
    """A product that has the square of a root, or of an absolute value, as a factor: the rest of it, what the root is
    of, and the power of that."""
    for n, (atom, k) in enumerate(mono):
        if k == 1:  # nearly all: each product that is made is asked
            continue
        from hlo_verify.terms.term import Apply

        if not isinstance(k, int) or k < 2 or not isinstance(atom, Apply):
            continue
        left = ((atom, 1),) if k % 2 else ()
        rest = (*mono[:n], *left, *mono[n + 1 :])
        if atom.function == ABS:
            used("square of an absolute value")
            return rest, atom.args[0], k - k % 2
        if atom.power is not None and atom.power[1] == HALF:
            used("square of a root")
            return rest, atom.power[0], k // 2
    return None
