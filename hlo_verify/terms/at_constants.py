"""Definitions read at constants, with the constants in them: `h[3, j]` is `sum k. x[3, k] * w[k, j]`.

A definition is the same wherever it is read, and of a row of a matrix it may be made in two ways: as `h` read at 3, or
from what was row 3 before. `at_constants` makes the second of the first, however deep it is, in what is a place too:
`[i = argmax k. x[3, k]]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.memory import once_a_session, per_session
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import define, named
from hlo_verify.terms.extrema import reduce_extremum, reduce_product
from hlo_verify.terms.laws import apply
from hlo_verify.terms.places import values_in_places
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Apply, Atom, Guard, Ix, Poly, Read, Tensor, value_of

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
    return algebra.mapped(p, lambda mono: algebra.product_with(mono, _made_anew))


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
    parts: list[Index] = []
    rest: list[tuple[expr.Atom, int]] = []
    for atom, c in e.items:
        if isinstance(atom, Digit):
            rest.append((atom, c))
        else:
            parts.append(expr.scale(_value(atom), c))
    return expr.add(expr.build(e.const, rest), *parts) if parts else e


def _value(atom: Opaque) -> Index:
    if atom.operator == "value":
        value = value_of(atom)
        new = at_constants(value)
        return expr.of_atom(atom) if new is value else algebra.as_index(new, atom.lo, atom.hi)
    inner = _place(atom.exprs[0])
    return expr.of_atom(atom) if inner is atom.exprs[0] else expr.again(atom, inner)


def _definition(source: Tensor, given: tuple[int | None, ...]) -> tuple[list[Var], Poly]:
    """A definition where some of its parameters are constants, read at variables in the place of the others."""
    places: list[Var] = []
    mapping: dict[Var, Index] = {}
    for v, c in zip(source.params, given, strict=True):
        if c is None:
            places.append(expr.fresh("s", expr.UNBOUNDED))
        mapping[v] = expr.of_var(places[-1]) if c is None else expr.constant(c)
    own = [expr.fresh("s", expr.UNBOUNDED) for _ in range(source.own)]
    bound = [expr.fresh("f", v.size) for v in source.bound]
    mapping |= {v: expr.of_var(w) for v, w in zip(source.bound, bound, strict=True)}
    substitution = algebra.Substitution(mapping)
    bodies = tuple(at_constants(substitution.poly(body)) for body in source.bodies)
    return [*places, *own], remade(source, bound, bodies, tuple(map(expr.of_var, own)))
