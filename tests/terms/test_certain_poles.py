"""At which places nothing is left of sums under conditions."""

from __future__ import annotations

from itertools import product

import pytest

from hlo_verify.index import expr
from hlo_verify.terms import algebra, certain_poles, guards
from hlo_verify.terms.definitions import define
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE, LOG
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, number, tensor

SIZE = 6
BOUND = expr.var("k", 2, SIZE)
i, d, k = map(expr.of_var, (expr.var("i", 0, SIZE), expr.var("d", 1, 3), BOUND))
X = tensor("argument", "x", "f32", (SIZE,))


def total(lo: int | None, form: expr.Index, hi: int | None) -> Poly:
    """The sum of exponentials of an argument's elements under a condition."""
    body = algebra.multiply(guards.interval(form, lo, hi), apply(EXPONENTIAL, (algebra.read(X, (k,)),)))
    return define("sum", (BOUND,), (body,))


@pytest.mark.parametrize("scale", [1, 2, 3, -1])
@pytest.mark.parametrize(("lo", "hi"), [(1, None), (None, -1), (2, 3), (0, None), (-4, 4), (None, 5)])
def test_empty_somewhere_as_by_counting(scale: int, lo: int | None, hi: int | None) -> None:
    """Of rows `i` in parts `d`, whether some of them have no `k` for which the condition holds."""
    half = expr.var("h", 3, 2)
    form = expr.subtract(expr.add(expr.scale(d, 2 * scale), expr.scale(expr.of_var(half), scale)), k)

    def holds(*at: int) -> bool:
        value = 2 * scale * at[0] + scale * at[1] - at[2]
        return (lo is None or lo <= value) and (hi is None or value <= hi)

    is_empty = any(not any(holds(*at, n) for n in range(SIZE)) for at in product(range(3), range(2)))
    assert certain_poles.is_outside_somewhere(INVERSE, (total(lo, form, hi),)) == is_empty


def test_what_is_added() -> None:
    before = total(1, expr.subtract(i, k), None)
    assert apply(INVERSE, (before,)).doubt & INFINITE
    assert apply(LOG, (algebra.subtract(before, number(2)),)).doubt & INFINITE
    assert not apply(INVERSE, (algebra.subtract(before, number(2)),)).doubt & INFINITE  # only for some arguments
    assert not apply(INVERSE, (algebra.add(before, number(2)),)).doubt
    assert not apply(LOG, (total(0, expr.subtract(i, k), None),)).doubt
