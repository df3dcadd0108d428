"""Division of integers by a number: quotients round towards 0, and remainders have the sign of what is divided."""

from __future__ import annotations

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ops.values import Value, as_index, integer_range
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.machine import remainder
from hlo_verify.terms.term import Poly


def quotient(value: Value, m: int) -> Poly:
    """`value / m` of an m other than 0: by a negative number it is the opposite of that by a positive one."""
    if m < 0:
        return algebra.scale(quotient(value, -m), -1)
    top = as_index(value)
    if top.hi <= 0:
        return algebra.scale(algebra.of_index(expr.floor_div(expr.scale(top, -1), m)), -1)
    from hlo_verify.ops.in_order import part_in_order  # which is about orders by these operations

    return algebra.add(part_in_order(expr.floor_div(top, m)), _is_rounded_up(top, _modulo(value, m)))


def rest(value: Value, m: int) -> Poly:
    """`value - m * (value / m)` of an m other than 0, which is the same by a negative number."""
    top, m = as_index(value), abs(m)
    if top.hi <= 0:
        return algebra.scale(algebra.of_index(expr.modulo(expr.scale(top, -1), m)), -1)
    low = _modulo(value, m)
    return algebra.subtract(algebra.of_index(low), algebra.scale(_is_rounded_up(top, low), m))


def _modulo(value: Value, m: int) -> Index:
    return remainder(value.term, m, *integer_range(value.type.dtype))


def _is_rounded_up(top: Index, low: Index) -> Poly:
    """1 where the quotient that rounds towards 0 is not the one that rounds down."""
    return algebra.multiply(guards.interval(top, None, -1), guards.interval(low, 1, None))
