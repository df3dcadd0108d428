"""Functions that are outside of their domains at some place, whatever the arguments are.

    1 / sum k<8. [k < i]*exp(s[k])        at i = 0, where no element is left

That a program is given no inputs for which it divides by 0 says nothing of such a place: there every input does. What
it makes is the program's own, as `1/0` is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from math import prod

import numpy as np

from hlo_verify.index import expr
from hlo_verify.index.expr import UNBOUNDED, Digit, Index, Opaque, Var
from hlo_verify.index.tables import Ints
from hlo_verify.limits import limit_of
from hlo_verify.memory import once_a_session
from hlo_verify.terms import signs
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import Function
from hlo_verify.terms.signs import NEGATIVE, POSITIVE, ZERO
from hlo_verify.terms.term import ZERO as NOTHING
from hlo_verify.terms.term import Apply, Atom, Guard, Ix, Monomial, Poly, Read, Tensor, make_read

_OUTSIDE: Mapping[str, int] = {
    "inverse": ZERO,
    "divide": ZERO,
    "remainder": ZERO,
    "log": NEGATIVE | ZERO,
    "rsqrt": NEGATIVE | ZERO,
    "sqrt": NEGATIVE,
}
"""The signs of their last argument for which functions have no number as their value."""

_SUMS = ("sum", "term")

_PLACE = "edge"
"""Of the variables that places are in at which elements are looked at."""


def is_outside_somewhere(function: Function, args: tuple[Poly, ...]) -> bool:
    """Whether a function of those terms has no number as its value at some place, whatever the arguments are."""
    outside = _OUTSIDE.get(function.name)
    if outside is None or not _may_be_left(args[-1], outside):
        return False
    return any(not signs.of(p) & ~outside for p in at_edges(args[-1]))


@once_a_session
def has_some(read: Read) -> bool:
    """Whether an element of a definition is computed by such a function at its own place. Of no element by itself is it
    known: a definition is made for places without bounds."""
    if not _may_have_some(read.tensor) or not any(v.size < UNBOUNDED for v in read.free):
        return False
    alike = _renamed(read)
    return bool(alike.doubt & INFINITE) if alike is not read else any(p.doubt & INFINITE for p in _bodies(read))


def _renamed(read: Read) -> Read:
    """The element at a place of the same form, which is asked of once, whatever variables it is in: those of sums are
    new ones each time that a definition is unfolded, and so on in what that is made of."""
    from hlo_verify.terms.substitution import Substitution  # made of terms

    own = dict.fromkeys(v for e in read.indices for part, _ in e.items for v in sorted(part.free, key=lambda v: v.uid))
    if all(v.prefix == _PLACE for v in own):
        return read
    there = Substitution({v: expr.of_var(expr.var(_PLACE, n, v.size)) for n, v in enumerate(own)})
    return make_read(read.tensor, tuple(map(there.index, read.indices)))


@once_a_session
def _may_have_some(source: Tensor) -> bool:
    """Whether a definition is computed by functions that may be outside of their domains for want of elements."""
    return any(map(_may_be_outside, source.bodies))


@once_a_session
def _may_be_outside(p: Poly) -> bool:
    for atom in (atom for mono, _ in p.items for atom, _ in mono if atom.doubt):
        if isinstance(atom, Apply):
            outside = _OUTSIDE.get(atom.function.name)
            if outside is not None and _may_be_left(atom.args[-1], outside):
                return True
            if any(map(_may_be_outside, atom.args)):
                return True
        elif isinstance(atom, Read) and _may_have_some(atom.tensor):
            return True
    return False


def _may_be_left(p: Poly, outside: int) -> bool:
    """Whether nothing may be left of a term somewhere but a number, of which functions are not defined either."""
    left = sum(c for mono, c in p.items if not mono)
    sign = NEGATIVE if left < 0 else ZERO if not left else POSITIVE
    return bool(sign & outside) and all(_may_vanish(mono) for mono, _ in p.items if mono)


def _may_vanish(mono: Monomial) -> bool:
    return any(_is_condition(a) or (isinstance(a, Read) and _may_be_empty(a.tensor)) for a, _ in mono)


def _is_condition(atom: Atom) -> bool:
    return isinstance(atom, Guard) or (isinstance(atom, Ix) and _table(atom) is not None)


def _table(atom: Ix) -> Opaque | None:
    """The table that an integer is looked up in; None where it is something else."""
    (part, c), *others = atom.index.items
    if others or c != 1 or atom.index.const or not isinstance(part, Opaque) or part.operator != "table":
        return None
    return part


@once_a_session
def _may_be_empty(source: Tensor) -> bool:
    """Whether all that a sum adds up is under conditions, so that nothing may be left of it."""
    return source.kind in _SUMS and all(_may_vanish(mono) for body in source.bodies for mono, _ in body.items)


@once_a_session
def at_edges(p: Poly) -> tuple[Poly, ...]:
    """A term at places on either side of which its conditions hold, or those of what it adds up, and as it is; less the
    sums of which nothing is left there. Variables on which there is no condition are left as they are."""
    edges = (place for form, at in _edges(p) if (place := _where(form, at)))
    places = dict.fromkeys(((), *islice(edges, limit_of("finite_elements"))))
    return tuple(_less_empty(p, dict(place)) for place in places)


def _edges(p: Poly) -> Iterator[tuple[Index, int]]:
    """The parts of conditions that hang on a term's own variables, with the values beyond which a condition holds for
    no bound variable, and the least and greatest; and those of places at which a table holds nothing but 0."""
    for atom in dict.fromkeys(_conditions(p)):
        if isinstance(atom, Guard):
            form, rest = _own(atom.form, p)
            yield from ((form, end) for end in (form.lo, form.hi))
            yield from ((form, end - 1 - rest.hi) for end in (atom.lo,) if end is not None)
            yield from ((form, end + 1 - rest.lo) for end in (atom.hi,) if end is not None)
        elif isinstance(atom, Ix) and (table := _table(atom)) is not None:
            form, rest = _own(table.exprs[0], p)
            entries = np.array(list(map(bool, table.args[0])))
            places = range(max(form.lo, -rest.lo), min(form.hi, len(entries) - 1 - rest.hi) + 1)
            beside = _values(rest) if places else np.array([], int)
            yield from ((form, k) for k in places if not entries[k + beside].any())


def _values(e: Index) -> Ints:
    """What an expression may be, its parts taken apart from each other; all between the ends where these are many."""
    if prod(atom.hi - atom.lo + 1 for atom, _ in e.items) > limit_of("finite_elements"):
        return np.arange(e.lo, e.hi + 1)
    found = np.array([e.const])
    for atom, c in e.items:
        found = np.unique(np.add.outer(found, c * np.arange(atom.lo, atom.hi + 1)))
    return found


def _own(e: Index, p: Poly) -> tuple[Index, Index]:
    """The part of an expression that is made of digits of a term's own variables, and the rest of it."""
    own = [
        (atom, c) for atom, c in e.items if isinstance(atom, Digit) and atom.var in p.free and atom.var.size < UNBOUNDED
    ]
    form = expr.build(0, own)
    return form, expr.subtract(e, form)


