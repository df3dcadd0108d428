"""Roots, powers and logarithms of products: laws of the table in `laws`.

A root of a product is the product of the roots where all factors but one are known not to be negative, and a logarithm
is the sum of the logarithms where all but one are positive.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt, prod

from hlo_verify.limits import allows, limit_of
from hlo_verify.terms import signs
from hlo_verify.terms.addition import build, plain, scale
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.factors import Factors, apart, is_exponential, is_never_negative, is_positive
from hlo_verify.terms.functions import ABS, EXPONENTIAL, INVERSE, LOG, MAXIMUM, MINIMUM, SQRT, Function
from hlo_verify.terms.patterns import leading
from hlo_verify.terms.products import add, expanded, multiply, power, times
from hlo_verify.terms.term import ONE, Apply, Atom, Monomial, Number, Poly, Read, make_apply, make_poly, number, of_atom
from hlo_verify.terms.used import used

Arguments = tuple[Poly, ...]

ROOT_OF_PRODUCT = "square root of a product"
ROOT_OF_SQUARE = "square root of a square"
ROOT_OF_MAXIMUM = "square root of a maximum"
ROOT_OF_MINIMUM = "square root of a minimum"
LOG_OF_EXPONENTIAL = "logarithm of an exponential"
LOG_OF_PRODUCT = "logarithm of a product"
LOG_OF_MULTIPLE = "logarithm of a multiple"
LOG_OF_INVERSE = "logarithm of an inverse"
LOG_OF_SQUARE = "logarithm of a square"


def exact_root(c: Number) -> Fraction | None:
    """The rational number that a number is the square of."""
    c = Fraction(c)
    if c < 0:
        return None
    top, bottom = isqrt(c.numerator), isqrt(c.denominator)
    return Fraction(top, bottom) if top * top == c.numerator and bottom * bottom == c.denominator else None


def root_of_number(function: Function, args: Arguments) -> Poly | None:
    """The root of a number that is a square; that of any other number is a function."""
    c = args[0].constant
    root = None if c is None else exact_root(c)
    return None if root is None else number(root)


def root_of_product(function: Function, args: Arguments) -> Poly | None:
    """`sqrt(k**2 * a * b**2)` as `k * sqrt(a) * abs(b)`, where a is not negative."""
    p = args[0]
    if p.constant is not None or not p.items or p.doubt & INFINITE or not allows("expanded_terms", len(p.items)):
        return None
    factors, rest = apart(p)
    k = abs(Fraction(leading(rest)))
    root = exact_root(k)
    if root is not None:
        rest = scale(rest, 1 / k)
    squared, rest = _squares(rest)
    if not factors and not squared and root in (None, 1):
        return None
    used(ROOT_OF_SQUARE if squared else ROOT_OF_PRODUCT)
    outside = number(root or 1)
    for atom, n in {**factors, **squared}.items():
        outside = times(outside, _root_of_power(atom, n))
    left = None if rest.constant is None else exact_root(rest.constant)
    return times(outside, of_atom(make_apply(SQRT, (rest,))) if left is None else number(left))


def root_of_extremum(function: Function, args: Arguments) -> Poly | None:
    """`sqrt(maximum(a, b))` as `maximum(sqrt(a), sqrt(b))`, where neither is negative; and of a minimum."""
    from hlo_verify.terms.laws import apply

    atom = args[0].atom
    if not isinstance(atom, Apply) or atom.function not in (MAXIMUM, MINIMUM):
        return None
    if any(p.doubt & INFINITE or signs.of(p) & (signs.NEGATIVE | signs.BEYOND) for p in atom.args):
        return None
    used(ROOT_OF_MAXIMUM if atom.function == MAXIMUM else ROOT_OF_MINIMUM)
    return apply(atom.function, tuple(apply(SQRT, (p,)) for p in atom.args))


def _squares(p: Poly) -> tuple[Factors, Poly]:
    """The factors of one product whose roots are taken one by one: none is negative, or all powers are even."""
    if len(p.items) != 1 or p.constant is not None or p.items[0][1] < 0:
        return {}, p
    mono, c = p.items[0]
    if any(a.boolean or not isinstance(n, int) or n < 0 for a, n in mono):
        return {}, p
    fit = all(is_never_negative(a) or (n % 2 == 0 and not signs.of_atom(a) & signs.BEYOND) for a, n in mono)
    if not fit or (len(mono) == 1 and mono[0][1] == 1 and c == 1):
        return {}, p
    return dict(mono), number(c)


def _root_of_power(atom: Atom, n: Number) -> Poly:
    from hlo_verify.terms.laws import apply  # whose table has this law

    if is_exponential(atom):
        return make_poly(((((atom, plain(Fraction(n) / 2)),), 1),))
    whole = power(of_atom(atom) if is_never_negative(atom) else apply(ABS, (of_atom(atom),)), int(n) // 2)
    if n % 2 == 0:
        return whole
    if isinstance(atom, Apply) and atom.function == INVERSE:
        return times(whole, apply(INVERSE, (apply(SQRT, atom.args),)))
    root = root_of_extremum(SQRT, (of_atom(atom),))
    return times(whole, of_atom(make_apply(SQRT, (of_atom(atom),))) if root is None else root)


def logarithm_of_number(function: Function, args: Arguments) -> Poly | None:
    """`log(k)` as `-log(1/k)` for what is less than 1."""
    from hlo_verify.terms.laws import apply

    k = args[0].constant
    return scale(apply(LOG, (number(1 / Fraction(k)),)), -1) if k is not None and 0 < k < 1 else None


def by_primes(atom: Apply) -> Poly | None:
    """`log(12/5)` as `2*log(2) + log(3) - log(5)`, for primes that are tried; None of what is no such sum."""
    k = atom.args[0].constant if atom.function == LOG else None
    if k is None or k <= 0:
        return None
    left = Fraction(k)
    powers: dict[int, int] = {}
    for prime in (2, 3, *range(5, limit_of("tried_divisors") + 1, 2)):
        while left.numerator % prime == 0:
            left /= prime
            powers[prime] = powers.get(prime, 0) + 1
        while left.denominator % prime == 0:
            left *= prime
            powers[prime] = powers.get(prime, 0) - 1
    rest = [(left.numerator, 1), (left.denominator, -1)]
    parts = [(n, power) for n, power in (*powers.items(), *rest) if n > 1 and power]
    if parts == [(k, 1)]:
        return None
    return add(*(scale(of_atom(make_apply(LOG, (number(n),))), power) for n, power in parts))


def logarithm_of_product(function: Function, args: Arguments) -> Poly | None:
    """`log(k * a * b)` as `log(k) + log(a) + log(b)`, where k and a are positive."""
    from hlo_verify.terms.laws import apply

    p = args[0]
    if p.constant is not None or not p.items:
        return None
    factors, rest = apart(p)
    k = abs(Fraction(leading(rest)))
    parts = [_logarithm_of_power(atom, n) for atom, n in factors.items() if rest.constant is None or p.atom is not atom]
    if k != 1:
        used(LOG_OF_MULTIPLE)
        parts.append(apply(LOG, (number(k),)))
    atom = p.atom
    if isinstance(atom, Apply) and atom in factors and atom.function in (INVERSE, SQRT, EXPONENTIAL):
        return _logarithm_of_power(atom, 1)
    if atom is not None and (whole := _of_factors(atom)) is not None:
        return whole
    if not parts:
        return _logarithm_of_square(p)
    return add(*parts, apply(LOG, (scale(rest, 1 / k),)))


def _logarithm_of_square(p: Poly) -> Poly | None:
    """`log(a**2 * b**4)` as `2*log(abs(a * b**2))`: both are minus infinity where a is 0."""
    from hlo_verify.terms.laws import apply

    if len(p.items) != 1 or p.items[0][1] != 1:
        return None
    mono = p.items[0][0]
    if any(a.boolean or not isinstance(n, int) or n < 0 or n % 2 or signs.of_atom(a) & signs.BEYOND for a, n in mono):
        return None
    used(LOG_OF_SQUARE)
    root = make_poly(((tuple((a, n // 2) for a, n in mono), 1),))
    return scale(apply(LOG, (apply(ABS, (root,)),)), 2)


def _logarithm_of_power(atom: Atom, n: Number) -> Poly:
    from hlo_verify.terms.laws import apply

    if isinstance(atom, Apply) and atom.function == EXPONENTIAL:
        used(LOG_OF_EXPONENTIAL)
        return scale(atom.args[0], n)
    used(LOG_OF_PRODUCT)
    if isinstance(atom, Apply) and atom.function == INVERSE:
        used(LOG_OF_INVERSE)
        return scale(apply(LOG, atom.args), -n)
    if isinstance(atom, Apply) and atom.function == SQRT:
        return scale(apply(LOG, atom.args), Fraction(n) / 2)
    whole = _of_factors(atom)
    if whole is not None:
        return scale(whole, n)
    return scale(of_atom(make_apply(LOG, (of_atom(atom),))), n)


def _of_factors(atom: Atom) -> Poly | None:
    """The logarithm of a product over bound variables as the sum of its factors', where these are positive."""
    if not isinstance(atom, Read) or atom.tensor.kind != "product" or not is_positive(atom):
        return None
    from hlo_verify.terms.definitions import unfold
    from hlo_verify.terms.laws import apply
    from hlo_verify.terms.sums import reduce_sum

    used("logarithms of factors")
    bound, (body,) = unfold(atom)
    return reduce_sum(bound, apply(LOG, (body,)))


