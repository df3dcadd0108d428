"""Instances of the law of the greatest size of elements, in two spellings, of a maximum and of a minimum, where
something else is as great."""

from __future__ import annotations

from hlo_verify.terms import algebra, extrema
from hlo_verify.terms.functions import MAXIMUM, MINIMUM
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly
from tests.support.expressions import Array
from tests.support.structural_laws import Case, at, bound, instance


@instance("greatest of elements and of their opposites")
def _greatest_size(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), v, w = case.make(4), case.make(3), bound(4), bound(4)
    most = case.random.random() < 0.5
    function, reducer, other = (MAXIMUM, "max", "min") if most else (MINIMUM, "min", "max")
    best = extrema.reduce_extremum(reducer, [v], at(x, v))
    if case.random.random() < 0.5:
        opposite = algebra.scale(extrema.reduce_extremum(other, [w], at(x, w)), -1)
    else:
        opposite = extrema.reduce_extremum(reducer, [w], algebra.scale(at(x, w), -1))
    found = apply(function, (best, at(y, case.j), opposite))
    one = max if most else min
    return found, case.each(lambda i, j: one(*xs, *(-xs), ys[j]))
