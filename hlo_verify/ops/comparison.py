"""Comparisons: of integers by guards, of reals by their difference, in the total order by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit
from hlo_verify.limits import allows
from hlo_verify.ops import in_floats, masked_elements
from hlo_verify.ops.elementwise import product
from hlo_verify.ops.masked_elements import known_number
from hlo_verify.ops.values import (
    Context,
    Rule,
    UnsupportedError,
    Value,
    as_index,
    integer_range,
    require_arithmetic,
    result,
)
from hlo_verify.program.element_types import COMPARED, compare_types, is_float, is_integer
from hlo_verify.program.ir import IN_FLOATS, MADE_BY, NARROWED, SIGNED_ZERO, Op
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.conditions import numbers_of
from hlo_verify.terms.counts import where_held
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import (
    EQUAL,
    EQUAL_COMPLEX,
    EQUAL_IN_TOTAL,
    IS_ZERO,
    LESS_IN_TOTAL,
    LESS_OR_EQUAL,
    Function,
)
from hlo_verify.terms.laws import apply, greater
from hlo_verify.terms.machine import zero_together
from hlo_verify.terms.roundings import differ_by_rounding
from hlo_verify.terms.steps import steps
from hlo_verify.terms.term import ONE, ZERO, Guard, Poly, make_poly, of_atom


def _compare(op: Op, args: list[Value], context: Context) -> list[Value]:
    direction = op.attributes["comparison_direction"]
    a, b = args
    dtype = a.type.dtype
    require_arithmetic(dtype)
    _require_order(dtype, op)
    if direction in ("LT", "GE"):
        a, b, direction = b, a, {"LT": "GT", "GE": "LE"}[direction]
    ordered = direction in ("GT", "LE")
    if is_integer(dtype) or dtype == "i1":
        test = _compare_integers(a, b, ordered, denied=direction == "NE")
        return result(op, algebra.logical_not(test) if direction == "LE" else test)
    if is_float(dtype) and op.attributes.get("compare_type") != "TOTALORDER":
        if op.attributes.get(IN_FLOATS):
            return result(op, in_floats.compared(direction, a.term, b.term, op.attributes[IN_FLOATS]))
        return result(op, _compare_reals(direction, a.term, b.term, op.attributes.get(NARROWED, dtype)))
    if ordered:
        test = apply(_in_total(LESS_IN_TOTAL, op), (b.term, a.term))
    else:
        test = apply(_in_total(EQUAL_IN_TOTAL, op) if is_float(dtype) else EQUAL_COMPLEX, (a.term, b.term))
    return result(op, algebra.logical_not(test) if direction in ("LE", "NE") else test)


def _in_total(function: Function, op: Op) -> Function:
    """A comparison in the total order, which sees signs of zero: a function of what made the numbers as well."""
    return replace(function, attributes=tuple(made_by(op).items()))


def made_by(op: Op) -> dict[str, str]:
    """What made the numbers whose bits an operation looks at, as an attribute of a function; nothing if it sees what is
    there. See `canonicalize.bits`. Raises `UnsupportedError` for zeros with a sign."""
    maker = op.attributes.get(MADE_BY, "")
    if maker == SIGNED_ZERO:
        raise UnsupportedError(f"the bits of {SIGNED_ZERO}", Unsupported.USE)
    return {MADE_BY: maker} if maker else {}


def _require_order(dtype: str, op: Op) -> None:
    """Raise `UnsupportedError` for an order that the type does not have."""
    said = op.attributes.get("compare_type", "NOTYPE")
    if said not in compare_types(dtype):
        raise UnsupportedError(f"compare of {dtype} as {said}", Unsupported.USE)


def _compare_reals(direction: str, a: Poly, b: Poly, dtype: str) -> Poly:
    """By the difference; where there may be infinities, by the operands alone if need be.

    Two infinities may be equal though their difference is no number, and what is no number is neither greater nor less
    or equal: the one is the other's opposite for numbers alone. Where floats may say otherwise, of numbers that are no
    argument's, it is a function of both.
    """
    if differ_by_rounding(a, b):
        return in_floats.compared(direction, a, b)
    known = known_number(a), known_number(b)
    if known[0] is not None and known[1] is not None:
        return ONE if COMPARED[direction](*known) else ZERO
    masked = masked_elements.compared(direction, a, b, dtype, known)
    if masked is not None:
        return masked
    if direction == "LE" and (a.doubt | b.doubt) & INFINITE:
        return apply(LESS_OR_EQUAL, (a, b))
    if direction == "LE" and (a.doubt | b.doubt):
        return apply(LESS_OR_EQUAL, (algebra.subtract(a, b), ZERO))
    if direction in ("GT", "LE"):
        test = greater(a, b)
    elif a.doubt & b.doubt & INFINITE:
        test = apply(EQUAL, (a, b))
    else:
        test = apply(IS_ZERO, (algebra.subtract(a, b),))
    return algebra.logical_not(test) if direction in ("LE", "NE") else test


def _compare_integers(a: Value, b: Value, ordered: bool, denied: bool) -> Poly:
    """`[a > b]` or `[a = b]`: a guard on the difference of what the machine holds, for each piece of step functions; or
    that this is denied, for each piece as well: `[p]*[x != y] + [not p]*[x != z]`, as where a piece is all there is."""
    if a.type.dtype == "i1" and not ordered:
        p, q = a.term, b.term  # p = q as truth values: pq + (1-p)(1-q)
        both = product(p, q, "i1")
        return _said(algebra.add(algebra.scale(both, 2), ONE, algebra.scale(p, -1), algebra.scale(q, -1)), denied)
    pieces = choices_of(a)
    if pieces and not ordered and _is_one_element(pieces, b):
        return _said(guards.interval(expr.subtract(as_index(a), as_index(b)), 0, 0), denied)
    if pieces:
        return algebra.add(*(where_held(on, _compare_integers(here, b, ordered, denied)) for on, here in pieces))
    pieces = choices_of(b)
    if pieces and not ordered and _is_one_element(pieces, a):
        return _said(guards.interval(expr.subtract(as_index(a), as_index(b)), 0, 0), denied)
    if pieces:
        return algebra.add(*(where_held(on, _compare_integers(a, here, ordered, denied)) for on, here in pieces))
    together = None if ordered else zero_together(algebra.subtract(a.term, b.term), *integer_range(a.type.dtype))
    difference = expr.subtract(as_index(a), as_index(b)) if together is None else together
    return _said(guards.interval(difference, 1 if ordered else 0, None if ordered else 0), denied)


def _said(test: Poly, denied: bool) -> Poly:
    return algebra.logical_not(test) if denied else test


def _is_one_element(pieces: Sequence[tuple[Poly, Value]], place: Value) -> bool:
    """Whether an integer that a tensor holds is compared with a position, and its values are one but for numbers, as of
    `where(i < 0, i + n, i)`: the condition is then that under which a scatter lands there."""
    first = pieces[0][1]
    apart = (algebra.subtract(here.term, first.term) for _, here in pieces)
    return _counts(place) and not _counts(first) and all(p.constant is not None for p in apart)


def _counts(value: Value) -> bool:
    """Whether an integer is made of positions alone."""
    items = as_index(value).items
    return bool(items) and all(isinstance(atom, Digit) for atom, _ in items)


def choices_of(value: Value) -> list[tuple[Poly, Value]]:
    """An integer as a step function: where each of its values is; and one that a truth value chooses, by that."""
    forms = {a.form for mono, _ in value.term.items for a, _ in mono if isinstance(a, Guard)}
    if value.type.dtype == "i1" or not allows("compared_forms", len(forms)):
        return []
    if forms:
        return [(on, Value(value.type, piece)) for on, piece in steps(value.term)]
    choosing = {c for mono, _ in value.term.items for c, _ in mono if c.boolean and numbers_of(mono)}
    if not choosing or not allows("compared_forms", len(choosing)):
        return []
    chooses = min(choosing, key=lambda c: c.uid)
    without = make_poly(tuple(item for item in value.term.items if all(a is not chooses for a, _ in item[0])))
    inside = algebra.with_atoms(value.term, {chooses: ONE}.get)
    on = of_atom(chooses)
    return [(on, Value(value.type, inside)), (algebra.logical_not(on), Value(value.type, without))]


RULES: dict[str, Rule] = {"compare": _compare}
