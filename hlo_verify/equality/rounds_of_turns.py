"""Sums over turns as sums over the turns of each round, where a place says when rounds begin.

    sum t<11. [0 <= t - (t - d) mod 4 <= 7] * x[(t - d) mod 4]

Turn t is `4*q + b + d`, of a round q that begins in turn d and of a b below 4. So the sum is one over b for each round
that any turn is in, as far as its turns are turns of all:

    sum q, b<4. [0 <= 4*q + b + d < 11] * [0 <= 4*q + d <= 7] * x[b]

What asks about a round, as conditions do on devices of a ring that microbatches go round several times, is decided then
for each by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.limits import allows
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import Poly


def round_by_round(t: Var, product: Poly) -> tuple[Var, list[Poly]] | None:
    """A variable, and what a product is for it in each round of turns, the sum of which over it is the sum over t; None
    where no condition is on a remainder that says when rounds begin."""
    for place, size in _remainders(t, product):
        if size >= t.size:
            continue
        step, first = _turned(t, place, size)
        if not step or not first.items:
            continue
        whole = expr.add(expr.scale(expr.of_var(t), step), first)
        rounds = range(whole.lo // size, whole.hi // size + 1)
        if not allows("enumerated_values", len(rounds)):
            continue
        b = expr.fresh("f", size)
        turns = (expr.subtract(expr.shift(expr.of_var(b), n * size), first) for n in rounds)
        return b, [_at(t, expr.scale(turn, step), product) for turn in turns]
    return None


def _at(t: Var, turn: Index, product: Poly) -> Poly:
    return algebra.multiply(guards.interval(turn, 0, t.size - 1), algebra.substitute(product, {t: turn}))


def _remainders(t: Var, product: Poly) -> Iterator[tuple[Index, int]]:
    """What remainders in conditions are of, and which these are."""
    for guard in (a for mono, _ in product.items for a in guards.guards_of(mono)):
        for atom, _ in guard.form.items:
            if isinstance(atom, Opaque) and atom.operator == "mod" and t in atom.free:
                yield atom.exprs[0], atom.args[0]


def _turned(t: Var, place: Index, size: int) -> tuple[int, Index]:
    """The step, 1 or -1, and what else is added to so many times t for the same remainder; a step of 0 where it is not
    of that form."""
    steps, others = 0, []
    for atom, c in place.items:
        if t not in atom.free:
            others.append((atom, (c + size // 2) % size - size // 2))
        elif isinstance(atom, Digit) and atom.low == 1 and (atom.top or atom.radix % size == 0):
            steps += c
        else:
            return 0, place
    step = {1: 1, size - 1: -1}.get(steps % size, 0)
    return step, expr.build(place.const, others)
