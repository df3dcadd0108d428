"""Definitions made of sums of products, with no name for a part of one.

    t[i] + y[i]  =  2*y[i] - h[i]*y[i]        with  t[i] = (1 - h[i]) * y[i]

What gets a name, and when, depends on how a program computes it. Where names are taken apart in each definition, from
the innermost on, those of two programs that compute the same sums of products become the same. So do bits of integers
(`terms.bitwise`): `(a | b) + (a & b)` is `a + b`.
"""

from __future__ import annotations

from collections.abc import Callable

from hlo_verify.equality.opening import opened
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.memory import once_a_session, per_session
from hlo_verify.terms import algebra, bitwise
from hlo_verify.terms.at_constants import remade
from hlo_verify.terms.definitions import at_places, fresh_places
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Apply, Atom, Poly, Read, Tensor

_made: Callable[[], dict[Tensor, tuple[list[Var], Poly]]] = per_session("definitions without names", dict)


def without_names(p: Poly) -> Poly:
    """The term with names taken apart in all that it is made of, as far as that does not make a part too long."""
    return opened(algebra.with_atoms(p, _anew))


@once_a_session
def _anew(atom: Atom) -> Poly | None:
    if isinstance(atom, Apply):
        args = tuple(map(without_names, atom.args))
        bits = bitwise.written(atom.function, args)
        return apply(atom.function, args) if bits is None else bits
    if not isinstance(atom, Read) or not atom.tensor.bodies or atom.tensor.seal is not None:
        return None
    known = _made()
    if atom.tensor not in known:
        known[atom.tensor] = _definition(atom.tensor)
    places, there = known[atom.tensor]
    return algebra.substitute(there, dict(zip(places, atom.indices, strict=True)))


def _definition(source: Tensor) -> tuple[list[Var], Poly]:
    """A definition, read at variables in the place of its parameters and its own places."""
    places = fresh_places(len(source.params) + source.own)
    at = tuple(map(expr.of_var, places))
    bound, there = at_places(source, at[: len(source.params)])
    bodies = tuple(without_names(there.poly(body)) for body in source.bodies)
    return places, remade(source, bound, bodies, at[len(source.params) :])
