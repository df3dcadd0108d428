"""Sums over the same elements, under conditions of which each element fulfils one: together they are positive.

    exp(-1e30) * (sum k. [k > i])  +  sum k. [k <= i] * exp(s(k))   >   0

This is what a softmax divides by whose scores are masked with a number. Neither sum is seen to be positive by itself.
So it is where an element fulfils none of them, if of the first and the last of all one does, whatever the place is:

    sum k<8. [k < i] * exp(s(k))  +  sum k<8. [k > i] * exp(s(k))   >   0
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.terms import signs
from hlo_verify.terms.addition import build
from hlo_verify.terms.finite import at_ends_and_conditions
from hlo_verify.terms.term import ZERO, Monomial, Number, Poly, Read, make_poly
from hlo_verify.terms.used import used

Addend = tuple[Monomial, Number, Read]
"""A product one factor of which is a sum, with its coefficient."""


def is_positive_together(p: Poly) -> bool:
    """Whether among the addends of a term, none of which is negative, are sums that together are one of positive
    elements."""
    if any(c < 0 or signs.of_product(mono) & (signs.NEGATIVE | signs.BEYOND) for mono, c in p.items):
        return False
    groups: dict[tuple[int, ...], list[Addend]] = defaultdict(list)
    for mono, c in p.items:
        sums = [a for a, n in mono if n == 1 and isinstance(a, Read) and a.tensor.kind == "sum" and a.tensor.bound]
        if len(sums) == 1:
            groups[tuple(v.size for v in sums[0].tensor.bound)].append((mono, c, sums[0]))
    found = any(len(group) > 1 and _is_positive(*_element(group)) for group in groups.values())
    if found:
        used("sums that are positive together")
    return found


def _is_positive(bound: Sequence[Var], element: Poly) -> bool:
    """Whether a sum of elements is positive: all are, or one of the first and the last is, and none is negative."""
    found = signs.of(element)
    return found == signs.POSITIVE or (found == signs.ZERO | signs.POSITIVE and one_is_positive(bound, element))


def one_is_positive(bound: Sequence[Var], element: Poly) -> bool:
    """Whether of the elements at the ends and at conditions, none of which is negative, one is positive wherever in
    their ranges places are: those so far are positive together then."""
    from hlo_verify.terms.products import add

    so_far = ZERO
    for p in at_ends_and_conditions(bound, element):
        so_far = add(so_far, p)
        if signs.of(p) == signs.POSITIVE or signs.of(so_far) == signs.POSITIVE:
            return True
    return False


def _element(group: Sequence[Addend]) -> tuple[tuple[Var, ...], Poly]:
    """The variables that the sums bind, and what they add up for one value of these, each with the factors that it
    has."""
    from hlo_verify.terms.definitions import unfold  # made of terms, whose signs are asked for
    from hlo_verify.terms.products import expanded
    from hlo_verify.terms.substitution import substitute

    bound: tuple[Var, ...] = ()
    total: dict[Monomial, Number] = {}
    for mono, c, atom in group:
        own, (body,) = unfold(atom)
        bound = bound or tuple(own)
        there = substitute(body, {v: expr.of_var(w) for v, w in zip(own, bound, strict=True)})
        factors = make_poly(((tuple(item for item in mono if item[0] is not atom), c),))
        for product, k in expanded(factors, there).items:
            total[product] = total.get(product, 0) + k
    return bound, build(total)
