"""The best of (value, index) pairs, as in argmax: the greatest or least value, and of equal ones the least index.

Pairs in this order form a commutative, associative, idempotent monoid, so that the best of the bests of parts is
the best of the whole, and the initial pair may take part any number of times. An initial value of minus infinity (of
plus infinity for the least) never wins against finite ones, whatever its index. A part that numbers its elements from
elsewhere shifts the index: `c + argmax f. (x(f), i(f))` is `argmax f. (x(f), c + i(f))`.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_verify.equality import opening
from hlo_verify.index.expr import Var
from hlo_verify.ops.regions import combine, neutral, reduce_terms
from hlo_verify.ops.values import integer_range, within
from hlo_verify.program.element_types import is_float
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define, unfold
from hlo_verify.terms.functions import INFINITY, IS_ZERO
from hlo_verify.terms.merging import merge_in
from hlo_verify.terms.term import ZERO, Apply, Atom, Monomial, Number, Poly, Read, make_poly, of_atom

Pair = tuple[Poly, Poly]


def _reducer(extremum: str, dtype: str) -> str:
    return {"max": "or", "min": "and"}[extremum] if dtype == "i1" else extremum


def best_value(extremum: str, bound: Sequence[Var], value: Poly, first: Poly, dtype: str) -> Poly:
    """The best value over the bound variables and an initial one. Integers must be machine values."""
    reducer = _reducer(extremum, dtype)
    return combine(reducer, reduce_terms(reducer, bound, value), first, dtype)


def index_of_best(extremum: str, bound: Sequence[Var], pair: Pair, first: Pair, dtypes: tuple[str, str]) -> Poly:
    """The index of the best of the pairs over the bound variables and an initial pair.

    Integers must be machine values, so that they are compared as they are.
    """
    value, index = pair
    live = [v for v in bound if v in value.free or v in index.free]
    part = _part(extremum, pair, first, dtypes)
    if part is not None:
        more, inner = part
        return index_of_best(extremum, [*live, *more], inner, first, dtypes)
    merged = merge_in(live, pair)
    if merged is not None:
        return index_of_best(extremum, merged[0], (merged[1][0], merged[1][1]), first, dtypes)
    return define(f"arg{extremum}", live, (*pair, *first), attributes=dtypes, dtype=dtypes[1])


def _part(extremum: str, pair: Pair, first: Pair, dtypes: tuple[str, str]) -> tuple[tuple[Var, ...], Pair] | None:
    """Where a pair is itself the best of some pairs and the initial one: over which variables, and those pairs."""
    value, index = pair
    inner = _index(extremum, index)
    if inner is None or inner.tensor.attributes != dtypes:
        return None
    more, (x, i, *initial) = unfold(inner)
    if (initial[0], initial[1]) != first or best_value(extremum, more, x, first[0], dtypes[0]) is not value:
        return None
    ahead = algebra.subtract(index, of_atom(inner))
    if ahead is ZERO:
        return more, (x, i)
    shifted = algebra.add(ahead, i)
    unbeaten = _is_worst(extremum, first[0]) and is_finite(x)
    return (more, (x, shifted)) if unbeaten and within(shifted, *integer_range(dtypes[1])) else None


def _index(extremum: str, index: Poly) -> Read | None:
    """The one index of a best pair that an index consists of, once, beside other things."""
    found = [
        (a, n, c)
        for mono, c in index.items
        for a, n in mono
        if isinstance(a, Read) and a.tensor.kind == f"arg{extremum}"
    ]
    alone = [a for mono, c in index.items for a, n in mono if len(mono) == 1 and n == c == 1]
    return found[0][0] if len(found) == 1 and found[0][0] in alone else None


def _is_worst(extremum: str, value: Poly) -> bool:
    return value is neutral(extremum, "f32")


def is_finite(p: Poly) -> bool:
    """Whether no infinity that the program writes takes part in a term; others are excluded by assumption."""
    return INFINITY not in opening.ingredients(p)


def least_index_of_best(bound: Sequence[Var], term: Poly) -> Poly | None:
    """`min v. (i(v) where x(v) = max w. x(w), else c)`, for a number c that no i is above, is the index of the best x.

    So does a program find the best of parts: their best values' maximum, and the least index of those that attain it.
    None for any other term.
    """
    term = opening.opened(term)
    tests = {a for mono, _ in term.items for a, _ in mono if isinstance(a, Apply) and a.function == IS_ZERO}
    test = next(iter(tests), None)
    if test is None or len(tests) > 1:
        return None
    fails = algebra.build({mono: c for mono, c in term.items if not _has(mono, test)})
    holds = algebra.add(fails, *(_without(mono, c, test) for mono, c in term.items if _has(mono, test)))
    inner = _index("max", holds) or _index("min", holds)
    otherwise = fails.constant
    if inner is None or not isinstance(otherwise, int):
        return None
    dtypes = inner.tensor.attributes
    if not is_float(dtypes[0]) or not within(holds, integer_range(dtypes[1])[0], otherwise):
        return None
    extremum = inner.tensor.kind.removeprefix("arg")
    for sign in (1, -1):
        difference = algebra.scale(test.args[0], sign)
        own = algebra.build({mono: c for mono, c in difference.items if any(a.free & set(bound) for a, _ in mono)})
        rest = algebra.difference(own, difference)
        if is_finite(own) and reduce_terms(extremum, bound, own) is rest:
            return index_of_best(extremum, bound, (own, holds), (neutral(extremum, dtypes[0]), ZERO), dtypes)
    return None


def _has(mono: Monomial, atom: Atom) -> bool:
    return any(a is atom for a, _ in mono)


def _without(mono: Monomial, c: Number, atom: Atom) -> Poly:
    return make_poly(((tuple(item for item in mono if item[0] is not atom), c),))
