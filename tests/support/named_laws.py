"""Instances of the laws of named terms, of which a part may be no number, and of named products."""

from __future__ import annotations

import math

import numpy as np

from hlo_verify.terms import algebra, extrema
from hlo_verify.terms.definitions import named
from hlo_verify.terms.functions import LOG
from hlo_verify.terms.laws import apply
from hlo_verify.terms.losses import zero_times
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, number
from tests.support.expressions import Array
from tests.support.structural_laws import Case, at, bound, instance


@instance("factor of a named term")
def _named_with_what_may_be_no_number(case: Case) -> tuple[Poly, Array]:
    """What is 0 or no number stays where it is, also where the factor outside may be no number itself."""
    (x, xs), (y, ys), (z, zs), v = case.make(4), case.make(4), case.make(6), bound(4)
    (u, us) = case.make(4, dtype="positive")
    case.known.tensors[u] = us = us * case.random.choice((1, -1))
    numbers = algebra.multiply(at(z, case.i), algebra.add(at(x, v), at(y, v)))
    found = reduce_sum(
        [v], algebra.multiply(named(algebra.add(numbers, zero_times(apply(LOG, (at(u, v),))))), at(y, v))
    )
    lost = 0 if all(k > 0 for k in us) else math.nan
    return found, case.each(lambda i, j: zs[i] * sum((xs[k] + ys[k]) * ys[k] for k in range(4)) + lost)


@instance("logarithms of factors")
def _logarithms(case: Case) -> tuple[Poly, Array]:
    """Of numbers of either sign, an even number of which may be negative, or of what is positive."""
    (x, xs), v = case.make(3), bound(3)
    case.known.tensors[x] = xs = np.array([k or 1 for k in xs], object)
    is_positive = case.random.random() < 0.5
    each = algebra.add(number(1), algebra.multiply(at(x, v), at(x, v))) if is_positive else at(x, v)
    found = apply(LOG, (extrema.reduce_product([v], each),))
    value = math.prod(k * k + 1 if is_positive else k for k in xs)
    return found, case.each(lambda i, j: math.log(value) if value > 0 else math.nan)
