"""Functions that are outside of their domains at some place, whatever the arguments are.

    1 / sum k<8. [k < i]*exp(s[k])        at i = 0, where no element is left
    log(sqrt(sum k<8. c[i,k]*exp(s[k])))  at the i for which the constant c[i,k] is 0 for all k

That a program is given no inputs for which it divides by 0 says nothing of such a place: there every input does. What
it makes is the program's own, as `1/0` is. Places are looked at where conditions and constants make what is added up
vanish: what is left there is a number, or has a sign, whatever the arguments are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import islice
from math import prod
from typing import TypeGuard

import numpy as np

from hlo_verify.index import expr
from hlo_verify.index.expr import UNBOUNDED, Digit, Index, Opaque, Var
from hlo_verify.index.tables import Bools, Ints
from hlo_verify.limits import limit_of
from hlo_verify.memory import once_a_session
from hlo_verify.terms import signs
from hlo_verify.terms.conditions import Conditions
from hlo_verify.terms.doubts import INFINITE, has_value_of_numbers, is_of_constants, is_partial
from hlo_verify.terms.functions import EXTREMA, Function
from hlo_verify.terms.kept_for_some import Needs, are_met, both, for_all, is_positive_for_some, needed, there
from hlo_verify.terms.places_of_one_form import apart, renamed
from hlo_verify.terms.signs import NEGATIVE, ZERO
from hlo_verify.terms.term import ZERO as NOTHING
from hlo_verify.terms.term import Apply, Atom, Guard, Ix, Monomial, Poly, Read, Tensor, make_poly, of_atom

_OUTSIDE: Mapping[str, int] = {
    "inverse": ZERO,
    "divide": ZERO,
    "remainder": ZERO,
    "log": NEGATIVE | ZERO,
    "rsqrt": NEGATIVE | ZERO,
    "sqrt": NEGATIVE,
}
"""The signs of their last argument for which functions have no number as their value; of others nothing is known."""

_VANISHING = ("sum", "term", "product", *EXTREMA)
"""Definitions that are 0 where all that they are of is."""

Place = Mapping[Var, Index]


@once_a_session
def is_outside_somewhere(function: Function, args: tuple[Poly, ...]) -> bool:
    """Whether a function of those terms has no number as its value at some place, whatever the arguments are."""
    if not args or not is_partial(function):
        return False
    if _is_outside(function, args):
        return True
    if not _may_be_outside_of(function, args) or (function.name in _OUTSIDE and is_positive_for_some(args[-1])):
        return False
    anywhere = apart(args)
    if anywhere is not args and not is_outside_somewhere(function, anywhere):
        return False
    return any(_is_outside(function, there) for there in at_edges(args))


@once_a_session
def is_known_somewhere(p: Poly) -> bool:
    """Whether a term, which is none of constants, is one at some place, whatever the arguments are."""
    return _may_be_known(p) and not is_of_constants(p) and any(is_of_constants(q) for (q,) in at_edges((p,)))


def _is_outside(function: Function, args: tuple[Poly, ...]) -> bool:
    """Whether it has none at a place, of what is left there."""
    if any(map(has_infinite, args)):
        return True
    if all(map(is_of_constants, args)):
        return not has_value_of_numbers(function, args)
    outside = _OUTSIDE.get(function.name)
    return outside is not None and not signs.of(args[-1]) & ~outside


@once_a_session
def has_some(read: Read) -> bool:
    """Whether an element of a definition is computed by such a function at its own place. Of no element by itself is it
    known: a definition is made for places without bounds."""
    if not _suspects(read.tensor) or not any(v.size < UNBOUNDED for v in read.free):
        return False
    needs = _numbers_where(read.tensor)
    if needs is not None and (left := there(needs, read)) is not None and are_met(left, read.free):
        return False
    (anywhere,) = apart((of_atom(read),))
    if anywhere.atom is not read and not has_infinite(anywhere):
        return False
    alike = renamed(read)
    if alike is not read:
        return bool(alike.doubt & INFINITE)
    from hlo_verify.terms.substitution import at_own_places  # made of terms

    own = at_own_places(read)
    return any(has_infinite(own.poly(part)) for part in _suspects(read.tensor))


def has_infinite(p: Poly) -> bool:
    """Whether something may be infinite in a term. Atoms say it: it may be found of an element after a term is made."""
    return any(atom.doubt & INFINITE for mono, _ in p.items for atom, _ in mono)


@once_a_session
def _suspects(source: Tensor) -> tuple[Poly, ...]:
    """The factors of what a definition adds up that may be such functions, or made by some, with their conditions."""
    return tuple(
        make_poly(((tuple(item for item in mono if item[0].boolean or item[0] is atom), 1),))
        for body in source.bodies
        for mono, _ in body.items
        for atom, _ in mono
        if _may_be_made_outside(atom)
    )


@once_a_session
def _may_be_made_outside(atom: Atom) -> bool:
    if isinstance(atom, Read):
        return bool(atom.doubt and _suspects(atom.tensor))
    if not isinstance(atom, Apply) or not atom.doubt:
        return False
    is_own = is_partial(atom.function) and _may_be_outside_of(atom.function, atom.args)
    return is_own or any(_may_be_made_outside(a) for p in atom.args for mono, _ in p.items for a, _ in mono)


@once_a_session
def _numbers_where(source: Tensor) -> Needs | None:
    """Places at which what a definition adds up is a number for some arguments, by what suffices; None if by nothing
    that is found."""
    found = both(_number_where(atom) for part in _suspects(source) for mono, _ in part.items for atom, _ in mono)
    return None if found is None else for_all(found, source.bound)


@once_a_session
def _number_where(atom: Atom) -> Needs | None:
    if atom.boolean or not _may_be_made_outside(atom):
        return None if atom.doubt & INFINITE else ()
    if isinstance(atom, Read):
        inner = _numbers_where(atom.tensor)
        return None if inner is None or atom.doubt & INFINITE else there(inner, atom)
    assert isinstance(atom, Apply)
    own: Needs | None = None if atom.doubt & INFINITE else ()
    if is_partial(atom.function) and _may_be_outside_of(atom.function, atom.args):
        own = needed(atom.args[-1]) if atom.function.name in _OUTSIDE and own is not None else None
    kept = None if own is None else for_all(own, ())
    return both((kept, *(_number_where(a) for p in atom.args for mono, _ in p.items for a, _ in mono)))


def _may_be_outside_of(function: Function, args: Sequence[Poly]) -> bool:
    """Whether all that the arguments of a program decide may be left out somewhere of what a function is of."""
    return bool(args) and all(map(_may_be_known, args[-1:] if function.name in _OUTSIDE else args))


@once_a_session
def _may_be_known(p: Poly) -> bool:
    """Whether nothing may be left of a term somewhere but constants, and functions of them."""
    return _may_be_left_with(
        p, lambda mono: _may_vanish(mono) or all(_may_be_constant(a) for a, _ in mono if not a.boolean)
    )


def _may_be_left_with(p: Poly, is_left: Callable[[Monomial], bool]) -> bool:
    """Whether conditions on places may leave such products of a term alone: of one in cases that exclude one another,
    there is one left everywhere."""
    others = [
        (tuple(item for item in mono if isinstance(item[0], Guard) or not item[0].boolean), c)
        for mono, c in p.items
        if not is_left(mono)
    ]
    held = [[item for item in mono if item[0].boolean] for mono, _ in others]
    if not others or not all(held):
        return not others
    conditions = Conditions.of(held)
    return conditions.count > limit_of("sign_cases") or not all(
        case.coefficients(others) for case in conditions.cases()
    )


def _may_be_constant(atom: Atom) -> bool:
    if isinstance(atom, Apply):
        return all(map(_may_be_known, atom.args))
    return isinstance(atom, Read) and atom.tensor.kind == "term" and all(map(_may_be_known, atom.tensor.bodies))


def _may_vanish(mono: Monomial) -> bool:
    """Whether a factor of a product that is no guard may be 0 somewhere."""
    return any(
        (_is_condition(a) and not isinstance(a, Guard))
        or (isinstance(a, Read) and _may_be_empty(a.tensor))
        or _is_of_nothing(a)
        for a, _ in mono
    )


def _is_of_nothing(atom: Atom) -> bool:
    """Whether an atom is a function of what may vanish, as the absolute value of a constant's elements is."""
    if not isinstance(atom, Apply) or atom.function.properties.positive:
        return False
    return bool(atom.args) and all(map(_all_may_vanish, atom.args))


