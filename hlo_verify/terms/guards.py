"""Guards: Iverson brackets over intervals of an affine form, and sums of guarded monomials.

A product of guards on one form is the guard of the intersection. A sum of monomials that differ
only in their guard on one form is a step function of that form; its canonical form has one monomial
for each maximal piece on which the coefficient is constant and not zero.
"""

from __future__ import annotations

from collections import Counter
from math import gcd

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.index.residues import divided, is_never_between
from hlo_verify.index.tables import places_between
from hlo_verify.looking import look
from hlo_verify.memory import once_a_session
from hlo_verify.terms.assumed_order import compared
from hlo_verify.terms.functions import POSITIVE
from hlo_verify.terms.term import (
    ONE,
    ZERO,
    Apply,
    Atom,
    Guard,
    Monomial,
    Number,
    Poly,
    Read,
    asked,
    make_guard,
    of_atom,
    value_of,
)
from hlo_verify.terms.used import used

Bound = int | None


def interval(form: Index, lo: Bound, hi: Bound) -> Poly:
    """`[lo <= form <= hi]` as a polynomial: 0, 1, or one canonical guard; of a truth value, that or its opposite."""
    g = interval_atom(form, lo, hi)
    if isinstance(g, bool):
        return ONE if g else ZERO
    asked_of = _truth_asked(g)
    if asked_of is None:
        counted = _count_asked(g)
        return of_atom(g) if counted is None else counted
    return asked_of if g.hi is None or g.lo == 1 else _not(asked_of)


def _truth_asked(g: Guard) -> Poly | None:
    """The condition whose machine value, 1 or 0, a guard asks for."""
    (atom, c), *others = g.form.items
    if others or c != 1 or not isinstance(atom, expr.Opaque) or (atom.operator, atom.lo, atom.hi) != ("value", 0, 1):
        return None
    p = value_of(atom)
    is_condition = len(p.items) == 1 and p.items[0][1] == 1 and all(_is_asked(a) for a, _ in p.items[0][0])
    return p if is_condition else None


def _is_asked(atom: Atom) -> bool:
    """Whether a guard asks for an atom itself: for a condition on places, an extremum of truth values, or the sign of
    an extremum and a number, which is one. Other signs stay values, so that operations on them are recognised."""
    if isinstance(atom, Apply):
        parts = [a for mono, _ in atom.args[0].items for a, _ in mono] if atom.function == POSITIVE else []
        return len(parts) == 1 and isinstance(parts[0], Read) and parts[0].tensor.kind in ("max", "min")
    return atom.boolean and isinstance(atom, Guard | Read)


@once_a_session
def _count_asked(g: Guard) -> Poly | None:
    """What a guard says of conditions that it counts, or of integers of which it asks about the greatest."""
    operators = {atom.operator for atom, _ in g.form.items if isinstance(atom, expr.Opaque)}
    if operators.isdisjoint(("value", "mod")):
        return None
    from hlo_verify.terms import compared_counts, compared_extrema, order_counts, sorted_bits  # all built on guards

    asking = (compared_counts.asked_of_integers, order_counts.asked_of_order, compared_extrema.asked_of_extremum)
    asked = (ask(g.form, g.lo, g.hi) for ask in (*asking, sorted_bits.asked_of_bits))
    return next((found for found in asked if found is not None), None)


def _not(condition: Poly) -> Poly:
    """1 where a product of conditions is 0."""
    from hlo_verify.terms.addition import build  # which is built on guards

    return build({(): 1, condition.items[0][0]: -1})


def interval_atom(form: Index, lo: Bound, hi: Bound) -> Guard | bool:
    """The canonical guard, or True or False where the range of the form decides it.

    What asks the same of the same variables becomes one object, however it was asked:

    >>> v = expr.of_var(expr.var("v", "", 8))
    >>> asked = expr.shift(expr.scale(v, -2), 7)     # 7 - 2*v
    >>> interval_atom(asked, -2, 1)                  # -2 <= 7 - 2*v <= 1
    [3<=v<=4]
    >>> interval_atom(asked, None, 7)                # 7 - 2*v is at most 7 anyway
    True
    >>> interval_atom(asked, 2, 2)                   # and never even
    False
    >>> interval_atom(expr.floor_div(v, 3), 1, 1)    # v div 3 is 1
    [3<=v<=5]
    """
    while True:
        lo = None if lo is not None and form.lo >= lo else lo
        hi = None if hi is not None and form.hi <= hi else hi
        if lo is None and hi is None:
            return True
        if (lo is not None and (form.hi < lo or (hi is not None and hi < lo))) or (hi is not None and form.lo > hi):
            return False
        form, lo, hi = _forwards(form, lo, hi)
        if lo is not None and hi is not None and is_never_between(form, lo, hi):
            return False
        answer = compared(form, lo, hi)
        if isinstance(answer, bool):
            return answer
        simpler = answer or divided(form, lo, hi) or _undone(form, lo, hi) or _drop_low_digits(form, lo, hi)
        if simpler is None:
            return make_guard(form, lo, hi)
        form, lo, hi = simpler


