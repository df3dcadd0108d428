"""The rank of an integer among others, by counts: where a counting sort puts it.

    count v. [k(v) < k(t)]  +  count v. [k(v) = k(t)] [v < t]       is  order (order k) at t
    count v. [k(v) <= k(t)] - count v. [k(v) = k(t)] + count v. [k(v) = k(t)] [v <= t] - 1      the same

So tokens that are put behind those of all experts before theirs, in the order in which they come, are the tokens sorted
by expert. Counts are compared as what they count of each v; the 1 that is left is that of v = t.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session
from hlo_verify.ops.in_order import inverse, order
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.conditions import Case, Conditions
from hlo_verify.terms.counts import multiple_of
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.machine import own_value
from hlo_verify.terms.term import ONE, Atom, Guard, Number, Poly, Read, Tensor, make_poly, of_atom
from hlo_verify.terms.truths import is_count

_Count = tuple[Read, Poly]
"""A count, and what it is multiplied by: a number, and conditions on other things than what is counted."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """An integer that is looked up at a place, which hangs on what a sum is over, and that of another place."""

    element: Opaque
    other: Opaque
    place: Index
    own: Index


def as_integer_rank(p: Poly) -> Poly | None:
    """Counts of integers less than another, and of equal ones before it, as that one's rank; None of other terms."""
    counts = _counts(p)
    if counts is None:
        return None
    constant = dict(p.items).get((), 0)
    for atom, _ in counts:
        bound, (body,) = unfold(atom)
        for found in _compared(bound, body) if len(bound) == 1 else ():
            v, t = bound[0], found.own
            if found.place is expr.of_var(v) and t.lo >= 0 and t.hi < v.size:
                ascends = _is_rank(counts, constant, v, found)
                return None if ascends is None else _rank(v, found, ascends)
    return None


def _counts(p: Poly) -> list[_Count] | None:
    """The counts, under conditions, that a term is a sum of beside a number; None of other terms."""
    found = []
    for mono, c in p.items:
        counts = [atom for atom, n in mono if n == 1 and isinstance(atom, Read) and is_count(atom)]
        others = [item for item in mono if item[0] not in counts]
        if len(counts) != 1 or not _compares(counts[0].tensor) or not all(isinstance(a, Guard) for a, _ in others):
            if mono:
                return None
            continue
        found.append((counts[0], make_poly(((tuple(others), c),))))
    return found if len(found) > 1 else None


@once_a_session
def _compares(source: Tensor) -> bool:
    """Whether a sum counts by comparisons of two integers that are looked up, or of one with a parameter."""
    asked = guards.guards_of(source.bodies[0].items[0][0])
    return any(isinstance(part, Opaque) for guard in asked for part, _ in guard.form.items)


def _compared(bound: tuple[Var, ...], body: Poly) -> Iterator[_Compared]:
    """What a product of conditions on variables compares, where both are elements of one tensor in one line."""
    ((mono, _),) = body.items if len(body.items) == 1 else (((), 0),)
    for guard in guards.guards_of(mono):
        parts = [(part, c) for part, c in guard.form.items if isinstance(part, Opaque) and part.operator == "value"]
        for element, c in parts:
            for other, k in parts:
                if k == -c and not element.free.isdisjoint(bound) and other.free.isdisjoint(bound):
                    places = _places(element, other)
                    if places is not None:
                        yield _Compared(element, other, *places)


def _places(element: Opaque, other: Opaque) -> tuple[Index, Index] | None:
    """The only places at which what two integers are read at differs; None where they are not of one tensor."""
    here, there = own_value(element), own_value(other)
    if here is None or there is None or here.tensor is not there.tensor:
        return None
    differing = [(a, b) for a, b in zip(here.indices, there.indices, strict=True) if a is not b]
    return differing[0] if len(differing) == 1 else None


def _is_rank(counts: list[_Count], constant: Number, v: Var, found: _Compared) -> bool | None:
    """Whether counts are of all that come before an element, in ascending order or descending; None if neither."""
    difference = expr.subtract(expr.of_atom(found.element), expr.of_atom(found.other))
    equal = guards.interval(difference, 0, 0)
    ahead = expr.subtract(expr.of_var(v), found.own)
    itself = algebra.scale(algebra.multiply(equal, guards.interval(ahead, 0, 0)), constant)
    total = itself
    for atom, under in counts:
        counted = _at_element(atom, v, found)
        if counted is None:
            return None
        total = algebra.add(total, algebra.multiply(counted, under))
    first = algebra.multiply(equal, guards.interval(ahead, None, -1))
    rest = algebra.subtract(total, first)
    for ascends, less in ((True, guards.interval(difference, None, -1)), (False, guards.interval(difference, 1, None))):
        wrong = algebra.subtract(rest, less)
        if all(_is_nothing(algebra.with_atoms(wrong, _decided(found, n)), v) for n in (-1, 0, 1)):
            return ascends
    return None