@once_a_session
def _all_may_vanish(p: Poly) -> bool:
    return _may_be_left_with(p, _may_vanish)


def _is_condition(atom: Atom) -> bool:
    """Whether an atom is 0 at some places, whatever the arguments are."""
    if isinstance(atom, Ix):
        return _table(atom) is not None or all(isinstance(part, Digit) for part, _ in atom.index.items)
    return isinstance(atom, Guard) or _has_zeros(atom)


def _has_zeros(atom: Atom) -> TypeGuard[Read]:
    """Whether an atom is an element of a constant, some of which are 0."""
    return isinstance(atom, Read) and atom.tensor.values is not None and not _nonzero(atom.tensor).all()


@once_a_session
def _nonzero(source: Tensor) -> Bools:
    return np.asarray(source.values, bool)


def _table(atom: Ix) -> Opaque | None:
    """The table that an integer is looked up in; None where it is something else."""
    (part, c), *others = atom.index.items
    if others or c != 1 or atom.index.const or not isinstance(part, Opaque) or part.operator != "table":
        return None
    return part


@once_a_session
def _may_be_empty(source: Tensor) -> bool:
    """Whether all that a sum adds up may be 0 at a place, or what an extremum is of, so that nothing is left of it."""
    return source.kind in _VANISHING and all(map(_all_may_vanish, source.bodies))


