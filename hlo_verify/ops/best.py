"""The best of (value, index) pairs, as in argmax: the greatest or least value, and of equal ones the least index.

Pairs in this order form a commutative, associative, idempotent monoid, so that the best of the bests of parts is
the best of the whole, and the initial pair may take part any number of times.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_verify.index.expr import Var
from hlo_verify.ops.regions import combine, reduce_terms
from hlo_verify.terms.definitions import define, unfold
from hlo_verify.terms.sums import merge_in
from hlo_verify.terms.term import Poly, Read

Pair = tuple[Poly, Poly]


def _reducer(kind: str, dtype: str) -> str:
    return {"max": "or", "min": "and"}[kind] if dtype == "i1" else kind


def best_value(kind: str, bound: Sequence[Var], value: Poly, first: Poly, dtype: str) -> Poly:
    """The best value over the bound variables and an initial one. Integers must be machine values."""
    reducer = _reducer(kind, dtype)
    return combine(reducer, reduce_terms(reducer, bound, value), first, dtype)


def index_of_best(kind: str, bound: Sequence[Var], pair: Pair, first: Pair, dtypes: tuple[str, str]) -> Poly:
    """The index of the best of the pairs over the bound variables and an initial pair.

    Integers must be machine values, so that they are compared as they are.
    """
    value, index = pair
    live = [v for v in bound if v in value.free or v in index.free]
    inner = index.atom
    if isinstance(inner, Read) and inner.tensor.kind == f"arg{kind}" and inner.tensor.attributes == dtypes:
        more, (x, i, x0, i0) = unfold(inner)
        if (x0, i0) == first and best_value(kind, more, x, x0, dtypes[0]) is value:
            return index_of_best(kind, [*live, *more], (x, i), first, dtypes)
    merged = merge_in(live, pair)
    if merged is not None:
        return index_of_best(kind, merged[0], (merged[1][0], merged[1][1]), first, dtypes)
    return define(f"arg{kind}", live, (*pair, *first), attributes=dtypes, dtype=dtypes[1])
