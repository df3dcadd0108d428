"""Which bound variables of one sum are those of another: candidates for the matcher, to be checked by it.

Sums over the same elements may name them differently: in another order, or one with a variable where the other has
several digits (a device's part of a dimension and the rest of it). A wrong candidate costs time and proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.term import Poly, Read, atoms, indices

Links = dict[Var, list[Var]]


def links(body: Poly, variables: Sequence[Var]) -> Links:
    """For each variable those that go on where it ends: `x + size*y` occurs, or a multiple of it."""
    found: Links = {v: [] for v in variables}
    for e in _index_expressions(body):
        coefficients = {
            a.var: c for a, c in e.items if isinstance(a, Digit) and a.low == 1 and a.top and a.var in found
        }
        for x, c in coefficients.items():
            for y, k in coefficients.items():
                if x is not y and k == c * x.size and y not in found[x]:
                    found[x].append(y)
    return found


def alignments(read: Read, common: Sequence[Var], joined: Links) -> Iterator[Poly]:
    """The body of a sum over the common variables, in every way that fits their sizes."""
    fresh, (body, *_) = unfold(read)
    for mapping in _assign(list(fresh), list(common), joined):
        yield algebra.substitute(body, mapping)


def _assign(variables: list[Var], free: list[Var], joined: Links) -> Iterator[dict[Var, Index]]:
    """Every way of making the variables of all the free ones, each of one or of several that go on from each other."""
    if not variables:
        if not free:
            yield {}
        return
    v, *others = variables
    for chain in _chains(v.size, free, joined):
        value, scale = expr.constant(0), 1
        for digit in chain:
            value = expr.add(value, expr.scale(expr.of_var(digit), scale))
            scale *= digit.size
        left = [w for w in free if w not in chain]
        for mapping in _assign(others, left, joined):
            yield {v: value, **mapping}


def _chains(size: int, free: list[Var], joined: Links) -> Iterator[list[Var]]:
    """Free variables, or runs of them, with that many values together."""
    for start in free:
        if start.size == size:
            yield [start]
    for start in free:
        if start.size < size:
            yield from _runs([start], start.size, size, free, joined)


def _runs(run: list[Var], product: int, size: int, free: list[Var], joined: Links) -> Iterator[list[Var]]:
    for following in joined[run[-1]]:
        if following in free and following not in run:
            longer = product * following.size
            if longer == size:
                yield [*run, following]
            elif size % longer == 0:
                yield from _runs([*run, following], longer, size, free, joined)


def _index_expressions(p: Poly) -> Iterator[Index]:
    for atom in atoms(p):
        for e in indices(atom):
            yield from _and_inner(e)


def _and_inner(e: Index) -> Iterator[Index]:
    yield e
    for atom, _ in e.items:
        if isinstance(atom, Opaque):
            for inner in atom.exprs:
                yield from _and_inner(inner)
            if atom.term is not None:
                yield from _index_expressions(atom.term)
