"""A place that a condition wraps is a remainder, and any other step function stays what it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.wrapping import wrapped
from tests.support.expressions import Space, assert_equal, data, evaluated, many

N = 6


def forms(device: Index) -> tuple[Index, ...]:
    return (
        device,
        expr.floor_div(device, 2),
        expr.modulo(expr.scale(device, N - 1), N),
        expr.modulo(expr.shift(device, 2), N),
        expr.scale(device, 2),
        expr.add(device, expr.modulo(expr.shift(device, 1), N)),
    )


@many
@given(draws=st.data())
def test_wrapping_keeps_the_value(draws: st.DataObject) -> None:
    draw, known = draws.draw, data(draws.draw)
    where = Space((expr.var("d", "", N),))
    e = draw(st.sampled_from(forms(expr.of_var(where.variables[0]))))
    p = algebra.of_index(expr.shift(expr.scale(e, draw(st.sampled_from((-2, -1, 1, 3)))), draw(st.integers(-N, N))))
    for _ in range(draw(st.integers(1, 2))):
        bounds = draw(st.tuples(*[st.none() | st.integers(-1, 2 * N)] * 2))
        on = guards.interval(e, *bounds)
        p = algebra.add(p, algebra.scale(on, draw(st.sampled_from((-N, -1, 1, 5, N, 2 * N)))))
    found = wrapped(p)
    assert_equal(evaluated(found, where, known.evaluator), evaluated(p, where, known.evaluator), (p, found))


@pytest.mark.parametrize("start", range(-N + 1, N))
def test_every_rotation_is_a_remainder(start: int) -> None:
    """`where(there < 0, there + n, there)`, and likewise above."""
    there = expr.shift(expr.of_var(expr.var("d", "", N)), start)
    beyond = guards.interval(there, None, -1) if start < 0 else algebra.scale(guards.interval(there, N, None), -1)
    found = wrapped(algebra.add(algebra.of_index(there), algebra.scale(beyond, N)))
    assert found is algebra.of_index(expr.modulo(there, N))


@pytest.mark.parametrize("start", range(1, N + 1))
def test_every_rotation_backwards_is_a_remainder(start: int) -> None:
    """`(start - d) mod n` as it comes out of a remainder that rounds towards zero, with its sign corrected."""
    there = expr.subtract(expr.constant(start), expr.of_var(expr.var("d", "", N)))
    beyond = algebra.add(guards.interval(there, None, -1), algebra.scale(guards.interval(there, N, None), -1))
    found = wrapped(algebra.add(algebra.of_index(there), algebra.scale(beyond, N)))
    assert found is algebra.of_index(expr.modulo(there, N))


@pytest.mark.parametrize(("start", "end", "n"), [(1, 4, N), (1, N, 5), (1, N, 7), (0, 4, 3), (1, 3, 2)])
def test_what_is_no_rotation_stays(start: int, end: int, n: int) -> None:
    """Wrapped too early, by another number, or not often enough."""
    there = expr.shift(expr.of_var(expr.var("d", "", N)), start)
    p = algebra.add(algebra.of_index(there), algebra.scale(guards.interval(there, end, None), -n))
    assert wrapped(p) is p
