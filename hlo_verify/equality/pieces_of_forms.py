"""Pieces of the range of an index expression, by the conditions on it, and what is told where it lies in one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.terms.term import ONE, ZERO, Guard, Poly, make_guard


def truth_on(g: Guard, pieces: dict[Index, Guard]) -> Poly | None:
    """Whether a guard holds where its form is known to lie; None where that does not decide it."""
    piece = pieces.get(g.form)
    if piece is None:
        return None
    if is_within(piece, g):
        return ONE
    below = piece.hi is not None and g.lo is not None and piece.hi < g.lo
    above = piece.lo is not None and g.hi is not None and piece.lo > g.hi
    return ZERO if below or above else None


def pieces_between(form: Index, guards: list[Guard]) -> list[Guard]:
    """The intervals of a form between the ends of some guards on it."""
    ends = sorted({end for g in guards for end in (g.lo, None if g.hi is None else g.hi + 1) if end is not None})
    return [make_guard(form, start, None if end is None else end - 1) for start, end in pairwise([None, *ends, None])]


def variable_on(piece: Guard) -> dict[Var, Index]:
    """The variable that has one value only on a piece, with that value; empty if the form is no variable."""
    form = piece.form
    least = form.lo if piece.lo is None else max(piece.lo, form.lo)
    most = form.hi if piece.hi is None else min(piece.hi, form.hi)
    (atom, factor), *others = form.items
    if least != most or others or factor != 1 or not isinstance(atom, Digit) or expr.of_var(atom.var) is not form:
        return {}
    return {atom.var: expr.constant(least)}


def is_within(piece: Guard, g: Guard) -> bool:
    """Whether a guard holds on all of a piece, which no end of it divides."""
    above = g.lo is None or (piece.lo is not None and piece.lo >= g.lo)
    return above and (g.hi is None or (piece.hi is not None and piece.hi <= g.hi))


def in_case(e: Index, is_always: Callable[[Index], bool], pieces: Iterable[Guard]) -> Index:
    """An index expression as what it is wherever some conditions hold: without a clamp, and as its value where one of
    their pieces leaves it only that."""
    e = without_clamp(e, is_always) or e
    for piece in pieces:
        ahead = expr.subtract(e, piece.form)
        if piece.lo is not None and piece.lo == piece.hi and not ahead.items:
            return expr.constant(piece.lo + ahead.const)
    return e


def without_clamp(e: Index, is_always: Callable[[Index], bool]) -> Index | None:
    """An index expression with a clamp as what it is wherever some conditions hold, of which it is asked whether it is
    something there: an end, or what is clamped. `maximum(n, 1)` is 1 where n <= 1, and n where n > 1. None where it is
    neither."""
    clamp, c = next(
        ((part, c) for part, c in e.items if isinstance(part, Opaque) and part.operator == "clamp"), (None, 0)
    )
    if clamp is None:
        return None
    unclamped = expr.add(e, expr.scale(expr.subtract(clamp.exprs[0], expr.of_atom(clamp)), c))
    return next((way for way in (expr.constant(e.lo), expr.constant(e.hi), unclamped) if is_always(way)), None)
