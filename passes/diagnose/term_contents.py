"""What a term is made of: tensors, index expressions, digits of a variable; and what two terms have in common."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.terms import algebra
from hlo_verify.terms import term as parts
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import (
    Apply,
    Atom,
    Ix,
    Number,
    Poly,
    Read,
    Tensor,
    make_poly,
    mix,
    monomial_skey,
    reads,
    value_of,
)


def indices(term: Poly) -> Iterator[Index]:
    """Every index expression of a term, at any depth; index values that are multiplied by a number, multiplied."""
    for mono, c in term.items:
        if len(mono) == 1 and isinstance(mono[0][0], Ix) and mono[0][1] == 1 and isinstance(c, int):
            yield expr.scale(mono[0][0].index, c)
            continue
        for atom, _ in mono:
            yield from _of_atom(atom)


def _of_atom(atom: Atom) -> Iterator[Index]:
    if isinstance(atom, Apply):
        for arg in atom.args:
            yield from indices(arg)
    for e in parts.indices(atom):
        yield from _inner(e)


def _inner(e: Index) -> Iterator[Index]:
    yield e
    for atom, _ in e.items:
        if isinstance(atom, Opaque):
            if atom.term is not None:
                yield from indices(value_of(atom))
            if atom.operator != "table" and atom.operator != "mod":
                for inner in atom.exprs:
                    yield from _inner(inner)


def digits_of(e: Index, variable: Var) -> list[Digit]:
    """The digits of a variable in an index expression, at any depth."""
    found = []
    for atom, _ in e.items:
        if isinstance(atom, Digit):
            if atom.var is variable:
                found.append(atom)
        elif variable in atom.free:
            for inner in atom.exprs:
                found += digits_of(inner, variable)
    return found


def is_computed(term: Poly) -> bool:
    """Whether a term reads a tensor or applies a function: whether it is more than numbers and indices."""
    return any(isinstance(atom, Read | Apply) for mono, _ in term.items for atom, _ in mono)


def tensors(term: Poly) -> set[Tensor]:
    """The tensors that a term reads, in the arguments of functions too."""
    return {read.tensor for read in reads(term)}


def form(term: Poly) -> int:
    """A key that is the same for terms that differ in where they are evaluated, or by a constant factor."""
    return mix(*sorted(monomial_skey(mono) for mono, _ in term.items))


def ratio(a: Poly, b: Poly) -> Number | None:
    """c if a is c*b, for a number c."""
    if len(a.items) != len(b.items) or not a.items:
        return None
    others = dict(b.items)
    found: Number | None = None
    for mono, c in a.items:
        k = others.get(mono)
        if k is None:
            return None
        here = Fraction(c) / Fraction(k)
        if found not in (None, here):
            return None
        found = here
    return found


def named_anew(term: Poly) -> Poly:
    """The term with its sums defined anew where computed indices say which elements are taken of them.

    A value that is looked up in a sum is the sum of what is looked up, by another name.
    """
    parts = []
    for mono, c in term.items:
        looked_up = [atom for atom, n in mono if isinstance(atom, Read) and n == 1 and _is_looked_up(atom)]
        sums = {read: reduce_sum(bound, bodies[0]) for read in looked_up for bound, bodies in [unfold(read)]}
        parts.append(algebra.scale(algebra.product_with(mono, sums.get), c) if sums else make_poly(((mono, c),)))
    return algebra.add(*parts)


def _is_looked_up(read: Read) -> bool:
    return read.tensor.kind == "sum" and any(
        isinstance(atom, Opaque) and atom.term is not None for e in read.indices for atom, _ in e.items
    )
