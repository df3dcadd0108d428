"""Terms stand for the numbers that they were built from."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE, real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Tensor, next_uid, number, tensor
from tests.support.expressions import assert_equal, data, evaluated, index, many, poly, renaming, space, truth


@many
@given(draws=st.data())
def test_values(draws: st.DataObject) -> None:
    where, known = space(draws.draw, 2), data(draws.draw)
    p = poly(draws.draw, where, known, 3)
    assert_equal(evaluated(p.it, where, known.evaluator), p.values, p.it)


@many
@given(draws=st.data())
def test_substitution(draws: st.DataObject) -> None:
    inner, outer, known = space(draws.draw, 2, kind="y"), space(draws.draw, 2), data(draws.draw)
    p = poly(draws.draw, outer, known)
    mapping, places = renaming(draws.draw, outer, inner)
    found = algebra.substitute(p.it, mapping)
    assert_equal(evaluated(found, inner, known.evaluator), p.values[places], (p.it, mapping))


@many
@given(draws=st.data())
def test_sums_do_not_depend_on_their_order(draws: st.DataObject) -> None:
    where, known = space(draws.draw, 2), data(draws.draw)
    parts = [poly(draws.draw, where, known, 1) for _ in range(4)]
    found = algebra.add(*(p.it for p in parts))
    again = algebra.ZERO
    for p in draws.draw(st.permutations(parts)):
        again = algebra.add(again, p.it)
    assert algebra.subtract(found, found) is algebra.ZERO
    assert_equal(evaluated(algebra.subtract(found, again), where, known.evaluator), where.spread(0))


@many
@given(draws=st.data())
def test_logical_not(draws: st.DataObject) -> None:
    where, known = space(draws.draw, 2), data(draws.draw)
    a, b = truth(draws.draw, where, known), truth(draws.draw, where, known)
    both = algebra.multiply(a.it, b.it)
    found = algebra.logical_not(both)
    assert_equal(evaluated(found, where, known.evaluator), 1 - a.values * b.values, both)


@many
@given(draws=st.data())
def test_index_of_a_term(draws: st.DataObject) -> None:
    """`as_index` is the machine's value of an integer term, in any type."""
    where, known = space(draws.draw, 2), data(draws.draw)
    e = index(draws.draw, where)
    factor, other = draws.draw(st.integers(-100, 100)), index(draws.draw, where, 1)
    term = algebra.add(algebra.scale(algebra.of_index(e.it), factor), algebra.power(algebra.of_index(other.it), 2))
    values = e.values * factor + other.values * other.values
    lo, hi = draws.draw(st.sampled_from(((-128, 127), (0, 255), (-(2**31), 2**31 - 1))))
    found = algebra.as_index(term, lo, hi)
    assert_equal(evaluated(found, where, known.evaluator), (values - lo) % (hi - lo + 1) + lo, (term, lo, hi))


def test_powers_of_one_atom_have_one_order() -> None:
    x = algebra.read(tensor("argument", "x", "f32", ()), ())
    powers = [x, algebra.power(x, 2), algebra.power(x, 3)]
    assert len({algebra.add(*order) for order in permutations(powers)}) == 1


def test_inverse_powers_of_exponentials_that_fall_apart() -> None:
    """1/exp(more guarded addends than exp turns into a product), at 5: of those that hold there, it is one again."""
    v = expr.var("v", 0, 40)
    at = expr.of_var(v)
    tensors = [tensor("argument", f"t{n}", "f32", (40,)) for n in range(13)]
    guarded = (algebra.multiply(guards.interval(at, n, n + 9), algebra.read(t, [at])) for n, t in enumerate(tensors))
    held = [algebra.read(t, [expr.constant(5)]) for t in tensors[:6]]
    sums = [apply(INVERSE, (apply(EXPONENTIAL, (algebra.add(*each),)),)) for each in (guarded, held)]
    assert algebra.substitute(sums[0], {v: expr.constant(5)}) is sums[1]


