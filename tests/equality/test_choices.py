"""What masks leave is the same number in its other form, for random conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.equality.choices import by_runs, exponential_by_cases, narrowed
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import EXPONENTIAL
from hlo_verify.terms.term import Monomial, Poly, make_apply, make_poly, of_atom, tensor
from tests.support.evaluate import Evaluator
from tests.support.expressions import Array, many

KEY, ROW = expr.var("key", "", 12), expr.var("row", "", 5)
DATA = tensor("argument", "x", "f32", (KEY.size,))
EVALUATOR = Evaluator({DATA: np.arange(1, KEY.size + 1)})


def total(bound: list[Var], body: Poly) -> Array:
    """The sum of a term over some variables, for every row."""
    shape = (ROW.size, *(v.size for v in bound))
    grid = np.ogrid[tuple(slice(n) for n in shape)]
    values = np.broadcast_to(EVALUATOR.poly(body, dict(zip([ROW, *bound], grid, strict=True))), shape)
    return values.reshape(ROW.size, -1).sum(1)


def masked(form: Index, lo: int | None, hi: int | None) -> Monomial | None:
    """An element at each key under a condition; None where that is none."""
    product = algebra.expanded(guards.interval(form, lo, hi), algebra.read(DATA, [expr.of_var(KEY)]))
    return product.items[0][0] if product.items else None


bounds = st.one_of(st.none(), st.integers(-14, 14))


@many
@given(st.sampled_from((1, -1)), st.integers(-3, 3), st.integers(-6, 6), bounds, bounds)
def test_conditions_on_a_bound_variable_and_a_free_one(
    sign: int, times: int, const: int, lo: int | None, hi: int | None
) -> None:
    at = expr.shift(expr.add(expr.scale(expr.of_var(KEY), sign), expr.scale(expr.of_var(ROW), times)), const)
    mono = masked(at, lo, hi)
    parts = None if mono is None else narrowed(mono, [KEY])
    if mono is None or parts is None:
        return
    whole = total([KEY], make_poly(((mono, 1),)))
    found = sum(total([smaller[KEY]], body) for smaller, body in parts)
    assert np.all(found == whole)


def test_a_triangle_is_narrowed() -> None:
    mono = masked(expr.subtract(expr.of_var(KEY), expr.of_var(ROW)), None, 0)
    assert mono is not None
    parts = narrowed(mono, [KEY])
    assert parts is not None
    assert [smaller[KEY].size for smaller, _ in parts] == [1, 4]
    assert narrowed(mono, [ROW, KEY]) is None, "what is summed over both stays a triangle"


@many
@given(st.lists(st.integers(0, 3), min_size=KEY.size, max_size=KEY.size), st.integers(0, 3), st.integers(0, 3))
def test_conditions_on_a_table(table: list[int], lo: int, hi: int) -> None:
    mono = masked(expr.lookup(tuple(table), expr.of_var(KEY)), lo, hi)
    found = None if mono is None else by_runs(mono, [KEY])
    if mono is None or found is None:
        return
    assert np.all(total([KEY], found) == total([KEY], make_poly(((mono, 1),))))
    assert by_runs(mono, []) is None, "a free variable is none to sum over"


def test_a_table_has_a_range_for_each_run() -> None:
    mono = masked(expr.lookup((1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1), expr.of_var(KEY)), 1, None)
    assert mono is not None
    found = by_runs(mono, [KEY])
    assert found is not None
    assert len(found.items) == 3


@pytest.mark.parametrize("power", [1, 2, -1])
def test_exponentials_of_what_is_selected(power: int) -> None:
    element = algebra.read(DATA, [expr.of_var(KEY)])
    conditions = [
        guards.interval(expr.of_var(ROW), 2, None),
        guards.interval(expr.of_var(ROW), 1, 2),
        algebra.of_index(expr.lookup((1, 0, 0, 1, 1), expr.of_var(ROW))),
        algebra.expanded(
            guards.interval(expr.of_var(ROW), 2, None),
            guards.interval(expr.add(expr.of_var(ROW), expr.of_var(KEY)), None, 8),
        ),
    ]
    for condition in conditions:
        ((mono, _),) = algebra.expanded(condition, element).items
        atom = make_apply(EXPONENTIAL, (make_poly(((mono, 1),)),))
        found = exponential_by_cases(atom, power)
        assert found is not None
        wanted = total([KEY], algebra.power_of(of_atom(atom), power))
        assert np.allclose(total([KEY], found).astype(float), wanted.astype(float))
    plain = make_apply(EXPONENTIAL, (element,))
    assert exponential_by_cases(plain, power) is None
