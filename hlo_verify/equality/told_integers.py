"""Integers that conditions give a value: what is multiplied by them, or by how they differ, at that value.

    x*[x <= 0]    is    x*[x <= -1]             (x - y)*[x > y]    is    (x - y)*[x >= y]

So an absolute value is the same, whichever side of it 0 is on. What lies from 0 on is 0 where `x <= 0`. The integers
are elements that are what the machine holds as they stand, and places.
"""

from __future__ import annotations

from collections.abc import Collection

from hlo_verify.equality.in_cases import is_whole
from hlo_verify.equality.told_maxima import with_told_maxima
from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index
from hlo_verify.terms import algebra
from hlo_verify.terms.machine import own_value
from hlo_verify.terms.term import Atom, Guard, Poly, of_atom


def with_told(p: Poly, conditions: Collection[Guard]) -> Poly:
    """A term where some conditions hold, without integers that those which leave one value tell, and without maxima
    that are at a place which they tell."""
    p = with_told_maxima(p, conditions)
    told: dict[Atom, Poly] = {}
    for condition in () if p.doubt else conditions:
        solved = _solved(condition, told)
        if solved is not None:
            atom, value = solved
            told = {other: algebra.with_atoms(known, {atom: value}.get) for other, known in told.items()}
            told[atom] = value
    return algebra.with_atoms(p, told.get) if told else p


def _solved(condition: Guard, told: dict[Atom, Poly]) -> tuple[Atom, Poly] | None:
    """An element, and what it is where a condition holds, with what is told of others; None where that is none."""
    form = condition.form
    least = form.lo if condition.lo is None else max(condition.lo, form.lo)
    most = form.hi if condition.hi is None else min(condition.hi, form.hi)
    if least != most or not is_whole(_elements(form)):
        return None
    zero = algebra.with_atoms(algebra.of_index(expr.shift(form, -least)), told.get)
    elements = map(own_value, (part for part, _ in condition.form.items))
    for atom in (a for a in elements if a is not None):
        c = dict(zero.items).get(((atom, 1),), 0)
        if c in (1, -1):
            rest = algebra.subtract(zero, algebra.scale(of_atom(atom), c))
            return atom, algebra.scale(rest, -c)
    return None


def _elements(e: Index) -> Index:
    """What an index expression adds up that is no place."""
    return expr.add(*(expr.scale(expr.of_atom(part), c) for part, c in e.items if not isinstance(part, Digit)))
