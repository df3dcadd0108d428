"""Instances of the law of extrema of increasing functions: a factor of either sign, as a user states it."""

from __future__ import annotations

import math

import numpy as np

from hlo_verify.program.allowed_values import Values
from hlo_verify.terms import algebra, extrema
from hlo_verify.terms.functions import EXPONENTIAL
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly
from tests.support.expressions import Array
from tests.support.structural_laws import Case, at, bound, instance


@instance("extremum of an increasing function")
def _increasing(case: Case) -> tuple[Poly, Array]:
    (x, xs), (y, ys), (a, _), v = case.make(4), case.make(3), case.make(), bound(4)
    sign = case.random.choice((-1, 1))
    a.assumed = Values(None, -1) if sign < 0 else Values(1, None)
    case.known.tensors[a] = np.asarray(factor := sign * case.random.randint(1, 3), dtype=object)
    power = apply(EXPONENTIAL, (at(x, v),)) if case.random.random() < 0.5 else at(x, v)
    each = [math.exp(value) if power is not at(x, v) else value for value in xs]
    p = algebra.add(algebra.multiply(at(a), power), at(y, case.j))
    least = case.random.random() < 0.5
    found = extrema.reduce_extremum("min" if least else "max", [v], p)
    return found, case.each(lambda i, j: (min if least else max)(factor * value for value in each) + ys[j])
