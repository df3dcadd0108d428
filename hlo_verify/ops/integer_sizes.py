"""Absolute values of integers that wrap.

    |y - x| = |x - y| = maximum(x - y, y - x)        in each signed type

The least integer is its own opposite, and its own absolute value.
"""

from __future__ import annotations

from hlo_verify.ops.values import Value, as_index, integer_range
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import Poly, monomial_skey


def size_of(value: Value) -> Poly:
    """The absolute value of an integer, the same for its opposite."""
    p, opposite = value.term, algebra.scale(value.term, -1)
    is_signed = integer_range(value.type.dtype)[0] < 0
    if is_signed and p.items and min((monomial_skey(mono), c) for mono, c in p.items)[1] < 0:
        p, opposite = opposite, p
    return algebra.select(guards.interval(as_index(Value(value.type, p)), None, -1), opposite, p)
