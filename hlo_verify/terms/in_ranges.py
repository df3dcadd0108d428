"""Terms with the ranges of what they read definitions at in these definitions.

A definition is the same wherever it is read, so that `h[s] = sum k<16. [k <= s] x[k]` has to be for any s. Where it is
read at a place between 4 and 7, it is a sum of two parts, of which one alone has a condition, and nothing is left of
the rest:

    h[4 + p] = (sum k<4. x[k]) + (sum k<4. [k <= p] x[4 + k])        p < 4

`in_ranges` makes the second of the first, however deep it is. Bound variables are cut where conditions on them begin to
be decided; a variable that leads from one chunk of a tensor to another that is not the next one is written out. What is
light then has no name any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import gcd, prod

import numpy as np

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.index.tables import Ints, evaluate_all, turns
from hlo_verify.limits import allows
from hlo_verify.memory import once_a_session, per_session
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.at_constants import UNORDERED, at_constants
from hlo_verify.terms.definitions import at_places, define, fresh_places, named
from hlo_verify.terms.extrema import reduce_extremum, reduce_product
from hlo_verify.terms.functions import EXTREMA
from hlo_verify.terms.laws import apply
from hlo_verify.terms.neighbours import joined
from hlo_verify.terms.substitution import at_own_places
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Apply, Atom, Guard, Ix, Poly, Read, Tensor, atoms, indices

Range = tuple[int, int]
"""The least and the greatest value of an index expression."""

Part = tuple[list[Var], Poly]
"""A term, and the variables that it is summed over (or the like)."""


@once_a_session
def in_ranges(p: Poly) -> Poly:
    """The term, in which definitions are made for the ranges of what they are read at."""
    return settled(algebra.with_atoms(told(p), _made_anew))


@once_a_session
def settled(p: Poly) -> Poly:
    """The term in which what is added up piece by piece is one sum, in the arguments of functions too: laws leave
    others there than they were given."""
    p = at_constants(algebra.with_atoms(p, _settled_atom))
    return joined(p, is_near=True)


def _settled_atom(atom: Atom) -> Poly | None:
    if isinstance(atom, Read) and _counts_down(atom):
        return _made_anew(atom)  # what counts down there is a definition of its own
    if not isinstance(atom, Apply):
        return None
    args = tuple(map(settled, atom.args))
    return None if args == atom.args else apply(atom.function, args)


def _counts_down(atom: Read) -> bool:
    """Whether a definition is read at a place that goes down with the first variable that it is made of."""
    return any(c < 0 for e in atom.indices[: len(atom.tensor.params)] for _, c in e.items[:1])


def _settled_inside(atom: Atom) -> Poly | None:
    """A sum of what is settled: its parts, put together, may be counted the other way round than each part was."""
    if not isinstance(atom, Read) or atom.tensor.kind != "sum" or atom.tensor.seal is not None:
        return None
    if not _is_of_counting_down(atom.tensor):
        return None
    bound, there = at_places(atom.tensor, atom.indices)
    (body,) = atom.tensor.bodies
    return reduce_sum(bound, settled(there.poly(body)))


@once_a_session
def _is_of_counting_down(source: Tensor) -> bool:
    found = (atom for body in source.bodies for atom in atoms(body) if isinstance(atom, Read))
    return any(_counts_down(atom) for atom in found)


@once_a_session
def _made_anew(atom: Atom) -> Poly | None:
    if isinstance(atom, Apply):
        return apply(atom.function, tuple(map(in_ranges, atom.args)))
    if not isinstance(atom, Read) or not atom.tensor.bodies or atom.tensor.seal is not None:
        return None
    source = atom.tensor
    along = [_along(e) for e in atom.indices[: len(source.params)]]
    groups = list(dict.fromkeys(base for base, _ in along if base.items))
    places_read = tuple(
        (groups.index(base) if base.items else 0, c, e.const) for (base, c), e in zip(along, atom.indices, strict=False)
    )
    known, key = _known(), (source, places_read, tuple(map(_range, groups)))
    if key not in known:
        if not allows("definitions_in_ranges", len(known) + 1):
            return None
        known[key] = _definition(*key)
    places, there = known[key]
    values = [*(expr.shift(base, -base.lo) if _range(base) else base for base in groups), *atom.indices[len(along) :]]
    return algebra.substitute(there, dict(zip(places, values, strict=True)))


def _along(e: Index) -> tuple[Index, int]:
    """What an index expression is a multiple of, but for its constant, and how many times that."""
    c = gcd(*(c for _, c in e.items)) * (-1 if e.items and e.items[0][1] < 0 else 1)
    return expr.build(0, [(part, k // c) for part, k in e.items]), c


def _range(e: Index) -> Range | None:
    """None where an index expression has no bounds."""
    return None if e.lo <= -expr.UNBOUNDED or e.hi >= expr.UNBOUNDED else (e.lo, e.hi)


_Places = tuple[tuple[int, int, int], ...]
"""For each parameter of a definition which expression it is read at, how many times that, and what is added to it."""

_Key = tuple[Tensor, _Places, tuple[Range | None, ...]]

_known: Callable[[], dict[_Key, tuple[list[Var], Poly]]] = per_session("definitions in ranges", dict)


def made_in_ranges() -> int:
    """How many definitions were made so in this session."""
    return len(_known())


def _definition(source: Tensor, read_at: _Places, ranges: tuple[Range | None, ...]) -> tuple[list[Var], Poly]:
    """A definition where the expressions that it is read at have those ranges, as read at a variable for each of them,
    which begins at 0 where there is a range."""
    places: list[Var] = []
    bases: list[Index] = []
    for bounds in ranges:
        least, size = (0, expr.UNBOUNDED) if bounds is None else (bounds[0], bounds[1] - bounds[0] + 1)
        places.append(expr.fresh("r", size))
        bases.append(expr.shift(expr.of_var(places[-1]), least))
    at = [expr.shift(expr.scale(bases[n], times), c) if times else expr.constant(c) for n, times, c in read_at]
    own = fresh_places(source.own)
    bound, there = at_places(source, at)
    bodies = tuple(in_ranges(there.poly(body)) for body in source.bodies)
    return [*places, *own], _remade(source, bound, bodies, tuple(map(expr.of_var, own)))


def _remade(source: Tensor, bound: tuple[Var, ...], bodies: tuple[Poly, ...], own: tuple[Index, ...]) -> Poly:
    """The definition of the same kind of other bodies, part by part."""
    kind = source.kind
    if kind not in UNORDERED:
        return define(kind, bound, bodies, attributes=source.attributes, at=own, ordered=True, dtype=source.dtype)
    (body,) = bodies
    if kind == "term":
        return body if allows("multiplied_terms", len(body.items)) else named(body, source.dtype)
    if kind == "product":
        return reduce_product(bound, body)
    parts = _parts(list(bound), body)
    if kind == "sum":
        total = settled(algebra.add(*(reduce_sum(*part) for part in parts)))
        return algebra.with_atoms(total, _settled_inside)
    extrema = [reduce_extremum(kind, *part) for part in parts]
    return extrema[0] if len(extrema) == 1 else apply(EXTREMA[kind], tuple(extrema))


def _parts(bound: list[Var], p: Poly) -> Iterator[Part]:
    """The term over parts of its variables' ranges."""
    todo: list[Part] = [(bound, p)]
    while todo:
        own, body = todo.pop()
        ends = next((found for v in own if (found := _chunks(v, own, body))), None)
        ends = ends or next((found for v in own if (found := _ends(v, body))), None)
        if ends is None:
            yield own, body
            continue
        v, points = ends
        rest = [w for w in own if w is not v]
        for start, end in pairwise((0, *points, v.size)):
            part = expr.fresh("f", end - start)
            there = in_ranges(algebra.substitute(body, {v: expr.shift(expr.of_var(part), start)}))
            todo.append(([*rest, part] if part.size > 1 else rest, there))


