"""What is asked to be finite, as `logsumexp` asks of the greatest, is to the second check but for infinities that a
program writes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.nn import logsumexp
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality.backend import Different, Equal, Limits
from hlo_verify.passes.recheck.at_infinities import call
from hlo_verify.passes.recheck.extended import Arithmetic, Extended, Term
from hlo_verify.passes.recheck.float_probe import Guess
from hlo_verify.passes.recheck.formulas import Graph
from hlo_verify.passes.recheck.question import Formulas
from hlo_verify.passes.recheck.z3_formulas import Z3
from hlo_verify.terms.functions import (
    EXPONENTIAL,
    FINITE_PART,
    INFINITE_EXPONENTIAL,
    IS_FINITE,
    MULTIPLY,
    POSITIVE,
    truncate,
)
from tests.passes.prove.each_device.programs import Function, on


def written_out(x: jax.Array) -> jax.Array:
    most = x.max(-1)
    return most + jnp.log(jnp.exp(x - most[:, None]).sum(-1))


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        (lambda x: logsumexp(x, -1), written_out),
        (written_out, lambda x: logsumexp(x, -1)),
        (lambda x: logsumexp(2 * x, -1), lambda x: logsumexp(x + x, -1)),
    ],
    ids=["guarded", "guards", "both"],
)
def test_both_checks_agree(whole: Function, part: Function) -> None:
    pair = on({"i": 4}, P("i"), P("i"), (8, 8)).pair(whole, part)
    report = hlo_verify.verify(*pair, refute=False, recheck=True)
    assert report.verdict is Verdict.PROVED, report


def taken(table: jax.Array, place: jax.Array) -> jax.Array:
    return jnp.take(table, place[0].astype(jnp.int32), axis=0)


def test_exponentials_of_what_may_be_no_number_are_one_function() -> None:
    """Of elements that a program takes at places that may be outside, as `jnp.take` fills them."""

    def weight(table: jax.Array, place: jax.Array) -> jax.Array:
        return jnp.exp(taken(table, place))

    pair = on({"i": 2}, (P(None, "i"), P()), P("i"), (3, 4), (1,)).pair(weight, weight)
    report = hlo_verify.verify(*pair, refute=False, recheck=True)
    assert report.verdict is Verdict.PROVED, report


@pytest.mark.parametrize("of_taken", [lambda x: (x + 1) * jnp.sin(x), jax.nn.sigmoid], ids=["product", "sigmoid"])
def test_what_may_be_no_number_is_what_it_is_of_numbers(of_taken: Function) -> None:
    """Its products are not multiplied out by the prover, and its quotients are taken case by case."""

    def whole(table: jax.Array, place: jax.Array) -> jax.Array:
        return of_taken(taken(table, place))

    pair = on({"i": 2}, (P(None, "i"), P()), P("i"), (3, 4), (1,)).pair(whole, whole)
    report = hlo_verify.verify(*pair, refute=False, recheck=True)
    assert report.verdict is Verdict.PROVED, report
    assert report.recheck is not None
    assert not [why for why, _ in report.recheck.unchecked if why.startswith("multiply")]


def test_both_checks_know_the_finite_part_of_what_may_be_undefined() -> None:
    def logarithm(x: jax.Array) -> jax.Array:
        return jnp.where(jnp.isfinite(jnp.log(x)), jnp.log(x), 0)

    pair = on({"i": 2}, P("i"), P("i"), (4,)).pair(logarithm, logarithm)
    report = hlo_verify.verify(*pair, refute=False, recheck=True)
    assert report.verdict is Verdict.PROVED, report


def test_the_finite_part_of_an_infinity_is_not_that_infinity() -> None:
    arithmetic = Arithmetic(Graph())
    x, infinite = arithmetic.graph.read("x", (0,), "Real"), arithmetic.infinity()
    assert call(arithmetic, FINITE_PART, [x]) == x
    for term in (infinite, arithmetic.add([x, arithmetic.scaled(infinite, -1)])):
        assert call(arithmetic, FINITE_PART, [term]) == arithmetic.graph.zero


def test_a_product_by_name_is_the_product_and_nothing_else() -> None:
    graph = Graph()
    arithmetic = Arithmetic(graph)
    x, y = (graph.read(name, (0,), "Real") for name in "xy")
    more = graph.add([(x, 1), (graph.one, 1)])
    product = call(arithmetic, MULTIPLY, [more, y])
    assert not isinstance(product, Extended)
    assert product == call(arithmetic, MULTIPLY, [y, more]) == graph.multiply([more, y])
    wrong = [graph.multiply([x, y]), graph.add([(more, 1), (y, 1)]), graph.multiply([more, more])]
    for other in wrong:
        assert isinstance(Z3().decide(Formulas(graph, ((product, other),)), Limits(5000)), Different)


def test_an_integer_made_of_a_number_is_whole_to_the_quick_look() -> None:
    """Cases of it cover everything: between 2 and 3 there is no other one."""
    graph = Graph()
    e = graph.operation("integer", graph.call(truncate("i32"), [graph.read("x", (0,), "Real")]))
    for end in range(-3, 4):
        cases = graph.add([(graph.between(e, None, end), 1), (graph.between(e, end + 1, None), 1)])
        assert not any(Guess(graph, seed).differ(cases, graph.one) for seed in range(20))


def test_exponentials_of_infinities_do_not_cancel() -> None:
    graph = Graph()
    arithmetic = Arithmetic(graph)
    x, keep = graph.read("x", (0,), "Real"), graph.read("keep", (0,), "i1")
    masked = arithmetic.choose(keep, x, arithmetic.infinity())
    product = [call(arithmetic, INFINITE_EXPONENTIAL, [arithmetic.scaled(masked, c)]) for c in (1, -1)]
    found = arithmetic.multiply(product)
    assert isinstance(found, Extended)
    assert Z3().decide(Formulas(graph, ((found.none, arithmetic.otherwise(keep)),)), Limits(5000)) == Equal()
    number = [call(arithmetic, INFINITE_EXPONENTIAL, [arithmetic.scaled(x, c)]) for c in (1, -1)]
    assert arithmetic.multiply(number) == graph.one


def test_what_has_an_infinity_is_not_taken_for_a_number() -> None:
    graph = Graph()
    arithmetic = Arithmetic(graph)
    x, infinite = graph.read("x", (0,), "Real"), arithmetic.infinity()
    assert call(arithmetic, IS_FINITE, [graph.call(EXPONENTIAL, [graph.add([(x, 2)])])]) == graph.one
    for term in (
        infinite,
        arithmetic.add([x, arithmetic.scaled(infinite, -1)]),
        arithmetic.extremum("max", [x, arithmetic.multiply([x, infinite])]),
    ):
        assert call(arithmetic, IS_FINITE, [term]) != graph.one
    keep = [graph.read("keep", (k,), "i1") for k in (0, 1)]
    row = [arithmetic.choose(k, x, arithmetic.infinity(-1)) for k in keep]
    assert call(arithmetic, IS_FINITE, [arithmetic.extremum("max", row)]) == arithmetic.either(*keep)
    assert call(arithmetic, IS_FINITE, [arithmetic.extremum("max", [x, *row])]) == graph.one


def test_what_conditions_choose_of_infinities_is_a_number_where_none_is_left() -> None:
    graph = Graph()
    arithmetic = Arithmetic(graph)
    x, infinite = graph.read("x", (0,), "Real"), arithmetic.infinity()
    keep, other = (graph.call(POSITIVE, [graph.read(name, (0,), "Real")]) for name in "km")
    terms = [Term(-1, (), (infinite,)), Term(1, (keep,), (infinite,)), Term(1, (keep,), (x,))]
    masked = arithmetic.collected(terms)
    assert call(arithmetic, IS_FINITE, [masked]) == keep != other
    assert masked == arithmetic.choose(keep, x, arithmetic.infinity(-1))
    unsure = arithmetic.collected([Term(1, (), (infinite, x)), Term(1, (), (x,))])
    assert call(arithmetic, IS_FINITE, [unsure]) == graph.zero  # an infinity, or none
