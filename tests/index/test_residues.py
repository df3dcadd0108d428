"""Residues of index expressions hold of all their values, and an interval is called empty only where it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.index.residues import congruent, is_never_between
from tests.support.expressions import index, many, space


@many
@given(data=st.data())
def test_all_values_are_congruent(data: st.DataObject) -> None:
    where = space(data.draw)
    e = index(data.draw, where, 3)
    step, first = congruent(e.it)
    assert all((x - first) % step == 0 if step else x == first for x in e.values.flat), e.it


@many
@given(data=st.data())
def test_no_value_lies_where_none_is_said_to(data: st.DataObject) -> None:
    where = space(data.draw)
    e, lo, length = index(data.draw, where, 3), data.draw(st.integers(-12, 24)), data.draw(st.integers(0, 6))
    if is_never_between(e.it, lo, lo + length):
        assert not any(lo <= x <= lo + length for x in e.values.flat), e.it


def test_places_of_a_ring_that_are_apart() -> None:
    d = expr.of_var(expr.var("d", "", 8))
    back = expr.scale(expr.modulo(expr.shift(d, 3), 8), 4)
    assert congruent(expr.subtract(back, expr.scale(d, 4))) == (32, 12)
    assert is_never_between(expr.subtract(back, expr.scale(d, 4)), -11, 11)
    assert not is_never_between(expr.subtract(back, expr.scale(d, 4)), 0, 12)
