"""Conditions that hold wherever others do.

    any k<4. b[4*d + k]    holds where    b[4*d + j]    does, for a j < 4
    n - 4*d >= 1           holds where    n - 4*d - j >= 1    does

So they need not be asked beside these, nor beside a sum of what is under them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_verify.equality.opening import is_open_sum
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.terms import algebra, signs, truths
from hlo_verify.terms.conditions import numbers_of
from hlo_verify.terms.counts import solved
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.extrema import reduce_boolean
from hlo_verify.terms.functions import INVERSE, MAXIMUM, ZERO_TIMES
from hlo_verify.terms.idle import answer
from hlo_verify.terms.term import (
    ONE,
    Apply,
    Atom,
    Guard,
    Monomial,
    Number,
    Poly,
    Read,
    make_poly,
    value_of,
)

Held = tuple[Atom, ...]
"""Conditions that hold."""


def absorbed(p: Poly, held: Held) -> Poly:
    """A term without the conditions that hold wherever its others do, where some conditions hold."""
    terms: dict[Monomial, Number] = {}
    for mono, c in p.items:
        own = [atom for atom, _ in mono if atom.boolean]
        if any(_is_excluded(atom, (*held, *(a for a in own if a is not atom))) for atom in own):
            continue
        left = [atom for n, atom in enumerate(own) if not is_implied(atom, (*held, *own[:n]))]
        left = [atom for n, atom in enumerate(left) if not is_implied(atom, (*held, *left[n + 1 :]))]
        numbers = numbers_of(mono)
        if any(_is_nothing(atom, (*held, *left)) for atom, _ in numbers):
            continue
        left = [atom for atom in left if not vanishes_without(numbers, atom, held)]
        rest = tuple(item for item in mono if not item[0].boolean or item[0] in left)
        terms[rest] = terms.get(rest, 0) + c
    return algebra.build(terms)


def is_surely(truth: Poly, held: Held) -> bool:
    """Whether a truth value holds wherever some conditions do."""
    return absorbed(truth, held) is ONE


def where_positive(p: Poly) -> Poly | None:
    """Where a sum of positive numbers, each under conditions, is one of anything and under what holds, and not 0;
    None of other terms."""
    if len(p.items) != 1 or p.items[0][1] <= 0:
        return None
    ((product, _),) = p.items
    outside = tuple(item for item in product if item[0].boolean)
    sums = [atom for atom, n in product if is_open_sum(atom) and n == 1]
    others = tuple(item for item in numbers_of(product) if item[0] not in sums)
    if len(sums) != 1 or signs.of_product(others) != signs.POSITIVE:
        return None
    bound, (body,) = unfold(sums[0])
    if sums[0].doubt or len(body.items) != 1 or body.items[0][1] <= 0 or not all(v.size for v in bound):
        return None
    ((mono, _),) = body.items
    conditions = tuple(item for item in mono if item[0].boolean)
    if not conditions or signs.of_product(numbers_of(mono)) != signs.POSITIVE:
        return None
    of_any = reduce_boolean("or", bound, make_poly(((conditions, 1),)))
    return algebra.multiply(make_poly(((outside, 1),)), of_any) if outside else of_any


def conditions_of(truth: Poly) -> Held:
    """The conditions that a truth value is the product of; none where it is another term."""
    return tuple(atom for atom, _ in truth.items[0][0]) if truths.is_product(truth) else ()


def is_sum_under(atom: Atom, asked: Atom) -> bool:
    """Whether an atom is a sum of what is under conditions wherever another condition holds alone."""
    if not is_open_sum(atom):
        return False
    _, (body,) = unfold(atom)
    held = [tuple(a for a, _ in mono if a.boolean) for mono, _ in body.items]
    return bool(held) and all(is_implied(asked, each) for each in held)


def vanishes_without(numbers: Monomial, asked: Atom, held: Held) -> bool:
    """Whether a product of numbers is 0 where a condition does not hold: some are sums of what is under conditions
    wherever it holds alone, and so of nothing, and the others are numbers."""
    under = [atom for atom, _ in numbers if is_sum_under(atom, asked)]
    return bool(under) and all(atom in under or _is_number(atom, held) for atom, _ in numbers)


def _is_nothing(atom: Atom, held: Held) -> bool:
    """Whether an atom is 0 times a number."""
    if not isinstance(atom, Apply) or atom.function != ZERO_TIMES or atom.args[0].atom is None:
        return False
    return _is_number(atom.args[0].atom, held)


def _is_number(atom: Atom, held: Held) -> bool:
    """Whether an atom is a number where some conditions hold: it divides by a sum that is not of nothing there."""
    if not atom.doubt:
        return True
    where = where_positive(atom.args[0]) if isinstance(atom, Apply) and atom.function == INVERSE else None
    return where is not None and is_surely(where, held)


def _is_excluded(asked: Atom, held: Sequence[Atom]) -> bool:
    """Whether a condition does not hold where others do."""
    return isinstance(asked, Guard) and any(answer(asked, each) is False for each in held if isinstance(each, Guard))


def is_implied(asked: Atom, held: Sequence[Atom]) -> bool:
    """Whether a condition holds wherever others do."""
    if asked in held:
        return True
    if isinstance(asked, Guard):
        return any(answer(asked, each) is True for each in held if isinstance(each, Guard))
    if isinstance(asked, Apply) and asked.function == MAXIMUM:
        return any(_is_product_implied(arg, held) for arg in asked.args)
    if not isinstance(asked, Read) or not asked.boolean or asked.tensor.kind != "max" or asked.tensor.seal is not None:
        return False
    bound, (body,) = unfold(asked)
    return is_any_implied(bound, body, held)


def is_any_implied(bound: Sequence[Var], p: Poly, held: Sequence[Atom]) -> bool:
    """Whether a product of conditions holds for some values of bound variables wherever other conditions do."""
    if not bound:
        return _is_product_implied(p, held)
    return any(_is_product_implied(there, held) for there in _at_held(bound, p, held))


def _is_product_implied(p: Poly, held: Sequence[Atom]) -> bool:
    """Whether all of a product of conditions hold wherever others do."""
    return p is ONE or (truths.is_product(p) and all(is_implied(atom, held) for atom, _ in p.items[0][0]))


def _at_held(bound: Sequence[Var], p: Poly, held: Sequence[Atom]) -> Iterator[Poly]:
    """A product of conditions at places at which one of those that hold is one of them."""
    if len(p.items) != 1:
        return
    for atom, _ in p.items[0][0]:
        for other in held:
            place: dict[Var, Index] | None = None
            if isinstance(atom, Read) and isinstance(other, Read) and other.tensor is atom.tensor:
                place = _place(bound, atom.indices, other.indices)
            elif isinstance(atom, Guard) and isinstance(other, Guard):
                place = _place(bound, (atom.form,), (other.form,))
            if place is not None:
                yield algebra.substitute(p, place)


def _place(bound: Sequence[Var], indices: Sequence[Index], there: Sequence[Index]) -> dict[Var, Index] | None:
    """The values of bound variables for which expressions are others."""
    place: dict[Var, Index] = {}
    for mine, other in zip(indices, there, strict=True):
        here = expr.substitute(mine, place) if place else mine
        own = [v for v in bound if v in here.free]
        if not own and here is not other:
            return None
        if own:
            mine_read, other_read = _element(here), _element(other)
            if mine_read is not None and other_read is not None and mine_read.tensor is other_read.tensor:
                inner = _place(own, mine_read.indices, other_read.indices)
                if inner is None:
                    return None
                place |= inner
                continue
            at = solved(here, other, own[0])
            if at is None or at.lo < 0 or at.hi >= own[0].size:
                return None
            place[own[0]] = at
    return place if len(place) == len(bound) else None


def _element(e: Index) -> Read | None:
    """The element whose value an expression is."""
    if len(e.items) != 1 or e.const or e.items[0][1] != 1:
        return None
    part = e.items[0][0]
    if not isinstance(part, Opaque) or part.operator != "value":
        return None
    atom = value_of(part).atom
    return atom if isinstance(atom, Read) else None