ROOTS = (2, 4, 8)
"""Which roots are made of square roots: preconditioners are fourth and eighth ones."""


def is_of_roots(p: Poly) -> bool:
    """Whether a power is a root that square roots make, or the inverse of one, times whole powers."""
    k = p.constant
    return (
        k is not None
        and Fraction(k).denominator in ROOTS
        and allows("multiplied_powers", abs(int(k * Fraction(k).denominator)))
    )


def root_as_power(function: Function, args: Arguments) -> Poly | None:
    """`power(a, k)`, for a whole number of halves, by the root; of fourths, the same of the root: `sqrt(sqrt(a))`."""
    from hlo_verify.terms.laws import apply

    base, exponent = args
    k = exponent.constant
    if k is None or base.doubt & INFINITE:
        return None
    if Fraction(k).denominator > 2:
        return root_as_power(function, (apply(SQRT, (base,)), number(2 * k)))
    result, one = apply(SQRT, (base,)), base
    if k < 0:
        result, one = apply(INVERSE, (result,)), apply(INVERSE, (base,))
    return _times_power(result, one, abs(int(k)))


def whole_power(function: Function, args: Arguments) -> Poly | None:
    """`power(a, n)`, for a natural number n that only a case, or an element, makes one."""
    base, exponent = args
    n = exponent.constant
    if not isinstance(n, int) or n < 0 or base.doubt & INFINITE or not allows("multiplied_powers", n):
        return None
    return _times_power(ONE, base, n)


