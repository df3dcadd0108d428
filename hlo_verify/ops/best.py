"""The best of (value, index) pairs, as in argmax: the greatest or least value, and of equal ones the least index.

Pairs in this order form a commutative, associative, idempotent monoid, so that the best of the bests of parts is
the best of the whole, and the initial pair may take part any number of times. An initial value that is the worst there
is (for the greatest minus infinity, or the least integer) never wins against others, whatever its index. A part that
numbers its elements from elsewhere shifts the index: `c + argmax f. (x(f), i(f))` is `argmax f. (x(f), c + i(f))`.
Elements that are numbered from the last one are looked at from there: `argmax f. (x(f), 9 - f)` for ten of them is
`argmax f. (x(9 - f), f)`.
Where all values are the worst, an initial index 0, below which no index is, wins on both sides.
Elements that are the initial pair are left out: of ten elements on four devices, those that the last device's row is
filled up with (`argmax w<12. (x[w] where w <= 9, else -infinity; w where w <= 9, else 0)` is `argmax w<10. (x[w], w)`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_verify.equality import opening
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.ops.backwards import from_the_end
from hlo_verify.ops.elements import replaced
from hlo_verify.ops.order_keys import key_of
from hlo_verify.ops.regions import combine, neutral, reduce_terms
from hlo_verify.ops.values import integer_range
from hlo_verify.program.element_types import is_float
from hlo_verify.terms import algebra
from hlo_verify.terms.bounds import within
from hlo_verify.terms.definitions import define, unfold
from hlo_verify.terms.extrema import ranges
from hlo_verify.terms.functions import INFINITY
from hlo_verify.terms.merging import merge_in
from hlo_verify.terms.term import ZERO, Ix, Poly, Read, of_atom, reads

KINDS = ("argmax", "argmin")
OPPOSITE = {"max": "min", "min": "max"}

Pair = tuple[Poly, Poly]
Types = tuple[str, str]
"""The element types of the values and of the indices."""


def _reducer(extremum: str, dtype: str) -> str:
    return {"max": "or", "min": "and"}[extremum] if dtype == "i1" else extremum


def best_value(extremum: str, bound: Sequence[Var], value: Poly, first: Poly, dtype: str) -> Poly:
    """The best value over the bound variables and an initial one. Integers must be machine values."""
    reducer = _reducer(extremum, dtype)
    return combine(reducer, reduce_terms(reducer, bound, value), first, dtype)


def index_of_best(extremum: str, bound: Sequence[Var], pair: Pair, first: Pair, dtypes: Types) -> Poly:
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
    left = _without_first(live, pair, first)
    if left is not None:
        return index_of_best(extremum, *left, first, dtypes)
    value, index = pair = _upwards(live, pair)
    if is_float(dtypes[0]) and _is_worst(extremum, first[0], dtypes[0]):
        key = key_of(value, live)
        extremum = extremum if key.ascending else OPPOSITE[extremum]
        pair, first = (key.term, index), (neutral(extremum, dtypes[0]), first[1])
    return define(f"arg{extremum}", live, (*pair, *first), attributes=dtypes, dtype=dtypes[1])


def _upwards(bound: Sequence[Var], pair: Pair) -> Pair:
    """A pair whose index counts upwards by the bound variables, but where as many other places would count down."""
    forms = [(atom.index, k) for mono, k in pair[1].items for atom, _ in mono if isinstance(atom, Ix)]
    falling = {part for form, k in forms for part, c in form.items if c * k < 0}
    down = [v for v in bound if any(part in falling for part, _ in expr.of_var(v).items)]
    if not down:
        return pair
    there = {v: from_the_end(v, expr.of_var(v)) for v in down}
    value, index = (algebra.substitute(p, there) for p in pair)
    return pair if merge_in(bound, (value, index)) is not None else (value, index)


def _without_first(bound: list[Var], pair: Pair, first: Pair) -> tuple[list[Var], Pair] | None:
    """The pairs over a part of one bound variable's range, where all others are the initial pair, which takes part
    anyway; None where there is no such part."""
    plain = (_without_name(pair[0]), _without_name(pair[1]))
    for v in bound:
        parts = [(own, (value, index)) for own, (value, index) in ranges(bound, v, plain)]
        left = [part for part in parts if part[1] != first]
        if len(left) == 1 < len(parts):
            return left[0]
    return None


def _without_name(p: Poly) -> Poly:
    """What a named term is."""
    while isinstance(p.atom, Read) and p.atom.tensor.kind == "term":
        _, (p,) = unfold(p.atom)
    return p


def _part(extremum: str, pair: Pair, first: Pair, dtypes: Types) -> tuple[tuple[Var, ...], Pair] | None:
    """Where a pair is itself the best of some pairs and the initial one: over which variables, and those pairs."""
    value, index = pair
    inner = one_index(index)
    if inner is None or inner.tensor.attributes != dtypes:
        return None
    found = of_best(extremum, inner, value, first)
    if found is None:
        return None
    more, (x, i) = found
    ahead = algebra.subtract(index, of_atom(inner))
    if ahead is ZERO:
        return more, (x, i)
    shifted, (lo, hi) = algebra.add(ahead, i), integer_range(dtypes[1])
    unbeaten = is_float(dtypes[0]) and _is_worst(extremum, first[0], dtypes[0]) and is_finite(x)
    from_zero = is_from_the_worst(extremum, first, dtypes) and within(ahead, 0, hi) and within(i, 0, hi)
    return (more, (x, shifted)) if (unbeaten or from_zero) and within(shifted, lo, hi) else None


def of_best(extremum: str, inner: Read, value: Poly, first: Pair) -> tuple[tuple[Var, ...], Pair] | None:
    """The pairs that one index of a best is of, and over which variables, where the best value is this one.

    The index says by what the pairs are ordered (`order_keys`), of which the values may be a function.
    """
    more, (x, i, *initial) = unfold(inner)
    own, dtype = inner.tensor.kind.removeprefix("arg"), inner.tensor.attributes[0]
    is_first = own == extremum and (initial[0], initial[1]) == first
    if is_first and best_value(extremum, more, x, first[0], dtype) is value:
        return more, (x, i)
    if not is_float(dtype) or not _is_worst(extremum, first[0], dtype):
        return None
    if (initial[0], initial[1]) != (neutral(own, dtype), first[1]):
        return None
    plain = opening.opened(value)
    for each in _values_of_best(more, plain):
        key = key_of(each, more)
        is_own = opening.opened(key.term) is opening.opened(x) and key.ascending == (own == extremum)
        if is_own and opening.opened(best_value(extremum, more, each, first[0], dtype)) is plain:
            return more, (each, i)
    return None


def _values_of_best(bound: Sequence[Var], value: Poly) -> Iterator[Poly]:
    """What a value without names may be the best of, over variables: it has an extremum over as many."""
    for atom in sorted(reads(value), key=lambda a: a.uid):
        if atom.tensor.kind not in OPPOSITE:
            continue
        variables, (body,) = unfold(atom)
        if [v.size for v in variables] == [v.size for v in bound]:
            there = algebra.substitute(body, {v: expr.of_var(w) for v, w in zip(variables, bound, strict=True)})
            yield replaced(value, {atom: there})


def one_index(index: Poly) -> Read | None:
    """The one index of a best pair that an index consists of, once, beside other things."""
    found = [(a, n, c) for mono, c in index.items for a, n in mono if isinstance(a, Read) and a.tensor.kind in KINDS]
    alone = [a for mono, c in index.items for a, n in mono if len(mono) == 1 and n == c == 1]
    return found[0][0] if len(found) == 1 and found[0][0] in alone else None


def is_from_the_worst(extremum: str, first: Pair, dtypes: Types) -> bool:
    """Whether an initial pair is of the worst value there is, and of index 0."""
    return _is_worst(extremum, first[0], dtypes[0]) and first[1] is ZERO


def _is_worst(extremum: str, value: Poly, dtype: str) -> bool:
    return dtype != "i1" and value is neutral(extremum, dtype)


def is_finite(p: Poly) -> bool:
    """Whether no infinity that the program writes takes part in a term; others are excluded by assumption."""
    return INFINITY not in opening.ingredients(p)
