"""Functions of what is equal: one function of a term in the place of another, where what they are of is equal.

    tanh(sum k. (1/2 + 1/2*tanh(x[k]/2)) * w[k])   =   tanh(sum k. w[k]/(1 + exp(-x[k])))

Of exponentials the powers take part: `exp(a)**2` is `exp(b)` where `2*a = b`. A function of what may be no number, or
may be infinite, stands for no other: which of the two is undefined where is not seen in their difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations

from hlo_verify.equality import of_integers
from hlo_verify.equality.opening import arguments
from hlo_verify.equality.sides import apart
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import EXPONENTIAL, Function
from hlo_verify.terms.term import Apply, Monomial, Number, Poly, make_poly

Item = tuple[Apply, Number]

MOST = 4
"""Of so many functions of one name each two are compared by what they are of; of more, none."""


def with_one_for_two(p: Poly, is_zero: Callable[[Poly], bool]) -> Poly | None:
    """A term with one function, or integer, in the place of another that it equals; None where no two are seen to be
    equal."""
    for one, other in _pairs(p):
        if all(is_zero(apart(a, b)) for a, b in _compared(one, other)):
            return algebra.add(*(_instead(mono, c, other, one) for mono, c in p.items))
    return of_integers.with_one_for_two(p, is_zero)


def _pairs(p: Poly) -> Iterator[tuple[Item, Item]]:
    """Powers of a function of other terms, no two of which are factors of one product."""
    found: dict[tuple[Function, Number], dict[Item, None]] = defaultdict(dict)
    for mono, _ in p.items:
        for atom, n in mono:
            if isinstance(atom, Apply):
                found[atom.function, 0 if atom.function == EXPONENTIAL else n][atom, n] = None
    for items in found.values():
        if 1 < len(items) <= MOST:
            for one, other in combinations(items, 2):
                if _are_alike(one[0], other[0]) and not any({one, other} <= set(mono) for mono, _ in p.items):
                    yield one, other


def _are_alike(one: Apply, other: Apply) -> bool:
    """Whether two functions may be equal: of as many terms, at the same places, about the same tensors."""
    if one is other or len(one.args) != len(other.args) or one.free != other.free:
        return False
    if any(arg.doubt for arg in (*one.args, *other.args)):
        return False
    return all(arguments(a) == arguments(b) for a, b in zip(one.args, other.args, strict=True))


def _compared(one: Item, other: Item) -> list[tuple[Poly, Poly]]:
    (a, n), (b, m) = one, other
    if a.function == EXPONENTIAL:
        return [(algebra.scale(a.args[0], n), algebra.scale(b.args[0], m))]
    return [(x, y) for x, y in zip(a.args, b.args, strict=True) if x is not y]


def _instead(mono: Monomial, c: Number, old: Item, new: Item) -> Poly:
    if old not in mono:
        return make_poly(((mono, c),))
    rest = make_poly(((tuple(item for item in mono if item != old), c),))
    return algebra.expanded(rest, make_poly((((new,), 1),)))