Question = tuple[Index, Bound, Bound]
"""Whether a form lies between two bounds."""


def _forwards(form: Index, lo: Bound, hi: Bound) -> Question:
    """The question without a constant in the form, and with a positive first coefficient."""
    if form.const:
        lo = None if lo is None else lo - form.const
        hi = None if hi is None else hi - form.const
        form = expr.shift(form, -form.const)
    if form.items[0][1] < 0:
        return expr.scale(form, -1), None if hi is None else -hi, None if lo is None else -lo
    return form, lo, hi


def _undone(form: Index, lo: Bound, hi: Bound) -> Question | None:
    """A question about a quotient as one about what is divided, and so of machine values and entries of tables."""
    (atom, c), *others = form.items
    if others or c != 1:
        return None if lo is None or hi is None else _unwrapped_beside(form, lo, hi)
    place = places_between(atom, lo, hi) if isinstance(atom, expr.Opaque) and atom.operator == "table" else None
    if place is not None:
        used("table in a condition")
        return place
    quotient = _quotient_of(atom)
    if quotient is not None:  # lo <= e div m <= hi is lo*m <= e <= hi*m + m - 1
        used("quotient in a condition")
        e, m = quotient
        return e, None if lo is None else lo * m, None if hi is None else hi * m + m - 1
    whole = None if lo is None or hi is None else _unwrapped(atom, lo, hi)
    return None if whole is None else (whole, lo, hi)


def _quotient_of(atom: expr.Atom) -> tuple[Index, int] | None:
    """What is divided by what, where an atom is a quotient that is no digit of equal parts of a variable."""
    if isinstance(atom, expr.Opaque):
        return (atom.exprs[0], atom.args[0]) if atom.operator == "div" else None
    return (expr.of_var(atom.var), atom.low) if atom.top and atom.var.size % atom.low else None


