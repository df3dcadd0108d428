"""Definitions read at constants, made anew where the constants decide a guard in them.

A program that tells its devices apart (`stage == 0 ? x : received`) has guards inside its definitions. Where such a
definition is read for one device, most of it is gone: with `s[i,d] = sum k. ([d = 0]*a[i,k] + [d > 0]*b[i,k]) * w[k]`,
`s[i,0]` is `sum k. a[i,k] * w[k]`. The new definition says so, and is made of what is left only.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlo_verify.index.expr import Var
from hlo_verify.solver.integers import Effort
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import named, unfold
from hlo_verify.terms.functions import apply
from hlo_verify.terms.sums import reduce_extremum, reduce_sum
from hlo_verify.terms.term import ZERO, Apply, Atom, Guard, Poly, Read, number, of_atom

KINDS = frozenset({"sum", "max", "min", "term"})
"""The definitions that are made anew."""


_known: dict[Read, Poly] = {}
"""The reads looked at so far, and what they are."""


def settled(p: Poly, effort: Effort) -> Poly:
    """The same term, in which no definition is read at a constant that decides a guard in it, however deep.

    Each definition that is looked at takes a step; without any left, the others stay as they are.
    """
    if not any(_may_settle(atom) for mono, _ in p.items for atom, _ in mono):
        return p
    result = ZERO
    for mono, c in p.items:
        product: Poly = number(c)
        for atom, n in mono:
            product = algebra.multiply(product, algebra.power_of(_settled_atom(atom, effort), n))
        result = algebra.add(result, product)
    return result


def forget() -> None:
    """Let go of the definitions looked at so far; see `terms.memory`."""
    _known.clear()


def _may_settle(atom: Atom) -> bool:
    if isinstance(atom, Apply):
        return any(_may_settle(inner) for arg in atom.args for mono, _ in arg.items for inner, _ in mono)
    return isinstance(atom, Read) and atom.tensor.kind in KINDS and bool(_fixed(atom))


def _fixed(read: Read) -> set[Var]:
    """The parameters of a definition that a read gives a constant."""
    return {v for v, e in zip(read.tensor.params, read.indices, strict=False) if not e.items}


def _settled_atom(atom: Atom, effort: Effort) -> Poly:
    if isinstance(atom, Apply):
        args = tuple(settled(arg, effort) for arg in atom.args)
        return of_atom(atom) if args == atom.args else apply(atom.function, args)
    if isinstance(atom, Read) and atom.tensor.kind in KINDS and _fixed(atom):
        found = _known.get(atom)
        if found is None:
            effort.left -= 1
            if effort.left <= 0:
                return of_atom(atom)
            found = _settled_read(atom, effort)
            if effort.left > 0:
                _known[atom] = found
        return found
    return of_atom(atom)


def _settled_read(read: Read, effort: Effort) -> Poly:
    bound, (body, *_) = unfold(read)
    inside = settled(body, effort)
    if inside is body and not any(not guard.free.isdisjoint(_fixed(read)) for guard in _guards(read.tensor.bodies[0])):
        return of_atom(read)
    kind = read.tensor.kind
    if kind == "term":
        return named(inside, read.tensor.dtype)
    return reduce_sum(bound, inside) if kind == "sum" else reduce_extremum(kind, bound, inside)


def _guards(p: Poly) -> Iterator[Guard]:
    for mono, _ in p.items:
        for atom, _ in mono:
            if isinstance(atom, Guard):
                yield atom
            elif isinstance(atom, Apply):
                for arg in atom.args:
                    yield from _guards(arg)