def _conditions(p: Poly) -> Iterator[Atom]:
    """The conditions on what a term adds up, and on that of its sums."""
    for mono, _ in p.items:
        for atom, _ in mono:
            if _is_condition(atom):
                yield atom
            elif isinstance(atom, Read) and _may_be_empty(atom.tensor):
                for body in _bodies(atom):
                    yield from _conditions(body)


@once_a_session
def _bodies(read: Read) -> tuple[Poly, ...]:
    from hlo_verify.terms.definitions import unfold  # made of terms

    return unfold(read)[1]


def _where(form: Index, value: int) -> tuple[tuple[Var, Index], ...]:
    """A place at which a form has a value, or none where that is not found: digits, from the one that counts most."""
    left, places = value - form.const, dict[Var, int]()
    digits = sorted(form.items, key=lambda item: -abs(item[1]))
    for n, (atom, c) in enumerate(digits):
        assert isinstance(atom, Digit)
        least = sum(min(k * a.lo, k * a.hi) for a, k in digits[n + 1 :])
        digit = min(max((left - least) // c, atom.lo), atom.hi)
        left -= c * digit
        places[atom.var] = places.get(atom.var, 0) + digit * atom.low
    if left or any(n >= v.size for v, n in places.items()):
        return ()
    return tuple((v, expr.constant(n)) for v, n in places.items())


def _less_empty(p: Poly, place: Mapping[Var, Index]) -> Poly:
    """A term at a place, less the sums in it that add up nothing there."""
    from hlo_verify.terms.products import with_atoms  # made of terms
    from hlo_verify.terms.substitution import substitute

    return with_atoms(substitute(p, place), _if_empty)


def _if_empty(atom: Atom) -> Poly | None:
    if not isinstance(atom, Read) or not _may_be_empty(atom.tensor):
        return None
    return NOTHING if all(_less_empty(body, {}) is NOTHING for body in _bodies(atom)) else None
