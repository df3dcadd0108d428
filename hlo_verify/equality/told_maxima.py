"""Maxima and minima of which a condition tells where they are, as it says which element is the best.

    [argmax v. f(v) = k] * max v. f(v)    is    [argmax v. f(v) = k] * f(k)

So the weight of the expert that a row goes to is the greatest of its weights, or the weight at that expert.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from hlo_verify.equality.best_elements import BEST
from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.machine import own_value
from hlo_verify.terms.no_number import infinity
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.term import Atom, Guard, Poly, Read, of_atom


def with_told_maxima(p: Poly, conditions: Iterable[Guard]) -> Poly:
    """A term where some conditions hold, with the best elements in the place of maxima and minima."""
    told = dict[Atom, Poly]()
    for condition in conditions:
        for best, place in _told(condition):
            found = _greatest(best, place)
            if found is not None:
                told.setdefault(*found)
    return rebuilt(p, told, {}) if told else p


def _told(condition: Guard) -> Iterator[tuple[Read, Index]]:
    """Indices of best elements, each with what a condition says that it is."""
    if condition.lo is None or condition.lo != condition.hi:
        return
    for part, c in condition.form.items:
        best = own_value(part) if abs(c) == 1 else None
        if best is not None and best.tensor.kind in BEST and best.tensor.seal is None:
            rest = expr.subtract(condition.form, expr.scale(expr.of_atom(part), c))
            yield best, expr.scale(expr.shift(rest, -condition.lo), -c)


def _greatest(best: Read, place: Index) -> tuple[Atom, Poly] | None:
    """The maximum that stands for the value at the best index, and what it is by the element at a place; None of values
    that may be no numbers, where an initial one may be the best, and of other indices than places."""
    extremum = BEST[best.tensor.kind]
    bound, (value, index, first, _) = unfold(best)
    worst = infinity(-1 if extremum == "max" else 1)
    if len(bound) != 1 or value.doubt or first is not worst:  # integers have a least one
        return None
    (v,) = bound
    if index is not algebra.of_index(expr.of_var(v)) or place.lo < 0 or place.hi >= v.size:
        return None
    whole = reduce_extremum(extremum, [v], value)
    extrema = [(a, c) for mono, c in whole.items for a, n in mono if len(mono) == n == 1 and _is_extremum(a)]
    if len(extrema) != 1:
        return None
    ((atom, c),) = extrema
    beside = algebra.subtract(whole, algebra.scale(of_atom(atom), c))
    there = algebra.substitute(value, {v: place})
    return atom, algebra.scale(algebra.subtract(there, beside), Fraction(1, c) if isinstance(c, int) else 1 / c)


def _is_extremum(atom: Atom) -> bool:
    return isinstance(atom, Read) and atom.tensor.kind in BEST.values()
