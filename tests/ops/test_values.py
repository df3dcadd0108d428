"""Heavy terms get names: what differs in scale alone has one name, and the values stay what they were."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.limits import limit_of
from hlo_verify.ops.values import factor, lighten
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Read, number, tensor
from tests.support.expressions import assert_equal, data, evaluated, many, poly, space


@many
@given(draws=st.data())
def test_a_multiple_of_a_real_term_is_the_multiple_of_its_name(draws: st.DataObject) -> None:
    where, known = space(draws.draw, 2), data(draws.draw)
    p = poly(draws.draw, where, known, 2)
    c = Fraction(draws.draw(st.integers(1, 12)), draws.draw(st.integers(1, 12)))
    name = factor(p.it, "f32")
    assert_equal(evaluated(name, where, known.evaluator), p.values, p.it)
    if name is not p.it:
        assert factor(algebra.scale(p.it, c), "f32") is algebra.scale(name, c)


@many
@given(draws=st.data())
def test_what_is_left_of_a_term_has_whole_coefficients_without_a_common_divisor(draws: st.DataObject) -> None:
    where, known = space(draws.draw, 2), data(draws.draw)
    p = poly(draws.draw, where, known, 2)
    if p.it.items:
        content = Fraction(algebra.content(p.it))
        rest = algebra.scale(p.it, 1 / content)
        assert content > 0
        assert algebra.content(rest) == 1
        assert_equal(evaluated(algebra.scale(rest, content), where, known.evaluator), p.values, p.it)


def test_an_integer_is_named_whole() -> None:
    """Its machine value wraps, and half of what wrapped is not what half of it is."""
    square = algebra.power(algebra.of_index(expr.of_var(expr.var("x", "whole", 300))), 2)
    term = algebra.scale(algebra.add(square, number(1)), 2)
    name = factor(term, "i32").atom
    assert isinstance(name, Read)
    assert name.tensor.bodies[0].constant is None
    assert algebra.content(name.tensor.bodies[0]) == 2


def test_a_long_chain_of_functions_does_not_grow() -> None:
    """Or what follows it down would not end before Python does."""
    i, j = expr.var("i", 0, 8), expr.var("j", 0, 8)
    x = tensor("argument", "x", "f32", (8,))
    term, other = (algebra.read(x, [expr.of_var(v)]) for v in (i, j))
    for _ in range(2000):
        term, other = (lighten(apply(real("tanh"), (p,)), "f32") for p in (term, other))
    assert term.weight <= 4 * limit_of("named_weight")
    assert algebra.substitute(term, {i: expr.of_var(j)}) is other
