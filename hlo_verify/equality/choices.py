"""What a mask leaves, in one form whatever the mask is made of: positions, a table, values.

exp([c]*t)                       = [c]*exp(t) + [not c]
[table(k) = 1]                   = [0 <= k <= 1] + [6 <= k <= 7]          for the table 1, 1, 0, 0, 0, 0, 1, 1
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Opaque, Var
from hlo_verify.index.tables import evaluate
from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import EXPONENTIAL
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, Apply, Atom, Guard, Ix, Monomial, Number, Poly, make_poly, of_atom


def exponential_by_cases(atom: Apply, n: Number) -> Poly | None:
    """A power of an exponential as the sum of what it is where conditions hold and where they do not; None where no
    condition selects its exponent, or where that may be no number."""
    if atom.function != EXPONENTIAL or len(atom.args[0].items) != 1 or atom.args[0].doubt:
        return None
    ((mono, c),) = atom.args[0].items
    conditions = tuple(item for item in mono if item[0].boolean)
    if not conditions:
        return None
    rest: Monomial = tuple(item for item in mono if not item[0].boolean)
    holding = algebra.power_of(apply(EXPONENTIAL, (make_poly(((rest, c),)),)), n)
    on, off = _either(conditions)
    return algebra.add(algebra.expanded(on, holding), off)


def _either(conditions: Monomial) -> tuple[Poly, Poly]:
    """1 where conditions hold, and 1 where one of them does not."""
    on = ONE
    for atom, _ in conditions:
        on = algebra.expanded(on, _as_guard(atom))
    single = on.atom
    if isinstance(single, Guard) and (single.lo is None or single.hi is None):
        lo, hi = single.lo, single.hi
        below = None if lo is None else lo - 1
        return on, guards.interval(single.form, None if hi is None else hi + 1, below)
    return on, algebra.subtract(ONE, on)


def _as_guard(atom: Atom) -> Poly:
    """A condition, as a guard where it is an index value."""
    return guards.interval(atom.index, 1, None) if isinstance(atom, Ix) else of_atom(atom)


def by_runs(mono: Monomial, bound: Collection[Var]) -> Poly | None:
    """A product with a condition that asks a table of one bound variable, as a sum over the ranges where it holds."""
    for atom, _ in mono:
        runs = _runs_over(atom, bound)
        if runs is not None:
            v, ranges = runs
            at = expr.of_var(v)
            holding = algebra.add(*(guards.interval(at, start, stop - 1) for start, stop in ranges))
            return algebra.expanded(make_poly(((tuple(item for item in mono if item[0] is not atom), 1),)), holding)
    return None


def narrowed(mono: Monomial, bound: Collection[Var]) -> list[tuple[dict[Var, Var], Poly]] | None:
    """A sum of a product with a condition on a bound variable and on free ones, as one sum over where that may or may
    not hold, and one over where it surely does; each is a smaller variable in place of the bound one, and a product.

    For `row < 4` and `key < 16`, `[key <= row]` holds for key 0, may hold for keys 1 to 3, and does not beyond.
    """
    for atom, _ in mono:
        parts = _parts(atom, bound) if isinstance(atom, Guard) else None
        if parts is None:
            continue
        v, ranges = parts
        others = make_poly(((tuple(item for item in mono if item[0] is not atom), 1),))
        found = []
        for start, stop, is_sure in ranges:
            smaller = expr.fresh("f", stop - start)
            body = others if is_sure else make_poly(((mono, 1),))
            found.append(({v: smaller}, algebra.substitute(body, {v: expr.shift(expr.of_var(smaller), start)})))
        return found
    return None


def _parts(guard: Guard, bound: Collection[Var]) -> tuple[Var, list[tuple[int, int, bool]]] | None:
    """The ranges of a bound variable in which a condition may hold, and whether it surely does; None where they are no
    less than all of its range."""
    if guard.lo is not None and guard.hi is not None:
        return None
    for part, c in guard.form.items:
        if not (isinstance(part, Digit) and part.low == 1 and part.top and abs(c) == 1 and part.var in bound):
            continue
        v = part.var
        rest = expr.subtract(guard.form, expr.scale(expr.of_var(v), c))
        if not rest.free.isdisjoint(bound) or not rest.free:
            continue
        # v <= at, where `at` lies between two numbers that the free variables decide; or v >= at
        is_upper = (guard.hi is not None) == (c == 1)
        ends = [c * (end - at) for end in (guard.lo, guard.hi) if end is not None for at in (rest.lo, rest.hi)]
        least, most = (min(max(end, -1), v.size) for end in (min(ends), max(ends)))
        if is_upper:
            ranges = [(0, least + 1, True), (least + 1, most + 1, False)]
        else:
            ranges = [(least, most, False), (most, v.size, True)]
        clipped = [(max(start, 0), min(stop, v.size), sure) for start, stop, sure in ranges]
        clipped = [each for each in clipped if each[0] < each[1]]
        if clipped != [(0, v.size, False)]:
            return v, clipped
    return None


Runs = tuple[tuple[int, int], ...]
"""Ranges that lie apart, as where each starts and stops."""


def _runs_over(atom: Atom, bound: Collection[Var]) -> tuple[Var, Runs] | None:
    if not isinstance(atom, Guard) or len(atom.form.free) != 1:
        return None
    (v,) = atom.form.free
    if v not in bound or not any(isinstance(part, Opaque) for part, _ in atom.form.items):
        return None
    found = _runs(atom)
    return None if found is None or not allows("enumerated_values", len(found)) else (v, found)


@once_a_session
def _runs(atom: Guard) -> Runs | None:
    """Where a condition on one variable holds; None where its values are not known, or are too many."""
    (v,) = atom.form.free
    values = evaluate(atom.form, v) if allows("fitted_values", v.size) else None
    if values is None:
        return None
    holds = np.ones(v.size, dtype=bool)
    if atom.lo is not None:
        holds &= values >= atom.lo
    if atom.hi is not None:
        holds &= values <= atom.hi
    ends = np.flatnonzero(np.diff(np.concatenate([[False], holds, [False]]).astype(np.int8)))
    return tuple(zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True))
