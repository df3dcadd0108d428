"""Sums over few values as so many sums: what a program adds up turn by turn.

    sum m<3. sum b<8. f(x[m,b])  =  sum b<8. f(x[0,b])  +  sum b<8. f(x[1,b])  +  sum b<8. f(x[2,b])

Any digit of a bound variable may be what counts the turns: with v = a*(low*turns) + m*low + b, where b < low and
m < turns, every value of v is met once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Atom, Poly, Read, atoms

Digit = tuple[int, int]
"""Which bound variable, and the weight of its digit."""


def unrolled(sums: Sequence[Read], session: Session) -> Iterator[dict[Atom, Poly]]:
    """The sums over most values, each as one for every turn; the others are over as many values as a turn has.

    For every digit that may count the turns; nothing where the sums are not over two numbers of values, or the shorter
    ones are not as many as the longer ones have turns: then they are no sums turn by turn.
    """
    counts = sorted({_count(read) for read in sums})
    if len(counts) != 2 or counts[1] % counts[0]:
        return
    turns = counts[1] // counts[0]
    different = dict.fromkeys(sums)
    long = [read for read in different if _count(read) == counts[1]]
    if len(different) != len(long) * (1 + turns):
        return
    if turns > session.limits.turns_apart:
        session.reached("turns_apart")
        return
    choices = [_digits(read, turns) for read in long]
    for chosen in zip(*choices, strict=False):
        yield {read: _taken_apart(read, digit, turns) for read, digit in zip(long, chosen, strict=True)}


def written_out(p: Poly, session: Session) -> Poly | None:
    """A term whose sums are over few values of some variables, with all of these sums written out as additions.

    Two sums over the values of a window may go through them in other variables, or leave some of them to guards. None
    where there are no such sums, or these would be too many additions.
    """
    sums = dict.fromkeys(a for a in atoms(p) if isinstance(a, Read) and a.tensor.kind == "sum")
    most = session.limits.written_out_values
    few = {read: dims for read in sums if (dims := [n for n, v in enumerate(read.tensor.bound) if v.size <= most])}
    additions = sum(prod(read.tensor.bound[n].size for n in dims) for read, dims in few.items())
    if additions > session.limits.written_out_terms:
        session.reached("written_out_terms")
        return None
    if not few:
        return None
    return rebuilt(p, {read: _added_up(read, dims) for read, dims in few.items()}, {})


def _added_up(read: Read, few: Sequence[int]) -> Poly:
    bound, (body, *_) = unfold(read)
    rest = [v for n, v in enumerate(bound) if n not in few]
    values = product(*(range(bound[n].size) for n in few))
    chosen = ({bound[n]: expr.constant(value) for n, value in zip(few, each, strict=True)} for each in values)
    return algebra.add(*(reduce_sum(rest, algebra.substitute(body, mapping)) for mapping in chosen))


def _count(read: Read) -> int:
    return prod(v.size for v in read.tensor.bound)


def _digits(read: Read, turns: int) -> list[Digit]:
    """The digits that take `turns` values: whole variables first, then the highest digits."""
    found = []
    for n, v in enumerate(read.tensor.bound):
        if v.size % turns == 0:
            highest = v.size // turns
            found += [(n, low) for low in range(highest, 0, -1) if highest % low == 0]
    return sorted(found, key=lambda digit: read.tensor.bound[digit[0]].size != turns)


def _taken_apart(read: Read, digit: Digit, turns: int) -> Poly:
    bound, (body, *_) = unfold(read)
    n, low = digit
    v = bound[n]
    parts = [(expr.fresh("f", low), 1), (expr.fresh("f", v.size // (low * turns)), low * turns)]
    rest = [*bound[:n], *bound[n + 1 :], *(part for part, _ in parts if part.size > 1)]
    return algebra.add(*(reduce_sum(rest, _at_turn(body, v, turn * low, parts)) for turn in range(turns)))


def _at_turn(body: Poly, v: Var, start: int, parts: Sequence[tuple[Var, int]]) -> Poly:
    """The body where the variable is `start` and the parts, each times its weight."""
    spread = [expr.scale(expr.of_var(part), weight) for part, weight in parts if part.size > 1]
    return algebra.substitute(body, {v: expr.add(expr.constant(start), *spread)})
