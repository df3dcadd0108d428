"""Parts of the range of a free variable that conditions tell apart.

`[i < 3]*x[i] + [i >= 3]*y[i]` is x[i] for i < 3, and y[3 + i] from there on. A variable of few values that conditions
or remainders take together with others is looked at value by value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.terms.term import Atom, Guard, indices

Regions = tuple[Var, list[Index]]
"""A variable, and what it is in each part of its range."""


def by_conditions(atoms: Iterable[Atom], free: frozenset[Var], most: int) -> Regions | None:
    """The variable that conditions on free variables tell apart in the fewest parts; of at most so many values, where
    its parts do not lie side by side."""
    points: dict[Var, set[int]] = defaultdict(set)
    scattered: set[Var] = set()
    for atom in atoms:
        if isinstance(atom, Guard) and atom.form.free <= free:
            digit = atom.form.items[0][0]
            if len(atom.form.items) == 1 and isinstance(digit, Digit) and digit.top:
                at = (atom.lo, None if atom.hi is None else atom.hi + 1)
                points[digit.var].update(end * digit.low for end in at if end is not None)
            else:
                scattered |= atom.form.free
    each = [_one_by_one(v) for v in scattered if v.size <= most]
    each += [_between(v, sorted({0, *at, v.size})) for v, at in points.items() if v not in scattered]
    return min((it for it in each if len(it[1]) > 1), key=lambda it: (len(it[1]), it[0].uid), default=None)


def by_blocks(atoms: Iterable[Atom], free: frozenset[Var], most: int) -> Regions | None:
    """A variable of which the block is asked that it lies in, of at most so many blocks: `2*(v div 4)`."""
    digits = (part for atom in atoms for e in indices(atom) for part, _ in e.items if isinstance(part, Digit))
    lows = {(part.var, part.low) for part in digits if part.var in free and part.low > 1 and part.top}
    blocks = [(v.size // low, v.uid, v, low) for v, low in lows if not v.size % low and v.size // low <= most]
    if not blocks:
        return None
    count, _, v, low = min(blocks, key=lambda block: block[:2])
    return _between(v, [n * low for n in range(count + 1)])


def by_remainders(atoms: Iterable[Atom], free: frozenset[Var], most: int) -> Regions | None:
    """A variable of at most so many values that is looked up in tables, clamped or divided."""
    found = {v for atom in atoms for e in indices(atom) for v in _inside_opaque(e) if v in free and v.size <= most}
    v = min(found, key=lambda v: (v.size, v.uid), default=None)
    return None if v is None else _one_by_one(v)


def _inside_opaque(e: Index) -> Iterator[Var]:
    return (v for part, _ in e.items if isinstance(part, Opaque) for v in part.free)


def _one_by_one(v: Var) -> Regions:
    return v, [expr.constant(n) for n in range(v.size)]


def _between(v: Var, points: list[int]) -> Regions:
    inside = [point for point in points if 0 <= point <= v.size]
    return v, [expr.shift(expr.of_var(expr.fresh("r", end - start)), start) for start, end in pairwise(inside)]
