"""Variables of a sum that a condition fixes, or leaves part of their range.

    sum v<n. [v = e] g(v)               = [0 <= e < n] g(e)                    one point
    sum v<n. [(v + e) mod m = r] g(v)   = sum u<n/m. g((r - e) mod m + m*u)    one in every
    sum v<n. [table[v] = e] g(v)        = [e is an entry] g(place[e])          one entry
    sum v<n. [a <= v <= b] g(v)         = sum w<b-a+1. g(a + w)                part of a range

All other conditions are among the factors g.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.index.tables import evaluate
from hlo_verify.limits import allows
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.factors import of_factors
from hlo_verify.terms.term import Atom, Guard, Number, Poly
from hlo_verify.terms.used import used

Item = tuple[Atom, Number]

_Fewer = tuple[list[Var], Poly]
"""A sum over fewer values: what it is over, and of what."""


def eliminated(bound: Sequence[Var], items: Sequence[Item]) -> _Fewer | None:
    """The same sum less one guard that fixes a bound variable or shrinks its range; None if there is no such guard."""
    for guard, _ in items:
        if not isinstance(guard, Guard):
            continue
        for atom, c in guard.form.items:
            others = [item for item in items if item[0] is not guard]
            if isinstance(atom, Opaque) and len(atom.free) == 1 and atom.free <= set(bound) and abs(c) == 1:
                looked_up = _one_entry(bound, atom, c, guard, others)
                if looked_up is not None:
                    return looked_up
            if isinstance(atom, Opaque) and atom.operator == "mod" and len(guard.form.items) == 1:
                in_steps = _one_in_every(bound, atom, guard, others)
                if in_steps is not None:
                    return in_steps
            if not (isinstance(atom, Digit) and atom.var in bound and atom.top):
                continue
            v = atom.var
            rest = expr.build(0, [(a, k) for a, k in guard.form.items if a is not atom])
            if v in rest.free:
                continue
            lo, hi = guards.ends(guard)
            if hi - lo + 1 == abs(c) and atom.low == 1:
                return _one_point(bound, v, c, rest, (lo, hi), others)
            if c == 1 and not rest.items:  # lo <= v div low <= hi
                lo, hi = max(lo * atom.low, 0), min((hi + 1) * atom.low, v.size) - 1
                used("part of a range")
                smaller = expr.fresh("f", hi - lo + 1)
                value = expr.shift(expr.of_var(smaller), lo)
                body = algebra.substitute(of_factors(others), {v: value})
                return [smaller if b is v else b for b in bound], body
    return None


def _one_point(
    bound: Sequence[Var], v: Var, c: int, rest: Index, window: tuple[int, int], others: list[Item]
) -> tuple[list[Var], Poly]:
    used("one point")
    lo, hi = window
    if c > 0:  # the largest v with c*v <= hi - rest
        value = expr.floor_div(expr.shift(expr.scale(rest, -1), hi), c)
    else:  # the largest v with |c|*v <= rest - lo
        value = expr.floor_div(expr.shift(rest, -lo), -c)
    return [b for b in bound if b is not v], _where(v, value, others)


def _where(v: Var, value: Index, items: list[Item]) -> Poly:
    """A product where a variable is this, if that is one of the variable's values."""
    inside = guards.interval(value, 0, v.size - 1)
    return algebra.multiply(inside, algebra.substitute(of_factors(items), {v: value}))


def _one_in_every(bound: Sequence[Var], remainder: Opaque, guard: Guard, others: list[Item]) -> _Fewer | None:
    """The sum where a condition asks for one remainder of what a variable is added to: one of every m values of the
    variable has it, and which one follows from the rest, as the variable's factor has an inverse modulo m."""
    ((_, sign),) = guard.form.items
    lo, hi = guards.ends(guard)
    if lo != hi or abs(sign) != 1:
        return None
    (e,), (m,) = remainder.exprs, remainder.args
    asked = (lo - guard.form.const) * sign
    for atom, c in e.items:
        if not (isinstance(atom, Digit) and atom.var in bound and atom.low == 1 and atom.top) or gcd(c, m) != 1:
            continue
        v = atom.var
        rest = expr.build(e.const - asked, [(a, k) for a, k in e.items if a is not atom])
        if v in rest.free:
            continue
        used("one in every")
        value = expr.modulo(expr.scale(rest, -pow(c, -1, m)), m)
        left = [b for b in bound if b is not v]
        if v.size > m:
            turn = expr.fresh("f", -(-v.size // m))
            value, left = expr.add(value, expr.scale(expr.of_var(turn), m)), [*left, turn]
        return left, _where(v, value, others)
    return None


def _one_entry(bound: Sequence[Var], entry: Opaque, c: int, guard: Guard, others: list[Item]) -> _Fewer | None:
    """The sum where a condition asks for one entry of a table of which no two are equal: there the variable is the
    place of that entry, if there is one."""
    (v,) = entry.free
    rest = expr.subtract(guard.form, expr.scale(expr.of_atom(entry), c))
    if guard.lo != guard.hi or guard.lo is None or v in rest.free or not allows("fitted_values", v.size):
        return None
    entries = evaluate(expr.of_atom(entry), v)
    if entries is None or len(set(entries.tolist())) < v.size:
        return None
    least, most = int(entries.min()), int(entries.max())
    if not allows("fitted_values", most - least + 1):
        return None
    places = [-1] * (most - least + 1)
    for n, value in enumerate(entries.tolist()):
        places[value - least] = n
    used("one entry")
    asked = expr.scale(expr.subtract(expr.constant(guard.lo), rest), c)
    place = expr.lookup(tuple(places), expr.shift(asked, -least))
    inside = algebra.multiply(guards.interval(asked, least, most), guards.interval(place, 0, None))
    body = algebra.multiply(inside, algebra.substitute(of_factors(others), {v: place}))
    return [b for b in bound if b is not v], body
