"""Sums that are divided before they get a name, or after it."""

from __future__ import annotations

from hlo_verify.equality.opening import made_of_few, without_name
from hlo_verify.equality.sides import apart, together
from hlo_verify.terms import algebra
from hlo_verify.terms.numerators import numerators
from hlo_verify.terms.term import ZERO, Poly

MOST = 100
"""Of terms that are made of more definitions than this, no names are made anew: each takes products of sums."""


def same_quotients(found: Poly, expected: Poly, inside: Poly) -> bool:
    """Whether two terms are one once names of quotients are quotients of names."""
    if not made_of_few((found, expected), MOST):
        return False
    made = numerators(found), numerators(expected)
    if made[0] is found and made[1] is expected:
        return False
    left: Poly | None = algebra.expanded(inside, apart(*made))
    while left is not None and together(left) is not ZERO:
        left = without_name(left)
    return left is not None
