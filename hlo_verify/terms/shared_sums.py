"""Sums over the same elements, under conditions of which each element fulfils one: together they are positive.

    exp(-1e30) * (sum k. [k > i])  +  sum k. [k <= i] * exp(s(k))   >   0

This is what a softmax divides by whose scores are masked with a number. Neither sum is seen to be positive by itself.
So it is where an element fulfils none of them, if of the first and the last of all one does, whatever the place is:

    sum k<8. [k < i] * exp(s(k))  +  sum k<8. [k > i] * exp(s(k))   >   0

And a sum has the signs that its elements have, where it is written as two of which one is subtracted:

    sum k. x(k)  -  sum k. [k > i] * x(k)   >=   0        for x >= 0
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.limits import allows
from hlo_verify.terms import signs
from hlo_verify.terms.addition import build
from hlo_verify.terms.finite import at_ends_and_conditions
from hlo_verify.terms.term import ZERO, Monomial, Number, Poly, Read, Tensor, make_poly
from hlo_verify.terms.used import used

Addend = tuple[Monomial, Number, Read]
"""A product one factor of which is a sum, with its coefficient."""


def is_positive_together(p: Poly) -> bool:
    """Whether among the addends of a term, none of which is negative, are sums that together are one of positive
    elements."""
    if any(c < 0 or signs.of_product(mono) & (signs.NEGATIVE | signs.BEYOND) for mono, c in p.items):
        return False
    groups = (group for group in _groups(p)[0] if len(group) > 1 and _are_over_one(group))
    found = any(_is_positive(*_element(group)) for group in groups)
    if found:
        used("sums that are positive together")
    return found


def signs_together(p: Poly) -> int:
    """The signs that a term may have by what its sums over equal ranges are, element by element."""
    groups, total = _groups(p)
    if not any(len({c > 0 for _, c, _ in group}) > 1 for group in groups):
        return signs.REAL
    if not allows("expanded_terms", max(map(len, groups))) or not all(map(_are_over_one, groups)):
        return signs.REAL
    for group in groups:
        each = _with_common(_element(group)[1])
        while (both := each | signs.ADDED[each][each]) != each:
            each = both
        total = signs.ADDED[total][each]
    if not total & signs.NEGATIVE or not total & signs.POSITIVE:
        used("sums that have a sign together")
    return total


def _with_common(p: Poly) -> int:
    """The signs that a term may have: those of the factors that all its products have, and of the rest, as of
    `x - x*y` for a y of 0 or 1."""
    common = tuple(item for item in p.items[0][0] if all(item in mono for mono, _ in p.items)) if p.items else ()
    rest = build({tuple(item for item in mono if item not in common): c for mono, c in p.items})
    return signs.MULTIPLIED[signs.of_product(common)][signs.of(rest)] if common else signs.of(p)


def _groups(p: Poly) -> tuple[list[list[Addend]], int]:
    """The addends of a term that have a sum as a factor, by the ranges that it goes through; and the signs of the
    others."""
    groups: dict[tuple[int, ...], list[Addend]] = defaultdict(list)
    others = signs.ZERO
    for mono, c in p.items:
        sums = [a for a, n in mono if n == 1 and isinstance(a, Read) and a.tensor.kind == "sum" and a.tensor.bound]
        if len(sums) == 1:
            groups[_lengths(sums[0].tensor)].append((mono, c, sums[0]))
        else:
            own = signs.of_product(mono)
            others = signs.ADDED[others][signs.MULTIPLIED[own][signs.POSITIVE if c > 0 else signs.NEGATIVE]]
    return list(groups.values()), others


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
    from hlo_verify.terms.products import expanded  # made of terms, whose signs are asked for
    from hlo_verify.terms.substitution import substitute

    bound: tuple[Var, ...] = ()
    total: dict[Monomial, Number] = {}
    for mono, c, atom in group:
        own, body = _opened(atom)
        bound = bound or own
        there = substitute(body, {v: expr.of_var(w) for v, w in zip(own, bound, strict=True)})
        factors = make_poly(((tuple(item for item in mono if item[0] is not atom), c),))
        for product, k in expanded(factors, there).items:
            total[product] = total.get(product, 0) + k
    return bound, build(total)


def _are_over_one(group: Sequence[Addend]) -> bool:
    """Whether sums go through the same ranges where they are read, too."""
    return len({tuple(v.size for v in _opened(atom)[0]) for _, _, atom in group}) == 1


def _lengths(source: Tensor) -> tuple[int, ...]:
    """The ranges that a sum goes through, as its definition has them: opening it at a place takes far longer."""
    sizes, factors = [v.size for v in source.bound], _factors(source)
    while (inner := next((a for a in factors if a.tensor.kind == "sum"), None)) is not None:
        sizes += [v.size for v in inner.tensor.bound]
        is_product = len(inner.tensor.bodies[0].items) == 1
        factors = [*(a for a in factors if a is not inner), *_factors(inner.tensor)] if is_product else []
    return tuple(sorted(sizes, reverse=True))


def _factors(source: Tensor) -> list[Read]:
    """What is read by the one product that a sum adds up; nothing where it adds up several."""
    items = source.bodies[0].items
    return [a for mono, _ in items for a, n in mono if n == 1 and isinstance(a, Read)] if len(items) == 1 else []


def _opened(atom: Read) -> tuple[tuple[Var, ...], Poly]:
    """The variables that a sum goes through, the longest ranges first, and what it adds up: sums that are factors of
    that are opened too, as `sum v. y(v) * sum w. x(v, w)`."""
    known = signs.opened()
    if atom not in known:
        known[atom] = _opened_anew(atom)
    return known[atom]


def _opened_anew(atom: Read) -> tuple[tuple[Var, ...], Poly]:
    from hlo_verify.terms.definitions import unfold  # made of terms, whose signs are asked for
    from hlo_verify.terms.products import expanded

    bound, (body,) = unfold(atom)
    while len(body.items) == 1:
        ((mono, c),) = body.items
        inner = next((a for a, n in mono if n == 1 and isinstance(a, Read) and a.tensor.kind == "sum"), None)
        if inner is None:
            break
        more, (each,) = unfold(inner)
        bound = (*bound, *more)
        body = expanded(make_poly(((tuple(item for item in mono if item[0] is not inner), c),)), each)
    return tuple(sorted(bound, key=lambda v: -v.size)), body
