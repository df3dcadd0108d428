"""Functions of what is equal: one function of a term in the place of another, where what they are of is equal.

    tanh(sum k. (1/2 + 1/2*tanh(x[k]/2)) * w[k])   =   tanh(sum k. w[k]/(1 + exp(-x[k])))

Of exponentials the powers take part, and all that a product has: `exp(a)**2 * exp(c)` is `exp(b)` where `2*a + c = b`.
A function of what may be no number, or
may be infinite, stands for no other: which of the two is undefined where is not seen in their difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

from hlo_verify.equality import of_integers
from hlo_verify.equality.opening import arguments
from hlo_verify.equality.sides import apart
from hlo_verify.index.expr import Var
from hlo_verify.limits import allows
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import EXPONENTIAL, Function
from hlo_verify.terms.term import Apply, Monomial, Number, Poly, Tensor, make_poly

Item = tuple[Apply, Number]
Factors = tuple[Item, ...]
"""Powers of functions that are factors of one product: of exponentials several, else one."""

MOST = 4
"""Of so many functions of one name each two are compared by what they are of; of more, none."""


def with_one_for_two(p: Poly, is_zero: Callable[[Poly], bool]) -> Poly | None:
    """A term with one function, or integer, in the place of another that it equals; None where no two are seen to be
    equal."""
    for one, other in _pairs(p):
        if all(is_zero(apart(a, b)) for a, b in _compared(one, other)):
            return algebra.add(*(_instead(mono, c, other, one) for mono, c in p.items))
    return of_integers.with_one_for_two(p, is_zero)


def _pairs(p: Poly) -> Iterator[tuple[Factors, Factors]]:
    """Powers of a function of other terms, no two of which are factors of one product."""
    found: dict[tuple[Function, Number], dict[Factors, None]] = defaultdict(dict)
    products: dict[Factors, None] = {}
    for mono, _ in p.items:
        own = tuple((atom, n) for atom, n in mono if isinstance(atom, Apply))
        for atom, n in own:
            found[atom.function, 0 if atom.function == EXPONENTIAL else n][(atom, n),] = None
        products[tuple(item for item in own if item[0].function == EXPONENTIAL)] = None
    products.pop((), None)
    most = max(map(len, products), default=0)
    if most > 1 and allows("expanded_terms", most):
        found[EXPONENTIAL, 1] = products
    for several in found.values():
        if 1 < len(several) <= MOST:
            for one, other in map(_without_common, combinations(several, 2)):
                if _are_alike(one, other) and not any({*one, *other} <= set(mono) for mono, _ in p.items):
                    yield one, other


def _without_common(pair: tuple[Factors, Factors]) -> tuple[Factors, Factors]:
    one, other = pair
    return tuple(item for item in one if item not in other), tuple(item for item in other if item not in one)


def _are_alike(one: Factors, other: Factors) -> bool:
    """Whether two functions may be equal: of as many terms, at the same places, about the same tensors."""
    if not one or not other:
        return False
    (mine, theirs) = ([arg for atom, _ in factors for arg in atom.args] for factors in (one, other))
    if any(arg.doubt for arg in (*mine, *theirs)) or _free(one) != _free(other):
        return False
    if len(one) == len(other) == 1:
        return len(mine) == len(theirs) and all(arguments(a) == arguments(b) for a, b in zip(mine, theirs, strict=True))
    return _about(mine) == _about(theirs)


def _free(factors: Factors) -> frozenset[Var]:
    return frozenset[Var]().union(*(atom.free for atom, _ in factors))


def _about(terms: Iterable[Poly]) -> frozenset[Tensor]:
    return frozenset[Tensor]().union(*map(arguments, terms))


def _compared(one: Factors, other: Factors) -> list[tuple[Poly, Poly]]:
    if one[0][0].function == EXPONENTIAL:
        return [(_exponent(one), _exponent(other))]
    return [(x, y) for x, y in zip(one[0][0].args, other[0][0].args, strict=True) if x is not y]


def _exponent(factors: Factors) -> Poly:
    return algebra.add(*(algebra.scale(atom.args[0], n) for atom, n in factors))


def _instead(mono: Monomial, c: Number, old: Factors, new: Factors) -> Poly:
    if not set(old) <= set(mono):
        return make_poly(((mono, c),))
    rest = make_poly(((tuple(item for item in mono if item not in old), c),))
    return algebra.expanded(rest, make_poly(((tuple(new), 1),)))
