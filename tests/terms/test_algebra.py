"""Terms stand for the numbers that they were built from."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.terms import algebra
from hlo_verify.terms.term import tensor
from tests.support.expressions import assert_equal, data, evaluated, index, many, poly, space, truth


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
    mapping, places = {}, []
    for v in outer.variables:
        new = index(draws.draw, inner, 1)
        mapping[v] = expr.modulo(new.it, v.size)
        places.append((new.values % v.size).astype(int))
    found = algebra.substitute(p.it, mapping)
    assert_equal(evaluated(found, inner, known.evaluator), p.values[tuple(places)], (p.it, mapping))


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
