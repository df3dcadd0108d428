"""Intervals that integer terms surely lie in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.terms import algebra
from hlo_verify.terms.bounds import bounds, within
from hlo_verify.terms.definitions import define
from hlo_verify.terms.term import number, tensor
from tests.support.expressions import data, many, poly, space


@many
@given(draws=st.data())
def test_bounds_hold(draws: st.DataObject) -> None:
    where, known = space(draws.draw, 2), data(draws.draw)
    p = poly(draws.draw, where, known, 2)
    found = bounds(p.it, True)
    if found is not None:
        assert found[0] <= p.values.min()
        assert p.values.max() <= found[1]


def test_bounds_of_a_choice_are_those_of_what_is_chosen() -> None:
    greatest = 2**31 - 1
    index = algebra.of_index(expr.of_var(expr.var("x", "whole", 300)))
    test = algebra.read(tensor("argument", "test", "i1", ()), ())
    for other, expected in ((greatest, (0, greatest)), (-5, (-5, 299)), (7, (0, 299))):
        assert bounds(algebra.select(test, index, number(other))) == expected
    wrapped = algebra.add(index, number(greatest))
    assert bounds(algebra.select(test, wrapped, number(0))) == (0, greatest + 299)


def test_bounds_of_a_sum_are_those_of_its_parts_so_many_times() -> None:
    v, x = expr.var("v", 0, 10), tensor("argument", "x", "i8", (10,))
    part = algebra.read(x, [expr.of_var(v)])
    assert bounds(define("sum", (v,), (part,), dtype="i32"), True) == (-1280, 1270)
    assert bounds(define("sum", (v,), (algebra.multiply(part, part),), dtype="i32"), True) is None
    wide = define("sum", (v,), (algebra.read(tensor("argument", "y", "i32", (10,)), [expr.of_var(v)]),), dtype="i32")
    assert not within(wide, -(2**31), 2**31 - 1, sums=True)
