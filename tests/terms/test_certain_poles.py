"""At which places nothing is left of sums under conditions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from hlo_verify.index import expr
from hlo_verify.terms import algebra, certain_poles, guards
from hlo_verify.terms.definitions import define
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE, LOG, SQRT, real
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


def test_functions_of_what_is_left() -> None:
    """Whether a function inside has a value, and the one around it none of that, with nothing but numbers left."""
    before = total(1, expr.subtract(i, k), None)
    root = apply(SQRT, (before,))
    assert not root.doubt & INFINITE
    assert apply(INVERSE, (root,)).doubt & INFINITE
    assert apply(LOG, (apply(LOG, (algebra.add(before, number(1)),)),)).doubt & INFINITE
    assert not apply(LOG, (algebra.add(root, number(1)),)).doubt & INFINITE
    assert apply(INVERSE, (algebra.subtract(apply(EXPONENTIAL, (before,)), number(1)),)).doubt & INFINITE
    assert apply(real("digamma"), (before,)).doubt & INFINITE
    assert not apply(INVERSE, (algebra.add(apply(real("tanh"), (before,)), number(1)),)).doubt & INFINITE


@pytest.mark.parametrize("zeros", [(), (0,), (3,), (0, 1, 2, 3, 4, 5)])
def test_constants_that_are_zero_somewhere(zeros: tuple[int, ...]) -> None:
    """Of a row of weights, and of one weight: at these rows alone, and at none that is shifted beyond them."""
    weights = np.full((SIZE, SIZE), 0.5)
    weights[list(zeros)] = 0
    table = tensor("constant", "w", "f32", (SIZE, SIZE), values=weights)
    exponential = apply(EXPONENTIAL, (algebra.read(X, (k,)),))
    row = define("sum", (BOUND,), (algebra.multiply(algebra.read(table, (i, k)), exponential),))
    one = algebra.multiply(algebra.read(table, (i, expr.constant(1))), apply(EXPONENTIAL, (algebra.read(X, (i,)),)))
    for p in (row, one):
        assert certain_poles.is_outside_somewhere(INVERSE, (p,)) == bool(zeros)
        assert certain_poles.is_known_somewhere(p) == bool(zeros)
    half = expr.of_var(expr.var("h", 4, 3))
    upper = algebra.read(table, (expr.shift(half, 3), expr.constant(0)))
    assert certain_poles.is_known_somewhere(algebra.multiply(upper, exponential)) == any(n >= 3 for n in zeros)
