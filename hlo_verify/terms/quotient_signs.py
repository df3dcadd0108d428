"""Signs of sums in which something is divided by a positive number, or lies between bounds.

    1 - 1/(1 + exp(-x))  =  exp(-x) / (1 + exp(-x))  >  0          1 - tanh(x)**2  >  0          1 - exp(-t)  >  0

A sum has the sign of what it is multiplied by a positive number. It is positive where the least that its addends may be
together is, or is 0 and not attained. A difference of exponentials has the sign of that of their exponents.
"""

from __future__ import annotations

from fractions import Fraction

from hlo_verify.limits import allows
from hlo_verify.terms import signs, variances
from hlo_verify.terms.addition import build
from hlo_verify.terms.functions import INVERSE, real
from hlo_verify.terms.term import Apply, Atom, Monomial, Number, Poly, make_poly
from hlo_verify.terms.used import used

INSIDE = frozenset({real("tanh"), real("erf")})
"""Functions whose values lie between -1 and 1, and are neither."""
BETWEEN = INSIDE | {real("sine"), real("cosine")}
"""Functions whose values lie between -1 and 1."""

Bounds = tuple[Number, Number, bool, bool]
"""The least and the greatest of some numbers, and whether each of these may be attained."""


def narrowed(p: Poly, found: int) -> int:
    """Those signs, of a sum, that it may have by what it is divided by and by its bounds too."""
    if len(p.items) < 2 or found & signs.BEYOND:
        return found
    within = _by_bounds(p)
    if found & within != found:
        used("sign by bounds")
        found &= within
    of_difference = _of_exponentials(p) if found & (found - 1) else found
    if found & of_difference != found:
        used("sign of a difference of exponentials")
        found &= of_difference
    top = numerator(p) if found & (found - 1) else None
    if top is not None and found & signs.of(top) != found:
        used("sign of a numerator")
        found &= signs.of(top)
    return variances.narrowed(p, found) if found & (found - 1) else found


def numerator(p: Poly) -> Poly | None:
    """The term multiplied by a positive number that a part of it is divided by; None if there is none."""
    from hlo_verify.terms.products import expanded, power  # made of terms, whose signs are asked for

    inverses = {a for mono, _ in p.items for a, _ in mono if isinstance(a, Apply) and a.function == INVERSE}
    positive = [a for a in inverses if not a.doubt and signs.of(a.args[0]) == signs.POSITIVE]
    if not positive:
        return None
    inverse = max(positive, key=lambda a: a.uid)
    bottom, most = inverse.args[0], max(_power(mono, inverse) for mono, _ in p.items)
    if not all(isinstance(n, int) and n >= 0 for mono, _ in p.items for a, n in mono if a is inverse):
        return None
    if not allows("sign_terms", len(p.items) * len(bottom.items) ** int(most)):
        return None
    total: dict[Monomial, Number] = {}
    for mono, c in p.items:
        rest = make_poly(((tuple(item for item in mono if item[0] is not inverse), c),))
        for product, k in expanded(rest, power(bottom, int(most - _power(mono, inverse)))).items:
            total[product] = total.get(product, 0) + k
    return build(total)


def _power(mono: Monomial, atom: Atom) -> Number:
    return next((n for a, n in mono if a is atom), 0)


def _of_exponentials(p: Poly) -> int:
    """The signs that `c*k*exp(a) - c*exp(b)` may have: of c where k is 1 or more and a not below b, and so on."""
    from hlo_verify.terms.addition import scale
    from hlo_verify.terms.factors import is_exponential
    from hlo_verify.terms.products import add

    if len(p.items) != 2 or p.items[0][1] * p.items[1][1] >= 0:
        return signs.ANY
    (mono, above), (other, below) = sorted(p.items, key=lambda item: item[1], reverse=True)
    rests = [tuple(item for item in each if not is_exponential(item[0])) for each in (mono, other)]
    if rests[0] != rests[1] or len(rests[0]) == len(mono) == len(other):
        return signs.ANY
    exponentials = ([(a, n) for a, n in each if isinstance(a, Apply) and is_exponential(a)] for each in (mono, other))
    up, down = ([scale(a.args[0], n) for a, n in each] for each in exponentials)
    of_exponents = signs.of(add(*up, *(scale(e, -1) for e in down)))
    if above + below and of_exponents & (signs.NEGATIVE if above + below > 0 else signs.POSITIVE):
        return signs.ANY
    found = of_exponents if above + below == 0 else signs.POSITIVE if above + below > 0 else signs.NEGATIVE
    return signs.ANY if of_exponents & signs.BEYOND else signs.MULTIPLIED[found][signs.of_product(rests[0])]


def _by_bounds(p: Poly) -> int:
    """The signs that a sum may have whose addends have bounds."""
    least, greatest = Fraction(0), Fraction(0)
    attains_least = attains_greatest = True
    for mono, c in p.items:
        bounds = _bounds(mono)
        if bounds is None:
            return signs.ANY
        low, high, attains_low, attains_high = bounds
        if c < 0:
            low, high, attains_low, attains_high = high, low, attains_high, attains_low
        least, greatest = least + c * Fraction(low), greatest + c * Fraction(high)
        attains_least, attains_greatest = attains_least and attains_low, attains_greatest and attains_high
    found = signs.NEGATIVE if least < 0 else 0
    found |= signs.POSITIVE if greatest > 0 else 0
    attains_zero = least < 0 < greatest or (least == 0 and attains_least) or (greatest == 0 and attains_greatest)
    return found | (signs.ZERO if attains_zero else 0)


def _bounds(mono: Monomial) -> Bounds | None:
    """The bounds of a product; None if it has none."""
    if not all(isinstance(a, Apply) and a.function in BETWEEN and isinstance(n, int) and n > 0 for a, n in mono):
        return None
    attained = not any(isinstance(a, Apply) and a.function in INSIDE for a, _ in mono)
    if not mono:
        return 1, 1, True, True
    if all(isinstance(n, int) and n % 2 == 0 for _, n in mono):
        return 0, 1, True, attained
    return -1, 1, attained, attained
