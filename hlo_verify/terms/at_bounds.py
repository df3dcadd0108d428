"""Choices between a function of a number and what it is at a bound: the function of what is bounded.

[s > 4] 2/sqrt(s) + [s <= 4]      =  2/sqrt(maximum(s, 4))
[n < c] g + [n >= c] g*c/n        =  g*c/maximum(n, c)
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from hlo_verify.limits import allows
from hlo_verify.terms.addition import difference, scale
from hlo_verify.terms.comparing import compared
from hlo_verify.terms.functions import MAXIMUM, MINIMUM, Function
from hlo_verify.terms.products import add
from hlo_verify.terms.term import Apply, Atom, Number, Poly, Read, make_poly, number
from hlo_verify.terms.used import used

OTHER = {MAXIMUM: MINIMUM, MINIMUM: MAXIMUM}


def chosen_at_bound(condition: Poly, a: Poly, b: Poly) -> Poly | None:
    """`condition ? a : b` of real numbers, where one of them is what the other is at the bound that a sum is compared
    with; None where it is not, or where the function of what is bounded may be undefined."""
    found = compared(condition)
    if found is None:
        return None
    q, holds = found
    above, below = (a, b) if holds else (b, a)
    bound = next((-c for mono, c in q.items if not mono), 0)
    if above is below or not bound or not allows("sign_terms", len(q.items)):
        return None
    p = add(q, number(bound))
    from hlo_verify.terms.rebuilding import rebuilt  # made of terms, as is what is chosen

    for atom, c in _addends(p):
        rest = difference(p, scale(make_poly(((((atom, 1),), 1),)), c))
        at = scale(difference(number(bound), rest), 1 / Fraction(c))
        for function, whole, other in ((MAXIMUM, above, below), (MINIMUM, below, above)):
            if rebuilt(whole, {atom: at}, {}) is not other:
                continue
            within = scale(difference(_limited(function, p, bound), rest), 1 / Fraction(c))
            result = rebuilt(whole, {atom: within}, {})
            if not result.doubt:
                used("choice at a bound")
                return result
    return None


def _addends(p: Poly) -> Iterator[tuple[Atom, Number]]:
    """The atoms that a sum is of, each with its number, that are in no other product of it."""
    for mono, c in p.items:
        ((atom, n), *others) = mono
        elsewhere = (each for own, _ in p.items if own is not mono for each, _ in own)
        is_number = isinstance(atom, Apply | Read) and not atom.boolean
        if n == 1 and not others and is_number and all(atom is not each for each in elsewhere):
            yield atom, c


def _limited(function: Function, p: Poly, bound: Number) -> Poly:
    """The greater or lesser of a sum and a number; of the opposite of a sum, by that."""
    from hlo_verify.terms.laws import apply  # laws are made of products, as is what is chosen

    if p.items[0][1] > 0:
        return apply(function, (p, number(bound)))
    return scale(apply(OTHER[function], (scale(p, -1), number(-bound))), -1)
