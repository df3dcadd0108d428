"""Rows in slots: places that are no other row's, such as the number of a row among those of its own expert.

    g(v) = sum w. [w <= v] [e(w) = e(v)]          no two v have both e(v) and g(v) in common
    sum v. [e(v) = e(t)] [g(v) = g(t)] h(v)       is  h(t), for such places

For v < v' with e(v) = e(v') = a, what g(v') counts beyond g(v) is the w from v + 1 to v' with e(w) = a, and v' is one
of them. So rows that are scattered to their slots are there, and read there again they are the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.memory import once_a_session
from hlo_verify.ops.elements import replaced
from hlo_verify.ops.permutations import is_another_each, is_permutation, orders_places
from hlo_verify.terms import algebra
from hlo_verify.terms.assumed_order import is_distinct_along
from hlo_verify.terms.at_constants import UNORDERED, remade
from hlo_verify.terms.counts import coinciding, range_of_count
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.machine import own_value
from hlo_verify.terms.rebuilding import rebuilt
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import (
    ONE,
    ZERO,
    Atom,
    Guard,
    Monomial,
    Poly,
    Read,
    Tensor,
    atoms,
    make_poly,
    of_atom,
    tensor,
    value_of,
)

Given = Mapping[Atom, Poly]
"""What some elements are known to be."""


def told_apart(places: Iterable[Index], bound: Sequence[Var], given: Given | None = None) -> bool:
    """Whether no two choices of values of variables, with elements that are given, have all places in common."""
    parts = [part for e in places for part in _parts_of(e, bound)]
    shown = {a.var for a in parts if isinstance(a, Digit) and a.low == 1 and a.top}
    opaque = [a for a in parts if isinstance(a, Opaque)]
    while not shown >= set(bound):
        more = {
            v
            for part in opaque
            for v in set(bound) - shown
            if shown.issuperset(part.free.intersection(bound) - {v}) and _tells(part, v, opaque, given or {})
        }
        if not more:
            return False
        shown |= more
    return True


def _parts_of(e: Index, bound: Sequence[Var]) -> list[expr.Atom]:
    """The parts of an index that its value tells, as the digits of a number: each multiple exceeds all smaller ones
    together."""
    parts = sorted(((abs(c), a) for a, c in e.items if not a.free.isdisjoint(bound)), key=lambda part: part[0])
    reach = 0
    for c, a in parts:
        if c <= reach:
            return []
        reach += c * (a.hi - a.lo)
    return [a for _, a in parts]


def _tells(part: Opaque, v: Var, parts: Sequence[Opaque], given: Given) -> bool:
    """Whether a part of a place differs for any two values of a variable for which the other parts are the same."""
    atom = own_value(part)
    if atom is not None and (is_permutation(atom, v) or is_another_each(atom, v) or is_distinct_along(atom, v)):
        return True
    counts = value_of(part).atom if part.operator == "value" else None
    found = None if counts is None else range_of_count(counts)
    if counts is None or found is None or not part.lo <= found[0] <= found[1] <= part.hi:
        return False
    return _counts_on(counts, v, [key for key in map(own_value, parts) if key is not None], given)


def _counts_on(counts: Atom, v: Var, keys: Sequence[Read], given: Given) -> bool:
    """Whether a count grows with a variable, or falls, wherever some elements stay the same: each counts itself."""
    assert isinstance(counts, Read)
    bound, (body,) = unfold(counts)
    there = replaced(body, {key: algebra.read(tensor("opaque", "key", key.tensor.dtype, ()), ()) for key in keys})
    return any(
        _is_own(body, there, v, w, given) or _is_in_window(body, there, v, w, given) for w in bound if w.size >= v.size
    )


def _is_own(body: Poly, there: Poly, v: Var, w: Var, given: Given) -> bool:
    """Whether a count is of the w up to v, or from v on, with or without v itself, for which something holds that hangs
    on v by elements alone that stay the same (`there`), and that holds for w = v."""
    (mono,) = (mono for mono, _ in there.items) if len(there.items) == 1 else ((),)
    ends = [atom for atom, _ in mono if v in atom.free]
    if len(ends) != 1 or not _is_end(ends[0], v, w):
        return False
    rest = make_poly(((tuple(item for item in body.items[0][0] if item[0] is not ends[0]), 1),))
    return replaced(algebra.substitute(rest, {w: expr.of_var(v)}), given) is ONE


def _is_end(atom: Atom, v: Var, w: Var) -> bool:
    """Whether a condition is w <= v, w < v, w >= v or w > v."""
    if not isinstance(atom, Guard) or (atom.lo is None) == (atom.hi is None):
        return False
    ahead = expr.subtract(expr.of_var(w), expr.of_var(v))
    if atom.form is ahead:
        return atom.lo in (0, 1) if atom.hi is None else atom.hi in (0, -1)
    return expr.scale(atom.form, -1) is ahead and (atom.lo in (0, 1) if atom.hi is None else atom.hi in (0, -1))


def _is_in_window(body: Poly, there: Poly, v: Var, w: Var, given: Given) -> bool:
    """Whether a count is over a window that ends at v, or begins there, and in which something holds for v itself.

    In the window that ends at v, w is the element u = v - (n - 1 - w), or v - w, and nothing counts below 0; in the one
    that begins there, it is v + w or v + (n - 1 - w), and nothing counts from n on.
    """
    last, here = w.size - 1, expr.of_var(v)
    u, beyond = expr.of_var(expr.fresh("f", v.size)), expr.of_var(expr.fresh("f", w.size))
    below, above = expr.shift(expr.scale(beyond, -1), -1), expr.shift(beyond, v.size)
    for sign, own, past in ((1, last, below), (1, 0, above), (-1, last, above), (-1, 0, below)):
        start = expr.shift(expr.scale(here, -sign), own)  # w for u = 0
        inside, outside = (algebra.substitute(there, {w: expr.add(expr.scale(e, sign), start)}) for e in (u, past))
        is_own = algebra.substitute(body, {w: expr.constant(own)})
        if v not in inside.free and outside is ZERO and replaced(is_own, given) is ONE:
            return True
    return False


def at_own_slots(p: Poly) -> Poly:
    """The term, with what it reads of rows in the slot of a row as that row."""
    images: dict[Atom, Poly] = {atom: there for atom in _read_in(p) if (there := _anew(atom)) is not None}
    return rebuilt(p, images, {}) if images else p


def _read_in(p: Poly) -> list[Read]:
    """The definitions of a term that are looked up, or made of others that are; in the arguments of functions too. A
    sum whose conditions compare what is at two places in order was looked up before."""
    read = (atom for atom in dict.fromkeys(atoms(p)) if isinstance(atom, Read))
    return [atom for atom in read if _is_looked_up(atom) or _compares_places(atom.tensor) or _looks_up(atom.tensor)]


def _is_looked_up(atom: Read) -> bool:
    """Whether a definition is read at an element that some integer says."""
    opaque = (part for e in atom.indices for part, _ in e.items if isinstance(part, Opaque))
    return _is_open(atom.tensor) and any(part.operator == "value" for part in opaque)


@once_a_session
def _compares_places(source: Tensor) -> bool:
    """Whether a sum is one over places in order at which is what is at another one."""
    if source.kind != "sum" or not _is_open(source):
        return False
    conditions = (a for mono, _ in source.bodies[0].items for a, _ in mono if isinstance(a, Guard) and a.lo == a.hi)
    for guard in conditions:
        read = [own_value(part) for part, _ in guard.form.items if isinstance(part, Opaque)]
        ordered = {each.tensor for each in read if each is not None and orders_places(each.tensor)}
        if len(read) == 2 and len(ordered) == 1 and None not in read:
            return True
    return False


def _is_open(source: Tensor) -> bool:
    return source.kind in UNORDERED and source.seal is None


@once_a_session
def _looks_up(source: Tensor) -> bool:
    """Whether a definition is made of one that is looked up."""
    return _is_open(source) and any(_read_in(body) for body in source.bodies)


@once_a_session
def _anew(atom: Read) -> Poly | None:
    """A definition where it is looked up, if its rows are found in their slots.

    Each device and each place that is opened reads it with variables of its own: the question is asked once for all.
    """
    ordered = sorted(atom.free, key=lambda v: ([v not in e.free for e in atom.indices], v.uid))
    names = [expr.var("slot", n, v.size) for n, v in enumerate(ordered)]
    asked = algebra.substitute(of_atom(atom), dict(zip(ordered, map(expr.of_var, names), strict=True))).atom
    if not isinstance(asked, Read) or asked.tensor is not atom.tensor:
        return _opened_anew(atom)
    found = _opened_anew(asked)
    return (
        None if found is None else algebra.substitute(found, dict(zip(names, map(expr.of_var, ordered), strict=True)))
    )


@once_a_session
def _opened_anew(atom: Read) -> Poly | None:
    if _is_left(atom):
        return None
    bound, bodies = unfold(atom)
    there = tuple(map(at_own_slots, bodies))
    if atom.tensor.kind == "sum":
        row = _rows(bound, there[0])
        if row is not None:
            return row
    return None if there == bodies else remade(atom.tensor, bound, there, atom.indices[len(atom.tensor.params) :])


def _is_left(atom: Read) -> bool:
    """Whether a definition is sure to be left as it is, seen before its conditions are opened, which is dear."""
    source = atom.tensor
    fresh = {v: expr.fresh("f", v.size) for v in source.bound}
    mapping = dict(zip(source.params, atom.indices, strict=False))
    opened = algebra.Substitution({**mapping, **{v: expr.of_var(there) for v, there in fresh.items()}})
    if source.kind == "sum" and all(_may_be_row(fresh, mono, opened) for mono, _ in source.bodies[0].items):
        return False
    read = (a for body in source.bodies for a in atoms(body) if isinstance(a, Read) and _is_open(a.tensor))
    return all(at_own_slots(there) is there for there in map(opened.poly, map(of_atom, read)))


def _may_be_row(fresh: Mapping[Var, Var], mono: Monomial, opened: algebra.Substitution) -> bool:
    """Whether the conditions of a product may hold where a bound variable has one value, at which one of them compares
    an element with itself."""
    asked = sorted((a for a, _ in mono if isinstance(a, Guard) and len(a.form.items) > 1), key=lambda a: a.weight)
    return any(_may_hold_at_one([a for a in asked if v in a.form.free], fresh[v], opened) for v in fresh)


def _may_hold_at_one(asked: Iterable[Guard], v: Var, opened: algebra.Substitution) -> bool:
    is_found = False
    for atom in asked:
        form = opened.index(atom.form)
        here = list(coinciding(form, v))
        if here and atom.lo == atom.hi and all(algebra.Substitution({v: e}).index(form).items for e in here):
            return False
        is_found = is_found or bool(here)
    return is_found


def _rows(bound: Sequence[Var], p: Poly) -> Poly | None:
    """A sum over rows that lie in the slot of one of them; None where a product of it is no such sum."""
    total = ZERO
    for mono, c in p.items:
        found = _row(bound, mono)
        if found is None:
            return None
        variables, product = found
        total = algebra.add(total, algebra.scale(reduce_sum(variables, product), c))
    return total if p.items else None


def _row(bound: Sequence[Var], mono: Monomial) -> tuple[list[Var], Poly] | None:
    """A product at the one value of a bound variable for which its conditions hold; None if it is not known."""
    for v in bound:
        asked = [atom for atom, _ in mono if isinstance(atom, Guard) and atom.lo == atom.hi and v in atom.form.free]
        if not asked:
            continue
        places = [expr.build(0, [(a, c) for a, c in atom.form.items if v in a.free]) for atom in asked]
        for e in dict.fromkeys(e for atom in asked for e in coinciding(atom.form, v)):
            mapping = {v: e}
            if e.lo < 0 or e.hi >= v.size or any(algebra.substitute(of_atom(a), mapping) is not ONE for a in asked):
                continue
            if told_apart(places, [v], dict(_said(asked, v))):  # which opens counts: what is cheap goes first
                rest = make_poly(((tuple(item for item in mono if item[0] not in asked), 1),))
                return [b for b in bound if b is not v], algebra.substitute(rest, mapping)
    return None


def _said(asked: Iterable[Guard], v: Var) -> Iterator[tuple[Atom, Poly]]:
    """What conditions say of elements that depend on a variable: which others they are."""
    for atom in asked:
        parts = [(part, c) for part, c in atom.form.items if isinstance(part, Opaque)]
        if atom.lo == 0 and len(parts) == len(atom.form.items) == 2 and parts[0][1] == -parts[1][1]:
            (here, _), (there, _) = sorted(parts, key=lambda item: v not in item[0].free)
            element, other = own_value(here), own_value(there)
            if element is not None and other is not None and v not in other.free:
                yield element, of_atom(other)