def negative_power(function: Function, args: Arguments) -> Poly | None:
    """`power(a, -n)` by the inverse."""
    from hlo_verify.terms.laws import apply

    base, exponent = args
    n = exponent.constant
    if not isinstance(n, int) or n >= 0 or base.doubt & INFINITE or not allows("multiplied_powers", -n):
        return None
    return _times_power(ONE, apply(INVERSE, (base,)), -n)


def power_by_inverse(function: Function, args: Arguments) -> Poly | None:
    """`power(a, -k)` as the inverse of `power(a, k)`, of which products know what cancels."""
    from hlo_verify.terms.laws import apply

    base, exponent = args
    k = exponent.constant
    if k is None or k >= 0 or base.doubt & INFINITE:
        return None
    return apply(INVERSE, (apply(function, (base, number(-k))),))


def _times_power(p: Poly, base: Poly, n: int) -> Poly:
    for _ in range(n):
        p = times(p, base)
    return p


def power_of_literal(function: Function, args: Arguments) -> Poly | None:
    """`power(k, a)` as `exp(log(k) * a)`, for a positive number k."""
    from hlo_verify.terms.laws import apply

    k = args[0].constant
    if k is None or k <= 0 or args[1].constant is not None or args[1].doubt & INFINITE:
        return None
    return apply(EXPONENTIAL, (multiply(apply(LOG, (args[0],)), args[1]),))


def without_logarithms(p: Poly) -> tuple[Poly, Poly]:
    """What exponentials of logarithms of positive terms are, and the rest of the exponent: `exp(a + log(b))` is
    `exp(a) * b`."""
    from hlo_verify.terms.laws import apply

    parts: list[tuple[Poly, Number]] = []
    rest: dict[Monomial, Number] = {}
    for mono, c in p.items:
        base = _base_of_logarithm(mono, c)
        if base is None:
            rest[mono] = c
            continue
        whole, odd = divmod(abs(Fraction(c) * 2), 2)
        parts += [(part, c) for part in [base] * int(whole) + [apply(SQRT, (base,))] * int(odd)]
    if len(parts) > 1 and not allows("factored_terms", prod(len(part.items) for part, c in parts if c > 0)):
        return ONE, p
    outside: Poly = ONE
    for part, c in parts:
        outside = expanded(outside, part if c > 0 else apply(INVERSE, (part,)))
    return outside, build(rest)


def _base_of_logarithm(mono: Monomial, c: Number) -> Poly | None:
    """What an exponent is the logarithm of, or a multiple that is a root and a whole power; None of others."""
    atom = mono[0][0] if len(mono) == 1 and mono[0][1] == 1 else None
    if not isinstance(atom, Apply) or atom.function != LOG:
        return None
    twice, base = Fraction(c) * 2, atom.args[0]
    if base.constant is not None:
        return base if Fraction(c).denominator == 1 and allows("expanded_power", abs(int(c))) else None
    if twice.denominator != 1 or not allows("multiplied_powers", abs(int(twice))) or base.doubt & INFINITE:
        return None
    return base if signs.of(base) == signs.POSITIVE else None
