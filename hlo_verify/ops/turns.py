"""Loops of which one goes round several turns of the other at a time, or leaves out some at either end.

A logical loop of 10 turns, and one of 4 that makes two of these each time after one was made in front of it, and leaves
another one to be made behind it: at the start of turn t it carries what the logical loop carries at the start of turn
2*t + 1, and in the end what that carries at the start of turn 9. So it matches a *view* of the logical loop.

What the logical loop carries has a name at each turn. What the other one makes on the way from one such turn to the
next has these names as well (`Loop.between`): the value after turn 2*t + 1 is what is carried at 2*t + 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import allows
from hlo_verify.ops.induction import Loop
from hlo_verify.ops.peeled import Peeled
from hlo_verify.ops.values import Value
from hlo_verify.terms import algebra


def views(loop: Loop, trips: int) -> Iterator[Loop]:
    """The logical loop as one of so many turns, in all ways: with the same number of its turns in each."""
    at_once = loop.t.size // trips
    left = loop.t.size - at_once * trips
    if loop.test is not None or loop.t.size == trips or not at_once:
        return
    if not (allows("turns_at_once", at_once) and allows("peeled_turns", left)):
        return
    peeled = loop.one_by_one() if left else Peeled()
    for first in range(min(left, len(peeled.early)) + 1):
        if left - first <= len(peeled.late):
            yield _view(loop, peeled, trips, at_once, first)


def _view(loop: Loop, peeled: Peeled, trips: int, at_once: int, first: int) -> Loop:
    t = expr.fresh("t", trips)
    start = expr.shift(expr.scale(expr.of_var(t), at_once), first)
    end = at_once * trips + first
    on_the_way = [expr.shift(start, n) for n in range(at_once)]
    return replace(
        loop,
        t=t,
        initial=peeled.early[first - 1] if first else loop.initial,
        state=_at(loop.state, loop.t, start),
        after=_at(loop.after, loop.t, on_the_way[-1]),
        final=loop.final if end == loop.t.size else _at(loop.state, loop.t, expr.constant(end)),
        first=tuple,
        between=(*_on_the_way(loop, on_the_way), *_behind(loop, peeled, end)),
    )


Named = tuple[tuple[Value, ...], tuple[Value, ...]]


def _on_the_way(loop: Loop, turns: list[Index]) -> Iterator[Named]:
    """What the turns but the last leave, and what the loop carries at the start of the next."""
    for turn, following in pairwise(turns):
        yield _at(loop.after, loop.t, turn), _at(loop.state, loop.t, following)


def _behind(loop: Loop, peeled: Peeled, end: int) -> Iterator[Named]:
    """What the turns from `end` on leave, and what the loop carries then."""
    for n in range(end, loop.t.size):
        left = peeled.late[n - loop.t.size]
        yield left, loop.final if n == loop.t.size - 1 else _at(loop.state, loop.t, expr.constant(n + 1))


def _at(values: tuple[Value, ...], t: Var, turn: Index) -> tuple[Value, ...]:
    return tuple(Value(value.type, algebra.substitute(value.term, {t: turn})) for value in values)
