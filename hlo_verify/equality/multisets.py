"""Greatest and least values and products, compared as the multisets of what they are of.

    max v<16. x[v]  =  maximum(max v<8. x[v], max v<8. x[8 + v])        as        {x[v]} = {x[v]} + {x[8 + v]}

A multiset is written as a sum: of `element(t)`, with a function of which nothing is known. Whatever function that is,
the sums are equal if they are as terms; of one that is 1 at one number and 0 elsewhere, they count how often that
number occurs. So equal sums are multisets of equal numbers, and what is made of these in any order is equal too. What
changes nothing counts nothing: minus infinity among what the greatest is looked for, 1 among factors.

So all that is known of sums is known of these: parts of ranges, prefixes, conditions, rings.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_verify.equality.opening import opened
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra
from hlo_verify.terms.bounds import types, within
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.functions import ELEMENT, EXTREMA
from hlo_verify.terms.no_number import infinity
from hlo_verify.terms.steps import pieces
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Poly, Read, Tensor, make_apply, number, of_atom

KINDS = (*EXTREMA, "product")
"""The definitions that are of such values."""


def as_sums(found: Poly, expected: Poly) -> tuple[Poly, Poly] | None:
    """Two sums that are equal only if the terms are; None of terms that are no such values of one kind."""
    both, either = _kinds(found) & _kinds(expected), _kinds(found) | _kinds(expected)
    kinds = [kind for kind in KINDS if kind in (either if kind == "product" else both)]
    if not kinds:
        return None
    mine, others = (_elements(p, kinds[0]) for p in (found, expected))
    return None if mine is None or others is None else (mine, others)


def _kinds(p: Poly) -> frozenset[str]:
    """The kinds of such values that a term is made of by conditions, sums and names."""
    return frozenset[str]().union(*(_kinds_of(atom) for mono, _ in p.items for atom, _ in mono))


def _kinds_of(atom: Atom) -> frozenset[str]:
    if isinstance(atom, Read) and atom.tensor.kind == "term":
        return _kinds_inside(atom.tensor)
    return frozenset(kind for kind in KINDS if _is_one(kind, atom))


@once_a_session
def _kinds_inside(name: Tensor) -> frozenset[str]:
    return _kinds(name.bodies[0])


def _is_one(kind: str, atom: Atom) -> bool:
    if isinstance(atom, Read):
        return atom.tensor.kind == kind and atom.tensor.seal is None
    return isinstance(atom, Apply) and atom.function == EXTREMA.get(kind)


@once_a_session
def _elements(p: Poly, kind: str) -> Poly | None:
    """The sum of the elements that a term is the greatest, the least or the product of."""
    p = opened(p)
    atom = p.atom
    if isinstance(atom, Read) and atom.tensor.kind == kind and atom.tensor.seal is None:
        bound, (body, *_) = unfold(atom)
        inside = _elements(body, kind)
        return None if inside is None else reduce_sum(bound, inside)
    if isinstance(atom, Apply) and atom.function == EXTREMA.get(kind):
        parts = [_elements(arg, kind) for arg in atom.args if not _is_idle(arg, atom.args, kind)]
        return algebra.add(*(part for part in parts if part is not None)) if None not in parts else None
    total = ZERO
    choices = pieces(p)
    for choice in choices:
        part = _elements(choice.term, kind)
        if part is None:
            return None
        total = algebra.add(total, algebra.multiply(choice.on, part))
    if choices:
        return total
    if kind == "product" and len(p.items) == 1:
        return _factors(p)
    return ZERO if p is _neutral(kind) else _element(p)


def _is_idle(p: Poly, among: Sequence[Poly], kind: str) -> bool:
    """Whether a term is the number that a reduction of integers begins with, the first or last of a type that another
    one fits, so that it does not wrap."""
    least_or_greatest = p.constant
    return any(
        least_or_greatest == (lo if kind == "max" else hi)
        and any(within(other, lo, hi) for other in among if other is not p)
        for lo, hi in types()
    )


def _factors(p: Poly) -> Poly | None:
    ((mono, c),) = p.items
    total = ZERO if c == 1 else _element(number(c))
    for atom, n in mono:
        if not isinstance(n, int) or n < 1 or atom.boolean:
            return None
        one = _elements(of_atom(atom), "product") if _is_one("product", atom) else _element(of_atom(atom))
        if one is None:
            return None
        total = algebra.add(total, algebra.scale(one, n))
    return total


def _element(p: Poly) -> Poly:
    return of_atom(make_apply(ELEMENT, (p,)))


def _neutral(kind: str) -> Poly:
    if kind == "product":
        return ONE
    return infinity(-1 if kind == "max" else 1)
