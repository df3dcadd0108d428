"""Sums of elements in order, which are the sums of these elements.

sum k<8. sorted(x)[k]      =  sum v<8. x[v]
sum k<6. sorted(x)[k + 1]  =  sum v<8. x[v] - min v. x[v] - max v. x[v]
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.ordered import VALUES, is_ordered
from hlo_verify.terms.term import Atom, Number, Poly
from hlo_verify.terms.used import used


def summed_in_order(bound: Sequence[Var], items: Sequence[tuple[Atom, Number]]) -> Poly | None:
    """The sum of values in order over all their places, or over all but those at the ends; None of other products. An
    element that is no number is in the sum wherever it comes in order, but not where ends are left out."""
    from hlo_verify.terms.extrema import reduce_extremum  # made of sums
    from hlo_verify.terms.sums import reduce_sum

    ((atom, n), *beside) = items
    if beside or n != 1 or not is_ordered(atom, VALUES):
        return None
    *others, place = atom.indices
    v = next((v for v in bound if not expr.subtract(place, expr.of_var(v)).items), None)
    if v is None or any(v in e.free for e in others):
        return None
    first, last = place.const, place.const + v.size - 1
    end = atom.tensor.bound[0].size - 1
    if not (0 <= first <= 1 and end - 1 <= last <= end) or (atom.doubt and (first, last) != (0, end)):
        return None
    used("sum of values in order")
    rest = [w for w in bound if w is not v]
    own, (body,) = unfold(atom)
    whole = reduce_sum([*rest, *own], body)
    left_out = [reducer for reducer, is_out in (("min", first > 0), ("max", last < end)) if is_out]
    parts = (reduce_sum(rest, reduce_extremum(reducer, own, body)) for reducer in left_out)
    return algebra.subtract(whole, algebra.add(*parts)) if left_out else whole
