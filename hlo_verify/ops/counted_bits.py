"""How many bits a place has that are set, or before the first that is: a device's number, and numbers."""

from __future__ import annotations

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index
from hlo_verify.ops.values import Value, as_index
from hlo_verify.program.element_types import integer_bits
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import Ix, Poly, number


def counted(name: str, value: Value) -> Poly | None:
    """What an operation counts of a value; None of other operations, and of what is no place."""
    if name == "popcnt":
        return _bits_set(value)
    return _zeros_before(value) if name == "count_leading_zeros" else None


def _bits_set(value: Value) -> Poly | None:
    """How many bits are set, each one a digit; None of what is no place."""
    e = _place(value)
    if e is None:
        return None
    if not e.items:
        return number((e.const % (1 << integer_bits(value.type.dtype))).bit_count())
    return algebra.add(*(algebra.of_index(expr.digit_of(e, 1 << bit, 2)) for bit in range(e.hi.bit_length())))


def _zeros_before(value: Value) -> Poly | None:
    """How many zeros stand before the first bit: one less for each power of two that a place reaches."""
    e, width = _place(value), integer_bits(value.type.dtype)
    if e is None:
        return None
    if not e.items:
        return number(width - (e.const % (1 << width)).bit_length())
    reached = (guards.interval(e, 1 << bit, None) for bit in range(e.hi.bit_length()))
    return algebra.subtract(number(width), algebra.add(*reached))


def _place(value: Value) -> Index | None:
    """A number, or what is made of digits of places and never negative; None of anything else, which gets no name."""
    if not all(isinstance(atom, Ix) for mono, _ in value.term.items for atom, _ in mono):
        return None
    e = as_index(value)
    is_place = e.lo >= 0 and all(isinstance(part, Digit) for part, _ in e.items)
    return e if is_place or not e.items else None