@once_a_session
def at_edges(terms: tuple[Poly, ...]) -> tuple[tuple[Poly, ...], ...]:
    """Terms at places on either side of which their conditions hold, or those of what they add up, and as they are;
    less the sums of which nothing is left there. Variables on which there is no condition are left as they are."""
    own = frozenset(v for p in terms for v in p.free if v.size < UNBOUNDED)
    edges = filter(None, map(_where, _edges(terms, own)))
    places = dict.fromkeys(((), *islice(edges, limit_of("finite_elements"))))
    return tuple(tuple(_at(p, dict(place)) for p in terms) for place in places)


Edge = tuple[tuple[Index, int], ...]
"""Forms, with the values that they have at a place."""


def _edges(terms: Sequence[Poly], own: Set[Var]) -> Iterator[Edge]:
    """The parts of conditions that hang on terms' own variables, with the values beyond which a condition holds for no
    bound variable, and the least and greatest; and those of places at which a table holds nothing but 0."""
    for atom in dict.fromkeys(atom for p in terms for atom in _conditions(p)):
        if isinstance(atom, Guard):
            form, rest = _parted(atom.form, own)
            ends = [form.lo, form.hi]
            ends += [end - 1 - rest.hi for end in (atom.lo,) if end is not None]
            ends += [end + 1 - rest.lo for end in (atom.hi,) if end is not None]
            yield from (((form, end),) for end in ends)
        elif isinstance(atom, Read):
            yield from _zeros(atom, own)
        elif isinstance(atom, Ix) and (table := _table(atom)) is None:
            form, rest = _parted(atom.index, own)
            yield from (((form, end),) for end in (-rest.const, form.lo, form.hi) if not rest.items)
        elif isinstance(atom, Ix) and table is not None:
            form, rest = _parted(table.exprs[0], own)
            entries = np.array(list(map(bool, table.args[0])))
            places = range(max(form.lo, -rest.lo), min(form.hi, len(entries) - 1 - rest.hi) + 1)
            beside = _values(rest) if places else np.array([], int)
            yield from (((form, k),) for k in places if not entries[k + beside].any())


