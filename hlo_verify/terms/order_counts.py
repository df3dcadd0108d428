"""How many integers lie below another, compared with a place in their order: what the integer there is.

    [count v. [f(v) <= k]  <= r]   is  [f in order at r  > k]        for 0 <= r < n, the number of those counted
    [count v. [f(v) >= k]  <= r]   is  [f in order at n-1-r  < k]
     count k. [k < e]              is  [e >= 0]*e                   for an integer e <= n that is looked up

So where tokens lie sorted by their expert, row r is one of expert k where as many belong to those before k as are at
most r, and more than r to those up to k. That is how groups of a ragged product are told apart, by offsets; and how
many of these are at most r is what expert row r is of.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.assumed_order import is_ascending_along, is_permutation_along
from hlo_verify.terms.counts import multiple_of
from hlo_verify.terms.definitions import define
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.machine import as_index, own_value
from hlo_verify.terms.ordered import VALUES, is_ordered
from hlo_verify.terms.products import multiply, subtract
from hlo_verify.terms.term import ONE, ZERO, Atom, Guard, Number, Poly, Read, Tensor, of_atom, value_of
from hlo_verify.terms.truths import is_count, what_is_counted
from hlo_verify.terms.used import used

Bound = int | None


def how_many_below(bound: Sequence[Var], items: Sequence[tuple[Atom, Number]]) -> Poly | None:
    """For how many values of a variable a single condition on it and on integers that are looked up holds, `v < e` or
    `v >= e` with e <= n; None of others. Below an integer that is negative, as a label that says to ignore its row,
    there are none."""
    if len(bound) != 1 or len(items) != 1 or not isinstance(guard := items[0][0], Guard):
        return None
    (v,) = bound
    c = multiple_of(v, guard.form)
    rest = expr.subtract(guard.form, expr.scale(expr.of_var(v), c))
    if abs(c) != 1 or v in rest.free or not any(map(_is_looked_up, rest.items)):
        return None
    if guard.lo is None and guard.hi is not None:
        reach = expr.shift(expr.scale(rest, -1), guard.hi)  # c*v is at most that
    elif guard.hi is None and guard.lo is not None:
        reach = expr.shift(rest, -guard.lo)  # -c*v is
    else:
        return None
    is_below = (c > 0) == (guard.lo is None)
    integer = expr.shift(reach, 1) if is_below else expr.scale(reach, -1)
    if integer.hi > v.size or (integer.lo < 0 and not all(map(_is_label, rest.items))):
        return None
    used("how many are below")
    below = multiply(guards.interval(integer, 0, None), algebra.of_index(integer))
    return below if is_below else subtract(algebra.of_index(expr.constant(v.size)), below)


def asked_of_order(form: Index, lo: Bound, hi: Bound) -> Poly | None:
    """`[lo <= form <= hi]` where a form is a place less a count of integers that lie below another, or above; None
    where it is none of these."""
    for part, c in form.items:
        rest = expr.subtract(form, expr.scale(expr.of_atom(part), c))
        if abs(c) != 1 or not rest.items or any(isinstance(other, Opaque) for other, _ in rest.items):
            continue
        counted = _below(part)
        if counted is None:
            continue
        most, least = (hi, lo) if c > 0 else (None if lo is None else -lo, None if hi is None else -hi)
        place = expr.scale(rest, -c)
        within = ONE if most is None else _at_most(counted, expr.shift(place, most))
        below = ZERO if least is None else _at_most(counted, expr.shift(place, least - 1))
        if within is not None and below is not None:
            used("place in order")
            return multiply(within, subtract(ONE, below))
    return None


def _is_looked_up(item: tuple[expr.Atom, int]) -> bool:
    return isinstance(item[0], Opaque) and item[0].operator == "value"


def _is_label(item: tuple[expr.Atom, int]) -> bool:
    own = value_of(item[0]).atom if isinstance(item[0], Opaque) and item[0].operator == "value" else None
    return own is not None and not is_count(own)


Counted = tuple[Var, Poly, Opaque, Guard]
"""What is counted: the values of a variable, elements of these, and the condition, which bounds an integer on one side
that is such an element."""


def _below(part: expr.Atom) -> Counted | None:
    """What an integer counts, if those are elements that are at most something, or at least."""
    count = value_of(part).atom if isinstance(part, Opaque) and part.operator == "value" else None
    if not isinstance(count, Read) or not is_count(count) or not _is_bounded(count.tensor):
        return None
    counted = what_is_counted(count)
    guard = None if counted is None else counted[1].atom
    if counted is None or not isinstance(guard, Guard) or (guard.lo is None) == (guard.hi is None):
        return None
    bound = counted[0]
    if part.lo > 0 or part.hi < prod(v.size for v in bound):
        return None
    elements = [(a, c) for a, c in guard.form.items if not a.free.isdisjoint(bound)]
    if len(elements) != 1 or abs(elements[0][1]) != 1 or not isinstance(elements[0][0], Opaque):
        return None
    own = own_value(elements[0][0])
    if own is None or own.doubt & INFINITE or is_ordered(own, VALUES) or not own.free.issuperset(bound):
        return None
    v, f = _in_one_line(own, bound)
    if is_permutation_along(f.atom, v) or is_ascending_along(f.atom, v):
        return None
    return v, f, elements[0][0], guard


def _in_one_line(own: Read, bound: Sequence[Var]) -> tuple[Var, Poly]:
    """An element of several dimensions as one of a single one, in the order in which a reshape has them."""
    if len(bound) == 1:
        return bound[0], of_atom(own)
    first = {v: next((n for n, e in enumerate(own.indices) if v in e.free), 0) for v in bound}
    one, digits, below = expr.fresh("f", prod(v.size for v in bound)), dict[Var, Index](), 1
    for v in sorted(bound, key=lambda v: (-first[v], v.uid)):
        digits[v] = expr.modulo(expr.floor_div(expr.of_var(one), below), v.size)
        below *= v.size
    return one, algebra.substitute(of_atom(own), digits)


@once_a_session
def _is_bounded(source: Tensor) -> bool:
    """Whether a sum counts for which values of its variables one condition holds, as it is defined."""
    return isinstance(source.bodies[0].atom, Guard)


def _at_most(counted: Counted, place: Index) -> Poly | None:
    """Whether the count is at most a place, one of all; None where it may be none."""
    (v, f, element, guard) = counted
    if place.lo < 0 or place.hi >= v.size:
        return None
    c = dict(guard.form.items)[element]
    rest = expr.subtract(guard.form, expr.scale(expr.of_atom(element), c))
    is_below = (c > 0) == (guard.lo is None)  # the count is of those at most something
    place = place if is_below else expr.subtract(expr.constant(v.size - 1), place)
    own = own_value(element)
    assert own is not None
    there = define("sort", [v], (f,), attributes=VALUES, at=(place,), ordered=True, dtype=own.tensor.dtype)
    found = expr.add(expr.scale(as_index(there, element.lo, element.hi), c), rest)
    if guard.lo is None:
        assert guard.hi is not None
        return guards.interval(found, guard.hi + 1, None)
    return guards.interval(found, None, guard.lo - 1)
