"""Where a loop has written by iteration t, though its windows meet.

The place `clip(t - 3, 0, 3)` is 0 in turns 0 to 3, for example.

    any s < t. [x = clamp(c + s, lo, hi)]  is  [lo < x < hi] [0 <= x - c < t]   what is clamped is x in turn x - c
                                             + [x = lo] [0 < t] [c <= lo]       it starts at the lower end
                                             + [x = hi] [0 < t] [hi - c < t]    it has come to the upper one

and `clamp(c - s, lo, hi)` likewise, with the turn `c - x` and the ends exchanged. What is clamped changes by 1 a turn,
so the first line tells of an end, too, if c does not lie beyond it.
"""

from __future__ import annotations

from functools import reduce

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import ONE, Guard, Poly, of_atom


def ever_before(t: Var, window: Poly) -> Poly | None:
    """Where a product of guards holds in any iteration before t; None if it does not hang on t by a place alone that is
    clamped and goes one up or down a turn."""
    ((mono, _),) = window.items
    own = [guard for guard in guards.guards_of(mono) if t in guard.free]
    if len(own) != 1:
        return None
    found = _at_clamped_place(t, own[0])
    others = [of_atom(atom) for atom, _ in mono if atom is not own[0]]
    return None if found is None else reduce(algebra.multiply, others, found)


def _at_clamped_place(t: Var, guard: Guard) -> Poly | None:
    """The same of `[x = clamp(c + s, lo, hi)]`, and of blocks, `[0 <= r - 8 * clamp(c + s, lo, hi) <= 7]`, where x is
    `r div 8`."""
    moving = [(a, c) for a, c in guard.form.items if t in a.free]
    if len(moving) != 1 or guard.lo is None or guard.hi is None:
        return None
    ((place, c),) = moving
    if not isinstance(place, Opaque) or place.operator != "clamp" or guard.hi - guard.lo + 1 != abs(c):
        return None
    rest = expr.subtract(guard.form, expr.scale(expr.of_atom(place), c))
    x = expr.floor_div(expr.shift(rest, -guard.lo) if c < 0 else expr.shift(expr.scale(rest, -1), guard.hi), abs(c))
    for step in (1, -1):
        first = expr.subtract(place.exprs[0], expr.scale(expr.of_var(t), step))
        if t not in first.free:
            return _passed(expr.of_var(t), x, first, step, place.args)
    return None


def _passed(turn: Index, x: Index, first: Index, step: int, ends: tuple[int, int]) -> Poly:
    """Where x is `clamp(first + step * s, *ends)` for an s before a turn."""
    lo, hi = ends
    starts_beyond = {lo: first.lo < lo, hi: first.hi > hi}
    when = expr.scale(expr.subtract(x, first), step)
    inside = guards.interval(x, lo + starts_beyond[lo], hi - starts_beyond[hi])
    total = _all(inside, guards.interval(when, 0, None), _is_before(when, turn))
    for end, inwards in ((lo, 1), (hi, -1)):
        if starts_beyond[end]:
            when = expr.scale(expr.subtract(expr.constant(end), first), step)
            there = guards.interval(when, 0, None) if step == inwards else _is_before(when, turn)
            total = algebra.add(total, _all(guards.interval(x, end, end), guards.interval(turn, 1, None), there))
    return total


def _is_before(when: Index, turn: Index) -> Poly:
    return guards.interval(expr.subtract(turn, when), 1, None)


def _all(*conditions: Poly) -> Poly:
    return reduce(algebra.multiply, conditions, ONE)