_Ends = tuple[Var, list[int]]
"""A variable, and where its range is cut."""


def _chunks(v: Var, bound: Sequence[Var], p: Poly) -> _Ends | None:
    """Each value of a variable that leads from one chunk to another; None for others."""
    places = (e for atom in atoms(p) if isinstance(atom, Read) and v in atom.free for e in atom.indices)
    if not allows("enumerated_values", v.size) or not any(_leads_apart(v, bound, e) for e in places):
        return None
    return v, list(range(1, v.size))


def _ends(v: Var, p: Poly) -> _Ends | None:
    """Where conditions begin or cease to be decided by a variable; None where that is nowhere."""
    found: set[int] = set()
    for atom in dict.fromkeys(atoms(p)):
        if v not in atom.free:
            continue
        if isinstance(atom, Guard):
            found |= _decided(v, atom)
        for part in (part for e in read_at(atom) for part, _ in e.items):
            if isinstance(part, Opaque):
                found |= turns(part, v) if part.free == {v} else _columns(part, v)
    points = sorted(n for n in found if 0 < n < v.size)
    return (v, points) if points and allows("enumerated_values", len(points)) else None


def read_at(atom: Atom) -> tuple[Index, ...]:
    """The index expressions of an atom, and those of definitions that look something up where they are read."""
    own = indices(atom)
    if not isinstance(atom, Read) or not atom.tensor.bodies:
        return own
    return (*own, *map(at_own_places(atom).index, _looked_up(atom.tensor)))


@once_a_session
def _looked_up(source: Tensor) -> tuple[Index, ...]:
    """What a definition looks up at its parameters, however deep."""
    found = (e for body in source.bodies for atom in atoms(body) for e in read_at(atom))
    inside = (part for e in found for part, _ in e.items if isinstance(part, Opaque) and part.term is None)
    parts = map(expr.of_atom, inside)
    params = frozenset(source.params)
    return tuple(dict.fromkeys(e for e in parts if e.free <= params))


