"""Definitions read at constants, with the constants in them: `h[3, j]` is `sum k. x[3, k] * w[k, j]`.

A definition is the same wherever it is read, and of a row of a matrix it may be made in two ways: as `h` read at 3, or
from what was row 3 before. `at_constants` makes the second of the first, however deep it is, in what is a place too:
`[i = argmax k. x[3, k]]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.memory import once_a_session, per_session
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import at_places, define, fresh_places, named
from hlo_verify.terms.extrema import reduce_extremum, reduce_product
from hlo_verify.terms.laws import apply
from hlo_verify.terms.places import values_in_places, with_values
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Apply, Atom, Guard, Ix, Poly, Read, Tensor

UNORDERED = ("sum", "max", "min", "product", "term")
"""The kinds of definitions that are made by laws of their own."""


def remade(source: Tensor, bound: Sequence[Var], bodies: tuple[Poly, ...], own: tuple[Index, ...]) -> Poly:
    """The definition of the same kind of other bodies."""
    if source.kind == "term":
        return named(bodies[0], source.dtype)
    if source.kind == "sum":
        return reduce_sum(bound, bodies[0])
    if source.kind == "product":
        return reduce_product(bound, bodies[0])
    if source.kind in UNORDERED:
        return reduce_extremum(source.kind, bound, bodies[0])
    return define(source.kind, bound, bodies, attributes=source.attributes, at=own, ordered=True, dtype=source.dtype)


_Key = tuple[Tensor, tuple[int | None, ...]]

_made: Callable[[], dict[_Key, tuple[list[Var], Poly]]] = per_session("definitions at constants", dict)


def at_constants(p: Poly) -> Poly:
    """The term, in which no definition is read at a constant, however deep."""
    if not any(_changes(atom) for mono, _ in p.items for atom, _ in mono):
        return p
    return algebra.with_atoms(p, _made_anew)


@once_a_session
def _changes(atom: Atom) -> bool:
    inner = atom.args if isinstance(atom, Apply) else values_in_places(atom)
    if any(_changes(part) for term in inner for mono, _ in term.items for part, _ in mono):
        return True
    if not isinstance(atom, Read) or not atom.tensor.bodies or atom.tensor.seal is not None:
        return False
    return any(not e.items for e in atom.indices[: len(atom.tensor.params)]) or _changes_inside(atom.tensor)


@once_a_session
def _changes_inside(source: Tensor) -> bool:
    return any(_changes(atom) for body in source.bodies for mono, _ in body.items for atom, _ in mono)


@once_a_session
def _made_anew(atom: Atom) -> Poly | None:
    if not _changes(atom):
        return None
    if isinstance(atom, Apply):
        return apply(atom.function, tuple(map(at_constants, atom.args)))
    if isinstance(atom, Ix):
        return algebra.of_index(_place(atom.index))
    if isinstance(atom, Guard):
        return guards.interval(_place(atom.form), atom.lo, atom.hi)
    indices = [_place(e) for e in atom.indices]
    if not atom.tensor.bodies or atom.tensor.seal is not None:
        return algebra.read(atom.tensor, indices)
    given = tuple(None if e.items else e.const for e in indices[: len(atom.tensor.params)])
    known, key = _made(), (atom.tensor, given)
    if key not in known:
        known[key] = _definition(*key)
    places, there = known[key]
    left = [e for e, c in zip(indices, (*given, *[None] * atom.tensor.own), strict=True) if c is None]
    return algebra.substitute(there, dict(zip(places, left, strict=True)))


def _place(e: Index) -> Index:
    """An index expression, with constants in the definitions whose values it takes."""
    return with_values(e, at_constants)


def _definition(source: Tensor, given: tuple[int | None, ...]) -> tuple[list[Var], Poly]:
    """A definition where some of its parameters are constants, read at variables in the place of the others."""
    places, at = partly_given((*given, *[None] * source.own))
    bound, there = at_places(source, at[: len(given)])
    bodies = tuple(at_constants(there.poly(body)) for body in source.bodies)
    return places, remade(source, bound, bodies, at[len(given) :])


def partly_given(places: Sequence[int | None]) -> tuple[list[Var], tuple[Index, ...]]:
    """Places of which some are numbers, with fresh variables for the others: those variables, and all places."""
    fresh = fresh_places(places.count(None))
    others = map(expr.of_var, fresh)
    return fresh, tuple(next(others) if c is None else expr.constant(c) for c in places)