def _zeros(atom: Read, own: Set[Var]) -> Iterator[Edge]:
    """Where a constant is 0 whatever the other variables are."""
    parts = [_parted(e, own) for e in atom.indices]
    others = tuple(n for n, (_, rest) in enumerate(parts) if rest.items)
    left = [part for n, part in enumerate(parts) if n not in others]
    for at in np.argwhere(~_nonzero(atom.tensor).any(axis=others)):
        yield tuple((form, int(k) - rest.const) for (form, rest), k in zip(left, at, strict=True))


def _values(e: Index) -> Ints:
    """What an expression may be, its parts taken apart from each other; all between the ends where these are many."""
    if prod(atom.hi - atom.lo + 1 for atom, _ in e.items) > limit_of("finite_elements"):
        return np.arange(e.lo, e.hi + 1)
    found = np.array([e.const])
    for atom, c in e.items:
        found = np.unique(np.add.outer(found, c * np.arange(atom.lo, atom.hi + 1)))
    return found


def _parted(e: Index, own: Set[Var]) -> tuple[Index, Index]:
    """The part of an expression that is made of digits of terms' own variables, and the rest of it."""
    form = expr.build(0, [(atom, c) for atom, c in e.items if isinstance(atom, Digit) and atom.var in own])
    return form, expr.subtract(e, form)


@once_a_session
def _conditions(p: Poly) -> tuple[Atom, ...]:
    """The conditions on what a term adds up, on that of its sums, and of what functions are of."""
    found: dict[Atom, None] = {}
    for atom in (atom for mono, _ in p.items for atom, _ in mono):
        inside: Sequence[Poly] = ()
        if _is_condition(atom):
            found[atom] = None
        elif isinstance(atom, Apply):
            inside = atom.args
        elif isinstance(atom, Read) and (_may_be_empty(atom.tensor) or _may_be_constant(atom)):
            inside = _bodies(atom)
        for part in inside:
            found.update(dict.fromkeys(_conditions(part)))
    return tuple(found)


@once_a_session
def _bodies(read: Read) -> tuple[Poly, ...]:
    from hlo_verify.terms.definitions import unfold  # made of terms

    return unfold(read)[1]


def _where(edge: Edge) -> tuple[tuple[Var, Index], ...]:
    """A place at which forms have their values, or none where that is not found: digits, from the one that counts
    most."""
    places = dict[Var, int]()
    for form, value in edge:
        left = value - form.const
        digits = sorted(form.items, key=lambda item: -abs(item[1]))
        for n, (atom, c) in enumerate(digits):
            assert isinstance(atom, Digit)
            least = sum(min(k * a.lo, k * a.hi) for a, k in digits[n + 1 :])
            digit = min(max((left - least) // c, atom.lo), atom.hi)
            left -= c * digit
            places[atom.var] = places.get(atom.var, 0) + digit * atom.low
        if left:
            return ()
    return (
        () if any(n >= v.size for v, n in places.items()) else tuple((v, expr.constant(n)) for v, n in places.items())
    )


def _at(p: Poly, place: Place) -> Poly:
    """A term at a place, less the sums in it that add up nothing there."""
    from hlo_verify.terms.substitution import substitute  # made of terms

    return _less_empty(substitute(p, place) if place else p)


@once_a_session
def _less_empty(p: Poly) -> Poly:
    from hlo_verify.terms.products import with_atoms  # made of terms

    return with_atoms(p, _if_empty)


@once_a_session
def _if_empty(atom: Atom) -> Poly | None:
    from hlo_verify.terms.laws import apply  # made of terms

    if isinstance(atom, Apply):
        args = tuple(map(_less_empty, atom.args))
        return None if args == atom.args else apply(atom.function, args)
    if _has_zeros(atom):
        here = tuple(slice(None) if e.items else e.const for e in atom.indices)
        return None if _nonzero(atom.tensor)[here].any() else NOTHING
    if not isinstance(atom, Read) or not (_may_be_empty(atom.tensor) or _may_be_constant(atom)):
        return None
    (left,) = map(_less_empty, _bodies(atom))
    return left if atom.tensor.kind == "term" or left is NOTHING else None