def test_high_powers() -> None:
    """Of one factor, of a choice of two, and of a sum, which would have as many monomials."""
    v = expr.var("i", "", 8)
    a, b = (algebra.read(tensor("argument", name, "f32", (8,)), (expr.of_var(v),)) for name in "ab")
    low = guards.interval(expr.of_var(v), 0, 3)
    high = algebra.logical_not(low)
    choice = algebra.add(algebra.multiply(low, a), algebra.multiply(high, b))
    powers = [algebra.power_of(each, 30000) for each in (a, b)]
    assert all(len(each.items) == 1 and each.items[0][0][0][1] == 30000 for each in powers)
    expected = algebra.add(algebra.multiply(low, powers[0]), algebra.multiply(high, powers[1]))
    assert algebra.power_of(choice, 30000) is expected
    total = algebra.add(a, b)
    assert algebra.power_of(total, 30000) is algebra.power_of(algebra.add(b, a), 30000)
    assert algebra.power_of(total, 30000) is not algebra.power_of(algebra.subtract(a, b), 30000)
    assert len(algebra.power_of(total, 5).items) == 6
    held = tensor("argument", "c", "f32", (32,))
    long = algebra.add(*(algebra.read(held, (expr.constant(n),)) for n in range(32)))
    assert algebra.power_of(long, 32) is algebra.power_of(algebra.add(long, number(0)), 32)
    assert len(algebra.power_of(long, 32).items) == 1
    assert len(algebra.power_of(long, 2).items) == 32 * 33 // 2


def test_what_is_no_product_of_exponentials_keeps_its_power() -> None:
    """1/0 is no number, and 1/(a + b) is neither 1 nor 1/(a + c)."""
    a, b, c = (algebra.read(tensor("argument", name, "f32", (1,)), [expr.constant(0)]) for name in "abc")
    powers = [algebra.power_of(p, -1) for p in (number(0), algebra.add(a, b), algebra.add(a, c))]
    assert len({p.uid for p in powers}) == 3
    assert all(p.constant is None for p in powers)


@pytest.mark.parametrize(
    ("values", "dtype", "at", "expected"),
    [
        (np.array([0.5, 0.1], np.float32), "f32", 1, Fraction(float(np.float32(0.1)))),
        (np.array([0.5, 0.0], np.float32), "f32", 1, 0),
        (np.array([1.5, 2.0], ml_dtypes.bfloat16), "bf16", 0, Fraction(3, 2)),
        (np.array([2**62 + 1, 1], np.int64), "i64", 0, 2**62 + 1),
        (np.array([True, False]), "i1", 0, 1),
    ],
)
def test_an_element_of_a_constant_is_a_number(values: Any, dtype: str, at: int, expected: Fraction | int) -> None:
    table = Tensor("constant", "table", dtype, values.shape, next_uid(), 0, values=values)
    v = expr.var("x", 0, 2)
    there = algebra.read(table, (expr.of_var(v),))
    assert there.atom is not None
    assert algebra.substitute(there, {v: expr.constant(at)}) is number(expected)


def test_an_element_of_a_complex_constant_is_none() -> None:
    table = Tensor("constant", "table", "complex<f32>", (2,), next_uid(), 0, values=np.array([1, 1j], np.complex64))
    assert algebra.read(table, (expr.constant(1),)).atom is not None


@pytest.mark.parametrize("n", [-16, -3, -1, 0, 1, 4, 16])
def test_powers_of_a_number_by_places_are_numbers(n: int) -> None:
    v = expr.var("x", 0, 40)
    place = algebra.of_index(expr.shift(expr.of_var(v), -20))
    for base in (Fraction(1, 2), Fraction(3), Fraction(9, 10)):
        there = apply(real("power"), (number(base), place))
        assert algebra.substitute(there, {v: expr.constant(n + 20)}) is number(base**n)
