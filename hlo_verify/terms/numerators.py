"""Names of quotients as quotients of names: `(a/d + b/d)` by name is `1/d` times the name of `a + b`.

A sum gets a name where it is heavy. Of a program that divides it by d and then names it, and of one that names it and
divides the name, the second form is made, however deep it is: a pass that makes `m / (p*q)` of `m / p / q` moves names
like that.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra
from hlo_verify.terms.at_constants import remade
from hlo_verify.terms.definitions import at_places, fresh_places, named
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.places import values_in_places
from hlo_verify.terms.term import Apply, Atom, Monomial, Number, Poly, Read, Tensor, make_poly


def numerators(p: Poly) -> Poly:
    """The term, in which no name is of a sum of quotients by one denominator."""
    if not any(_changes(atom) for mono, _ in p.items for atom, _ in mono):
        return p
    return algebra.with_atoms(p, _made_anew)


def _changes_in(terms: Sequence[Poly]) -> bool:
    return any(_changes(atom) for term in terms for mono, _ in term.items for atom, _ in mono)


@once_a_session
def _changes(atom: Atom) -> bool:
    if isinstance(atom, Apply):
        return _changes_in(atom.args)
    if not isinstance(atom, Read) or atom.tensor.seal is not None or any(True for _ in values_in_places(atom)):
        return False
    source = atom.tensor
    return (source.kind == "term" and bool(_common(source.bodies[0]))) or _changes_in(source.bodies)


@once_a_session
def _made_anew(atom: Atom) -> Poly | None:
    if not _changes(atom):
        return None
    if isinstance(atom, Apply):
        return apply(atom.function, tuple(map(numerators, atom.args)))
    assert isinstance(atom, Read)
    places, there = _definition(atom.tensor)
    return algebra.substitute(there, dict(zip(places, atom.indices, strict=True)))


@once_a_session
def _definition(source: Tensor) -> tuple[list[Var], Poly]:
    """A definition made anew, read at variables: definitions that read others twice a level are a graph, not a tree."""
    places = fresh_places(len(source.params) + source.own)
    at = tuple(map(expr.of_var, places))
    bound, there = at_places(source, at[: len(source.params)])
    made = tuple(numerators(there.poly(body)) for body in source.bodies)
    if source.kind != "term":
        return places, remade(source, bound, made, at[len(source.params) :])
    common = _common(made[0])
    rest = _without(made[0], common)
    name = algebra.up_to_scale(rest, lambda p: named(p, source.dtype))
    return places, algebra.multiply(make_poly(((common, 1),)), name) if common else name


def _common(p: Poly) -> Monomial:
    """The inverses that all summands of a sum are multiplied by, each with its power; of what may be 0, only where some
    summand is computed in any case, as the quotient of the name will be."""
    if len(p.items) < 2 or p.doubt & INFINITE:
        return ()
    first, *others = (dict(mono) for mono, _ in p.items)
    is_computed = any(not any(atom.boolean for atom, _ in mono) for mono, _ in p.items)
    return tuple(
        (atom, power)
        for atom, power in first.items()
        if isinstance(atom, Apply)
        and atom.function.name == "inverse"
        and (is_computed or not atom.doubt)
        and all(other.get(atom) == power for other in others)
    )


def _without(p: Poly, common: Monomial) -> Poly:
    gone = {atom for atom, _ in common}
    items: list[tuple[Monomial, Number]] = [
        (tuple(item for item in mono if item[0] not in gone), c) for mono, c in p.items
    ]
    return algebra.add(*(make_poly(((mono, c),)) for mono, c in items))