def _decided(v: Var, guard: Guard) -> set[int]:
    """Where a condition begins, or ceases, to be decided by a variable alone, whatever the others are."""
    whole = expr.of_var(v).items[0][0] if v.size > 1 else None
    for digit, c in guard.form.items:
        if not isinstance(digit, Digit) or digit.var is not v or not digit.top:
            continue
        rest = expr.subtract(guard.form, expr.scale(expr.of_atom(digit), c))
        if v in rest.free or rest.lo <= -expr.UNBOUNDED or rest.hi >= expr.UNBOUNDED:
            continue
        ends = [end for end in (guard.lo, None if guard.hi is None else guard.hi + 1) if end is not None]
        low = 1 if digit is whole else digit.low
        # c*digit + rest >= end, for c > 0, from the quotient rounded up on
        return {low * _first(end - other, c) for end in ends for other in (rest.lo, rest.hi)}
    return set()


def _columns(part: Opaque, v: Var) -> set[int]:
    """Where the entries of a table cease to hang, or begin to hang, on other variables than this one."""
    entries = _entries(part, v)
    if entries is None or v not in part.free:
        return set()
    columns = entries.reshape(-1, v.size)
    kinds = [int(column[0]) if (column == column[0]).all() else None for column in columns.T]
    return {n for n in range(1, v.size) if kinds[n] != kinds[n - 1]}


def _entries(part: Opaque, last: Var) -> Ints | None:
    """The values of an opaque integer for all of its variables, the last of which is given."""
    variables = [*sorted(part.free - {last}, key=lambda v: v.uid), last]
    if not allows("fitted_values", prod(v.size for v in variables)):
        return None
    return evaluate_all(expr.of_atom(part), variables)


@once_a_session
def told(p: Poly) -> Poly:
    """The term with what tables of 0 and 1 say written as conditions, where these are about two variables at most."""
    return algebra.with_atoms(p, _told_atom)


def _told_atom(atom: Atom) -> Poly | None:
    if isinstance(atom, Apply):
        args = tuple(map(told, atom.args))
        return None if args == atom.args else apply(atom.function, args)
    if not isinstance(atom, Guard | Ix):
        return None
    (e,) = indices(atom)
    part = e.items[0][0] if len(e.items) == 1 else None
    if isinstance(atom, Ix) and e.items[0][1] == 1 and isinstance(part, Digit) and (part.lo, part.hi) == (0, 1):
        return guards.interval(e, 1, 1)
    if not isinstance(part, Opaque) or not 0 <= part.lo <= part.hi <= 1 or not 1 <= len(part.free) <= 2:
        return None
    condition = _condition(part)
    if condition is None:
        return None
    ((_, c),) = e.items
    if isinstance(atom, Ix):
        return algebra.scale(condition, c)
    none, one = (guards.interval(expr.constant(c * n), atom.lo, atom.hi) for n in (0, 1))
    return algebra.select(condition, one, none)


@once_a_session
def _condition(part: Opaque) -> Poly | None:
    """The condition under which a table has 1: a bound of one variable that another one moves by as much as it goes, or
    the other way; None where it is none."""
    for last in sorted(part.free, key=lambda v: v.uid):
        entries = _entries(part, last)
        if entries is None:
            return None
        rows = entries.reshape(-1, last.size)
        others = sorted(part.free - {last}, key=lambda v: v.uid)
        for ones, is_opposite in ((rows, False), (1 - rows, True)):
            condition = _bound_of(ones, last, others)
            if condition is not None:
                return algebra.logical_not(condition) if is_opposite else condition
    return None


def _bound_of(rows: Ints, last: Var, others: Sequence[Var]) -> Poly | None:
    """The condition `last < c*other + start`, where that is when rows have ones."""
    counts = rows.sum(1)
    places = np.arange(len(rows))
    for c in (0, 1, -1) if others else (0,):
        starts = counts - c * places
        inside = starts[(counts > 0) & (counts < last.size)]
        start = int(inside[0]) if inside.size else int(starts.max() if c >= 0 else starts.min())
        if (rows == (np.arange(last.size)[None] < (c * places + start)[:, None])).all():
            least = expr.scale(expr.of_var(others[0]), c) if others else expr.constant(0)
            return guards.interval(expr.subtract(expr.shift(least, start), expr.of_var(last)), 1, None)
    return None


def _first(least: int, c: int) -> int:
    """The first number n at which `c*n >= least` is as it is for all that follow."""
    return -(-least // c) if c > 0 else (-least) // -c + 1


def _leads_apart(v: Var, bound: Sequence[Var], e: Index) -> bool:
    """Whether a variable leads from one element, or chunk, to another that is not the next one."""
    own = {digit.var: c for digit, c in e.items if isinstance(digit, Digit) and digit.low == 1 and digit.top}
    chunk = max((w.size for w in bound if own.get(w) == 1), default=1)
    return v.size > 1 and chunk < abs(own.get(v, 1))