def _drop_low_digits(form: Index, lo: Bound, hi: Bound) -> Question | None:
    """Where the form is m*high + low and low stays below m, a guard on the high part if the bounds ask no more.

    A bound may lie where the form has no values: `3 <= 4*i + j` with j < 2 is `1 <= i`, and `2 <= 4*i + j <= 3` is
    false.
    """
    if len(form.items) < 2:
        return _drop_low_of_digit(form, lo, hi)
    for m in sorted({abs(c) for _, c in form.items if abs(c) > 1}):
        low = [(a, c) for a, c in form.items if c % m]
        low_lo = sum(c * (a.lo if c > 0 else a.hi) for a, c in low)
        low_hi = sum(c * (a.hi if c > 0 else a.lo) for a, c in low)
        if not low or low_hi - low_lo >= m:
            continue
        least = None if lo is None else -((low_hi - lo) // m)  # of the high parts that have any value in the interval
        greatest = None if hi is None else (hi - low_lo) // m
        whole = (least is None or lo is None or m * least + low_lo >= lo) and (
            greatest is None or hi is None or m * greatest + low_hi <= hi
        )
        if whole:
            used("low digits in a condition")
            return expr.build(0, [(a, c // m) for a, c in form.items if c % m == 0]), least, greatest
    return None


def _drop_low_of_digit(form: Index, lo: Bound, hi: Bound) -> Question | None:
    """`[c*q <= v < c*r]` over one digit whose radix c divides is a guard on its high part."""
    atom, _ = form.items[0]
    if not isinstance(atom, expr.Digit):
        return None
    m = gcd(atom.radix, 0 if lo is None else lo, 0 if hi is None else hi + 1)
    if m in (1, atom.radix):
        return None
    used("low digits in a condition")
    return expr.floor_div(form, m), (None if lo is None else lo // m), (None if hi is None else (hi + 1) // m - 1)


def on_whole_variable(g: Guard) -> Question:
    """A guard on the high part of a variable as one on the variable: what takes its place need not split there."""
    if len(g.form.items) == 1:
        atom, c = g.form.items[0]
        if isinstance(atom, expr.Digit) and atom.top and atom.low > 1 and c == 1:
            m = atom.low
            lo, hi = None if g.lo is None else g.lo * m, None if g.hi is None else g.hi * m + m - 1
            return expr.of_var(atom.var), lo, hi
    return g.form, g.lo, g.hi


def _unwrapped_beside(form: Index, lo: int, hi: int) -> Question | None:
    """A question about a machine value and other integers as one about what it holds, where the values of these show
    that it lies in the type's range if the answer is yes: `[0 <= j - wrap(y - 8*d) <= 0]` is `[0 <= j - y + 8*d <= 0]`.
    """
    for atom, c in form.items:
        if abs(c) == 1 and isinstance(atom, expr.Opaque) and atom.operator == "value":
            rest = expr.subtract(form, expr.scale(expr.of_atom(atom), c))
            least, most = (lo - rest.hi, hi - rest.lo) if c == 1 else (rest.lo - hi, rest.hi - lo)
            whole = _unwrapped(atom, least, most) if atom.lo <= least and most <= atom.hi else None
            if whole is not None:
                return expr.add(rest, expr.scale(whole, c)), lo, hi
    return None


def _unwrapped(atom: expr.Atom, lo: int, hi: int) -> Index | None:
    """The integer `t + e` in place of its machine value, where only values that do not wrap lie in `[lo, hi]`.

    If the machine value w of `t + e` lies in `[lo, hi]`, then `w - e` lies in the type's range and equals t
    modulo 2^n, so it is t; the converse is plain.
    """
    from hlo_verify.terms.machine import split_value  # addition is built on guards

    if not isinstance(atom, expr.Opaque) or atom.operator != "value":
        return None
    parts = split_value(atom)
    if parts is None:
        return None
    t, e = parts
    if lo - e.hi < atom.lo or hi - e.lo > atom.hi:
        return None
    used("machine value in a condition")
    return expr.add(t, e)


def intersect(a: Guard, b: Guard) -> Guard | bool:
    """The product of two guards that ask about one form (`about`)."""
    (form, *first), (_, *second) = on_whole_variable(a), on_whole_variable(b)
    los, his = ([x for x in bounds if x is not None] for bounds in zip(first, second, strict=True))
    return interval_atom(form, max(los) if los else None, min(his) if his else None)


def about(g: Guard) -> Index:
    """The form that a guard asks about: `[v div 2 >= 1]` and `[v = 1]` both ask about v, and exclude each other."""
    return on_whole_variable(g)[0]


def halves(g: Guard) -> tuple[Index, tuple[Bound, Bound], tuple[Bound, Bound]]:
    """What a guard asks about (`about`), and the intervals above and below the first bound that it asks for: of
    `[n >= 5]`, where n is at least 5, and where it is at most 4."""
    form, lo, hi = on_whole_variable(g)
    first = lo if lo is not None else (hi or 0) + 1
    return form, (first, None), (None, first - 1)


def left_between(g: Guard, lo: Bound, hi: Bound) -> Poly:
    """What is left of a guard where the form that it asks about (`about`) is known to lie between two bounds: of
    `[3 <= n <= 7]`, where n is at least 5, `[n <= 7]`."""
    form, least, most = on_whole_variable(g)
    if (lo is not None and most is not None and most < lo) or (hi is not None and least is not None and least > hi):
        return ZERO
    least = None if least is None or (lo is not None and least <= lo) else least
    most = None if most is None or (hi is not None and most >= hi) else most
    return ONE if least is None and most is None else interval(form, least, most)


def complement(g: Guard) -> list[tuple[Bound, Bound]]:
    """The intervals of the form on which a guard does not hold."""
    outside: list[tuple[Bound, Bound]] = []
    if g.lo is not None:
        outside.append((None, g.lo - 1))
    if g.hi is not None:
        outside.append((g.hi + 1, None))
    return outside


def ends(g: Guard) -> tuple[int, int]:
    """The least and the greatest value of its form for which a guard may hold."""
    return g.form.lo if g.lo is None else g.lo, g.form.hi if g.hi is None else g.hi


def guards_of(mono: Monomial) -> list[Guard]:
    """The guards among the atoms of a monomial."""
    return [atom for atom, _ in mono if isinstance(atom, Guard)]


def order(guard: Guard) -> tuple[tuple[int, ...], bool, bool, int]:
    """What conditions are ordered by: what they ask of, not where; then by age."""
    return asked(guard.form), guard.lo is None, guard.hi is None, guard.uid


def without(mono: Monomial, guard: Guard) -> Monomial:
    """The monomial less one guard."""
    return tuple(item for item in mono if item[0] is not guard)


def with_guard(mono: Monomial, guard: Guard | bool) -> Monomial | None:
    """The monomial times a guard; None if that is 0."""
    if guard is False:
        return None
    if guard is True:
        return mono
    own = next((g for g in guards_of(mono) if about(g) is about(guard)), None)
    if own is not None:
        return with_guard(without(mono, own), intersect(own, guard))
    return tuple(sorted((*mono, (guard, 1)), key=lambda item: item[0].uid))


def merge_steps(terms: dict[Monomial, Number]) -> dict[Monomial, Number]:
    """Bring a sum of monomials to the canonical form for step functions, one form at a time."""
    guarded = [mono for mono in terms if any(isinstance(a, Guard) for a, _ in mono)]
    if not guarded or len(terms) < 2:
        return terms
    look()
    for _ in range(8):
        groups: dict[tuple[Index, Monomial], list[tuple[Bound, Bound, Number]]] = {}
        for mono, c in terms.items():
            for g in guards_of(mono):
                form, lo, hi = on_whole_variable(g)
                groups.setdefault((form, without(mono, g)), []).append((lo, hi, c))
        changed = False
        for (form, rest), pieces in sorted(groups.items(), key=lambda group: asked(group[0][0])):
            if rest in terms:
                pieces = [*pieces, (None, None, terms[rest])]
            if len(pieces) < 2:
                continue
            members = [_guarded(rest, form, lo, hi) for lo, hi, _ in pieces]
            if not all(mono in terms and terms[mono] == p[2] for mono, p in zip(members, pieces, strict=True)):
                continue  # another merge of this round touched them
            steps = steps_of(pieces, form)
            if Counter(steps) == Counter(pieces):
                continue
            changed = True
            used("steps joined")
            for member in members:
                if member is not None:
                    del terms[member]
            for lo, hi, c in steps:
                merged = with_guard(rest, interval_atom(form, lo, hi))
                if merged is not None:
                    total = terms.get(merged, 0) + c
                    if total:
                        terms[merged] = total
                    else:
                        terms.pop(merged, None)
        if not changed:
            return terms
    return terms


def _guarded(rest: Monomial, form: Index, lo: Bound, hi: Bound) -> Monomial | None:
    return rest if lo is None and hi is None else with_guard(rest, interval_atom(form, lo, hi))


def steps_of(pieces: list[tuple[Bound, Bound, Number]], form: Index | None = None) -> list[tuple[Bound, Bound, Number]]:
    """The maximal pieces of constant, nonzero coefficient of a sum of intervals, of a form if one is given: pieces
    between which it has no values are one."""
    changes: dict[int, Number] = {}
    level: Number = 0
    for lo, hi, c in pieces:
        if lo is None:
            level += c
        else:
            changes[lo] = changes.get(lo, 0) + c
        if hi is not None:
            changes[hi + 1] = changes.get(hi + 1, 0) - c
    steps: list[tuple[Bound, Bound, Number]] = []
    start: Bound = None
    for point in sorted(p for p, c in changes.items() if c):
        if level:
            steps.append((start, point - 1, level))
        level += changes[point]
        start = point
    if level:
        steps.append((start, None, level))
    return steps if form is None else _without_gaps(steps, form)


def _without_gaps(steps: list[tuple[Bound, Bound, Number]], form: Index) -> list[tuple[Bound, Bound, Number]]:
    """The pieces of a form with those joined between which it has no values."""
    joined = steps[:1]
    for lo, hi, c in steps[1:]:
        first, before, same = joined[-1]
        has_gap = c == same and before is not None and lo is not None and is_never_between(form, before + 1, lo - 1)
        joined[-1:] = [(first, hi, c)] if has_gap else [joined[-1], (lo, hi, c)]
    return joined