def _decided(found: _Compared, sign: int) -> Callable[[Atom], Poly | None]:
    """What conditions on two integers are where their difference has a sign: a lesser one than k(t), of those that are
    not negative, says that k(t) is not 0."""
    difference = expr.subtract(expr.of_atom(found.element), expr.of_atom(found.other))
    opposite = expr.scale(difference, -1)
    least = max(found.other.lo, found.element.lo + 1) if sign < 0 else found.other.lo
    greatest = min(found.other.hi, found.element.hi - 1) if sign > 0 else found.other.hi

    def decided(atom: Atom) -> Poly | None:
        if not isinstance(atom, Guard):
            return None
        if atom.form is expr.of_atom(found.other):
            holds = (atom.lo is None or atom.lo <= least) and (atom.hi is None or greatest <= atom.hi)
            return ONE if holds else None
        turned = 1 if atom.form is difference else -1 if atom.form is opposite else 0
        if not turned or atom.lo not in (None, 0, 1) or atom.hi not in (None, -1, 0):
            return None
        return guards.interval(expr.constant(turned * sign), atom.lo, atom.hi)

    return decided


def _is_nothing(p: Poly, v: Var) -> bool:
    """Whether a sum of products of conditions is 0 in each case of these that may be, for some value of v."""
    conditions = Conditions.of(mono for mono, _ in p.items)
    if not allows("sign_cases", conditions.count):
        return False
    return not any(case.coefficients(p.items) and _may_be(case, v) for case in conditions.cases())


def _may_be(case: Case, v: Var) -> bool:
    """Whether v may lie on the sides of all places that a case says: multiples of two expressions in which v has one
    weight differ by what no longer hangs on it, or little. (v div 4) - d is less than 0 where v - 4*d is."""
    asked = [(form, ends, weight) for form, ends in case.pieces.items() if (weight := _weight(form, v))]
    for (one, ends, weight), (other, others, beside) in combinations(asked, 2):
        ratio = Fraction(beside) / Fraction(weight)
        k, n = ratio.numerator, ratio.denominator
        apart = expr.subtract(expr.scale(one, k), expr.scale(other, n))
        lo, hi = _multiple(ends, k)
        least, greatest = _multiple(others, n)
        if lo is not None and greatest is not None and lo - greatest > apart.hi:
            return False
        if hi is not None and least is not None and hi - least < apart.lo:
            return False
    return True


def _weight(form: Index, v: Var) -> Fraction:
    """By how much an expression grows with v, in the long run: 1/4 for `v div 4`; 0 where that is not seen."""
    return next(
        (Fraction(c, a.low) for a, c in form.items if isinstance(a, Digit) and a.var is v and a.top), Fraction(0)
    )


def _multiple(ends: tuple[int | None, int | None], k: int) -> tuple[int | None, int | None]:
    lo, hi = (None if end is None else end * k for end in ends)
    return (lo, hi) if k > 0 else (hi, lo)


def _at_element(atom: Read, v: Var, found: _Compared) -> Poly | None:
    """What a count counts of element v: its variables are those at which it compares this one."""
    bound, (body,) = unfold(atom)
    for compared in _compared(bound, body):
        if compared.other is not found.other:
            continue
        inside = guards.interval(compared.place, 0, v.size - 1)
        values = _solved(bound, compared.place, v)
        if values is None or algebra.multiply(body, inside) is not body:
            continue
        there = algebra.substitute(body, values)
        for w, e in values.items():
            there = algebra.multiply(there, guards.interval(e, 0, w.size - 1))
        return there
    return None


def _solved(bound: tuple[Var, ...], place: Index, v: Var) -> dict[Var, Index] | None:
    """The values of variables for which a place is v; None where they are not told."""
    rest, values = place, dict[Var, Index]()
    for w in bound:
        rest = expr.subtract(rest, expr.scale(expr.of_var(w), multiple_of(w, place)))
    if not rest.free.isdisjoint(bound):
        return None
    ahead = expr.subtract(expr.of_var(v), rest)
    if len(bound) == 1 and abs(c := multiple_of(bound[0], place)) == 1:
        return {bound[0]: expr.scale(ahead, c)}
    below = 1
    for w in (digits := sorted(bound, key=lambda w: multiple_of(w, place))):
        if multiple_of(w, place) != below:
            return None
        digit = expr.floor_div(ahead, below)
        values[w] = digit if w is digits[-1] else expr.modulo(digit, w.size)
        below *= w.size
    return values


def _rank(v: Var, found: _Compared, ascends: bool) -> Poly | None:
    own = own_value(found.element)
    assert own is not None
    w = expr.fresh("f", v.size)
    permutation = order(v, of_atom(own), expr.of_var(w), own.tensor.dtype, ascending=ascends).atom
    if not isinstance(permutation, Read):
        return None
    return algebra.of_index(inverse(permutation, w, found.own))
