"""Questions whether something is a number: what the expected term decides, and what is too deep for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hlo_verify.equality.known_numbers import ASKED, decided
from hlo_verify.equality.networks import same_network
from hlo_verify.equality.opening import ingredients
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.limits import Limits
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import named
from hlo_verify.terms.functions import IS_FINITE, Function
from hlo_verify.terms.laws import apply, divide
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, Poly, tensor

SIZE = 4
TANH = Function("tanh")


def read(v: Var, name: str = "x") -> Poly:
    return algebra.read(tensor("argument", name, "f32", (SIZE,)), [expr.of_var(v)])


def layers(p: Poly, v: Var, depth: int) -> Poly:
    """Layers that read the one below twice each: at all of its places, and at their own."""
    for _ in range(depth):
        k = expr.fresh("k", SIZE)
        everywhere = reduce_sum((k,), apply(TANH, (algebra.substitute(p, {v: expr.of_var(k)}),)))
        p = named(algebra.add(everywhere, apply(TANH, (p,))))
    return p


def is_open(p: Poly) -> bool:
    return not ingredients(p).isdisjoint(ASKED)


@pytest.mark.parametrize(("depth", "parts", "is_decided"), [(0, 4000, True), (60, 4000, True), (60, 200, False)])
def test_what_the_expected_term_divides_by_answers_the_question(depth: int, parts: int, is_decided: bool) -> None:
    """Layers take as many parts as there are of them, though each has the one below twice."""
    session = Session(replace(Limits(), question_parts=parts))
    with session.on():
        v = expr.fresh("v", SIZE)
        quotient = divide(ONE, read(v))
        asked = layers(named(algebra.multiply(apply(IS_FINITE, (quotient,)), read(v))), v, depth)
        over_all = reduce_sum((v,), quotient)
        assert is_open(asked) and is_open(decided(asked, read(v), session))
        assert is_open(decided(asked, over_all, session)) is not is_decided
    assert ("question_parts" in session.spent().limits) is not is_decided


@pytest.mark.parametrize("depth", [0, 60])
@pytest.mark.parametrize("is_in_question", [True, False])
def test_what_layers_are_made_of_is_looked_at_once(depth: int, is_in_question: bool) -> None:
    """The layers in the question, or those of the term that answers it."""
    session = Session()
    with session.on():
        v = expr.fresh("v", SIZE)
        quotient = divide(ONE, read(v))
        whole = layers(quotient, v, depth)
        asked = named(algebra.multiply(apply(IS_FINITE, (whole if is_in_question else quotient,)), read(v)))
        assert is_open(asked)
        assert not is_open(decided(asked, algebra.add(whole, read(v)), session))
        assert is_open(decided(asked, divide(ONE, read(v, "y")), session))
    assert "question_parts" not in session.spent().limits


@pytest.mark.parametrize("is_known", [True, False])
def test_infinities_count_where_they_are_no_part_of_a_number(is_known: bool) -> None:
    """The same part is looked at where infinities do not count, and then where they do."""
    session = Session()
    with session.on():
        v = expr.fresh("v", SIZE)
        quotient = divide(ONE, read(v))
        asked = algebra.add(apply(IS_FINITE, (apply(TANH, (quotient,)),)), apply(IS_FINITE, (quotient,)))
        answer = reduce_sum((v,), quotient) if is_known else read(v)
        assert is_open(decided(asked, answer, session)) is not is_known


@pytest.mark.parametrize(("depth", "is_shown"), [(0, True), (4, True), (60, False)])
def test_what_may_be_no_number_is_looked_for_in_so_many_parts(depth: int, is_shown: bool) -> None:
    """In terms of equal sums of products: each layer has twice the parts of the one below."""
    session = Session(replace(Limits(), network_steps=4000))
    with session.on():
        v = expr.fresh("v", SIZE)
        deep = layers(divide(ONE, read(v)), v, depth)
        j, k = expr.fresh("j", SIZE), expr.fresh("k", SIZE)
        w = algebra.read(tensor("argument", "w", "f32", (SIZE, SIZE)), [expr.of_var(j), expr.of_var(k)])
        left, right = algebra.multiply(deep, read(j, "y")), read(k, "z")
        found = reduce_sum((k,), algebra.multiply(reduce_sum((j,), algebra.multiply(left, w)), right))
        expected = reduce_sum((j,), algebra.multiply(left, reduce_sum((k,), algebra.multiply(w, right))))
        assert found is not expected
        assert same_network(found, expected, session) is is_shown
    assert ("network_steps" in session.spent().limits) is not is_shown
