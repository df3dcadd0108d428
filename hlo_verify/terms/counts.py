"""Counts of what holds: the integers that they may be, and where what they count is sure to hold.

    1 <= sum w<n. [w <= v] [e(w) = e(v)] <= n        for v < n: v is one of those counted

So a row's number among the rows of its own expert, one of n rows, is one of n places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import prod

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.memory import once_a_session
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import IS_ZERO, Function
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.term import ONE, Atom, Guard, Ix, Poly, Read, Tensor, atoms, of_atom, value_of
from hlo_verify.terms.truths import is_count, what_is_asked, what_is_counted
from hlo_verify.terms.used import used


@once_a_session
def range_of_count(atom: Atom) -> tuple[int, int] | None:
    """The least and the greatest that a count of truth values may be; None of what is no count.

    What it counts is looked at as it is defined, which takes no time where it is read at many places; at its own place
    only where one of those counted may be sure to hold.
    """
    if not isinstance(atom, Read) or not is_count(atom):
        return None
    if not _may_hold(atom):
        source = atom.tensor
        return 0, _most(source.bound, source.bodies[0], dict(zip(source.params, atom.indices, strict=False)))
    counted = what_is_counted(atom)
    if counted is None:
        return None
    bound, p = counted
    return int(any(holds_at(p, v) for v in bound)), _most(bound, p, {})


def _may_hold(atom: Read) -> bool:
    """Whether a condition of a count may compare an integer of one place with that of the same place: with another that
    it has itself, or with one at which it is read."""
    given = any(isinstance(a, Opaque) and a.operator == "value" for e in atom.indices for a, _ in e.items)
    apart, of_values = _compared(atom.tensor)
    return apart or (given and of_values)


@once_a_session
def _compared(source: Tensor) -> tuple[bool, bool]:
    """Whether a condition compares integers two of which have opposite signs, and whether one has any."""
    forms = [atom.form for mono, _ in source.bodies[0].items for atom, _ in mono if isinstance(atom, Guard)]
    values = [[c for a, c in form.items if isinstance(a, Opaque) and a.operator == "value"] for form in forms]
    return any(-c in found for found in values for c in found), any(values)


@once_a_session
def any_of(atom: Atom) -> Poly | None:
    """The count of truth values of which a term asks whether any holds, as `max v. p(v)` does; None of others."""
    from hlo_verify.terms.sums import reduce_sum  # which asks for counts

    asked = what_is_asked(atom)
    return None if asked is None else reduce_sum(*asked)


def _most(bound: Sequence[Var], p: Poly, at: Mapping[Var, Index]) -> int:
    """For how many values of variables a product of conditions may hold, with others at places: `w < v` does for n - 1
    of n at the most."""
    ((mono, _),) = p.items
    asked = [atom for atom, _ in mono if isinstance(atom, Guard)]
    return prod(_values(v, asked, at) for v in bound)


def _values(v: Var, asked: Iterable[Guard], at: Mapping[Var, Index]) -> int:
    """How many values of a variable conditions leave, whatever all others are."""
    least, greatest = 0, v.size - 1
    for guard in asked:
        sign = multiple_of(v, guard.form)
        rest = expr.subtract(guard.form, expr.scale(expr.of_var(v), sign))
        if abs(sign) == 1 and v not in rest.free:
            rest = expr.substitute(rest, at, expr.of_atom)  # integers that are looked up have their range anywhere
            ends = [None if end is None else end - far for end, far in ((guard.lo, rest.hi), (guard.hi, rest.lo))]
            lo, hi = ends if sign > 0 else [None if end is None else -end for end in reversed(ends)]
            least, greatest = least if lo is None else max(least, lo), greatest if hi is None else min(greatest, hi)
    return max(greatest - least + 1, 0)


@once_a_session
def of_elements(atom: Read) -> Poly:
    """A count that is read where it may have another definition, as that one: at an element which some integer says, or
    with one expression in the place of two parameters.

    How many rows an expert k has is one definition, `sum w. [e(w) = k]`, read at k; read at e(v), it is
    `sum w. [e(w) = e(v)]`, which is another where it was defined for v.
    """
    from hlo_verify.terms.sums import reduce_sum  # which asks for counts

    counted = what_is_counted(atom) if _may_be_another(atom) else None
    return of_atom(atom) if counted is None else reduce_sum(*counted)


def _may_be_another(atom: Read) -> bool:
    if any(isinstance(part, Opaque) and part.operator == "value" for e in atom.indices for part, _ in e.items):
        return True
    bases = [expr.shift(e, -e.const) for e in atom.indices if e.items]
    return len(set(bases)) < len(bases)


def holds_at(p: Poly, v: Var) -> bool:
    """Whether a condition is sure to hold for some value of a variable, whatever its other variables are."""
    return any(algebra.substitute(p, {v: e}) is ONE for e in same_places(p, v))


def where_held(on: Poly, p: Poly) -> Poly:
    """A term where a condition holds, and 0 elsewhere: any of several holds there if the condition is one of them.

        k(v) * (1 - any w <= v. k(w))   is  0

    So a prefix count less 1 is no negative place where it counts its own element.
    """
    given = given_by(on)
    anys = {atom for mono, _ in p.items for atom, _ in mono if given and _is_one_of(given, atom)}
    return algebra.multiply(on, algebra.with_atoms(p, dict.fromkeys(anys, ONE).get) if anys else p)


def given_by(on: Poly) -> dict[Atom, Poly]:
    """What a product of conditions says where it holds: that each of them does."""
    monos = [mono for mono, _ in on.items]
    return {atom: ONE for atom, _ in monos[0] if atom.boolean} if len(monos) == 1 else {}


def _is_one_of(given: Mapping[Atom, Poly], atom: Atom) -> bool:
    """Whether any of several conditions is asked for, of which one holds by what is given."""
    asked = what_is_asked(atom)
    if asked is None or len(asked[0]) != 1:
        return False
    (v,), p = asked
    known = [a for on in given for a in _elements(of_atom(on))]
    places = {e for a in _elements(p) for b in known if v in a.free for e in _where_one(of_atom(a), of_atom(b), v)}
    inside = (e for e in places if e.lo >= 0 and e.hi < v.size)
    return any(algebra.with_atoms(algebra.substitute(p, {v: e}), given.get) is ONE for e in inside)


def _elements(p: Poly) -> Iterator[Read]:
    """What conditions read: in the arguments of functions, and where integers are compared."""
    for atom in atoms(p):
        if isinstance(atom, Read):
            yield atom
        elif isinstance(atom, Guard):
            values = (value_of(a) for a, _ in atom.form.items if isinstance(a, Opaque) and a.operator == "value")
            yield from (q.atom for q in values if isinstance(q.atom, Read))


def same_places(p: Poly, v: Var) -> Iterator[Index]:
    """The values of a variable, surely among those that it takes, for which a condition compares an integer of one
    place with that of the same place."""
    for mono, _ in p.items:
        for atom, _ in mono:
            if isinstance(atom, Guard) and v in atom.free:
                for e in coinciding(atom.form, v):
                    if e.lo >= 0 and e.hi < v.size:
                        yield e


def coinciding(form: Index, v: Var) -> Iterator[Index]:
    """The values of a variable for which two opposite parts of an expression are the same element."""
    values = [(part, c) for part, c in form.items if isinstance(part, Opaque) and part.operator == "value"]
    for part, c in values:
        if v in part.free:
            for other, k in values:
                if k == -c and v not in other.free:
                    yield from _where_one(value_of(part), value_of(other), v)


def _where_one(p: Poly, other: Poly, v: Var) -> Iterator[Index]:
    """The values of v for which an element that is read there is another."""
    here, there = p.atom, other.atom
    if not isinstance(here, Read) or not isinstance(there, Read) or here.tensor is not there.tensor:
        return
    for e, fixed in zip(here.indices, there.indices, strict=True):
        found = solved(e, fixed, v)
        if found is not None:
            yield found


def solved(e: Index, fixed: Index, v: Var) -> Index | None:
    """The value of v for which an expression with v is another; None where it is not a place ahead of v or behind."""
    c = multiple_of(v, e)
    rest = expr.subtract(e, expr.scale(expr.of_var(v), c))
    if abs(c) != 1 or v in rest.free or v in fixed.free:
        return None
    return expr.scale(expr.subtract(fixed, rest), c)


def multiple_of(v: Var, e: Index) -> int:
    """The multiple of a variable that an expression is a sum of; 0 if there is none of all of it."""
    whole = expr.of_var(v).items
    return next((c for a, c in e.items if whole and a is whole[0][0]), 0)


@once_a_session
def integers_of(p: Poly) -> tuple[int, int] | None:
    """An interval of the integers that a sum of multiples of places, conditions and counts may be; None of others."""
    lo = hi = 0
    for mono, c in p.items:
        if not isinstance(c, int):
            return None
        least, greatest = 1, 1
        numbers = [(a, n) for a, n in mono if not a.boolean]
        if numbers:
            (atom, n), *more = numbers
            found = (atom.index.lo, atom.index.hi) if isinstance(atom, Ix) else range_of_count(atom)
            if more or n != 1 or found is None:
                return None
            least, greatest = found
        if len(numbers) < len(mono):  # times a truth value
            least, greatest = min(least, 0), max(greatest, 0)
        lo, hi = lo + min(c * least, c * greatest), hi + max(c * least, c * greatest)
    return lo, hi


def asked_of_counts(function: Function, args: tuple[Poly, ...]) -> Poly | None:
    """`[p > 0]`, or whether p is 0, for a sum of multiples of places, conditions and counts, as of any integer."""
    p = args[0]
    found = integers_of(p) if any(is_count(mono[0][0]) for mono, _ in p.items if mono) else None
    lo, hi = INTEGER_RANGES["i64"]
    if found is None or found[0] < lo or found[1] > hi:
        return None
    used("integers as numbers")
    form = as_index(p, lo, hi)
    return guards.interval(form, 0, 0) if function == IS_ZERO else guards.interval(form, 1, None)


def truncated(function: Function, args: tuple[Poly, ...]) -> Poly | None:
    """The integer that a number is converted to, where it is one that the type has: a sum of places and counts."""
    if function.name != "truncate":
        return None
    found, (lo, hi) = integers_of(args[0]), INTEGER_RANGES[function.gives]
    if found is None or found[0] < lo or found[1] > hi:
        return None
    used("integer of what is one")
    return args[0]


def are_of_one(counts: Sequence[Read]) -> bool:
    """Whether some of several counts are of conditions on the same places that exclude one another, as `x < 3` and
    `x > 3` do, so that they are one count together."""
    return any(_exclude(first, second) for first, second in combinations(counts, 2))


def _exclude(first: Read, second: Read) -> bool:
    held, others = what_is_counted(first), what_is_counted(second)
    if held is None or others is None or [v.size for v in held[0]] != [v.size for v in others[0]]:
        return False
    places = {v: expr.of_var(w) for v, w in zip(others[0], held[0], strict=True)}
    return not algebra.multiply(held[1], algebra.substitute(others[1], places)).items
