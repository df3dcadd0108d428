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
from hlo_verify.equality.backend import Different, Limits
from hlo_verify.passes.recheck.float_probe import Guess
from hlo_verify.passes.recheck.formulas import Graph
from hlo_verify.passes.recheck.question import Formulas
from hlo_verify.passes.recheck.z3_formulas import Z3
from hlo_verify.terms.functions import (
    EXPONENTIAL,
    FINITE_PART,
    INFINITE_EXPONENTIAL,
    INFINITY,
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
    graph = Graph()
    x, infinite = graph.read("x", (0,), "Real"), graph.call(INFINITY, ())
    assert graph.call(FINITE_PART, [x]) == x
    for term in (infinite, graph.add([(x, 1), (infinite, -1)])):
        assert graph.call(FINITE_PART, [term]) == graph.choose(graph.call(IS_FINITE, [term]), term, graph.zero) != term


def test_a_product_by_name_is_the_product_and_nothing_else() -> None:
    graph = Graph()
    x, y = (graph.read(name, (0,), "Real") for name in "xy")
    more = graph.add([(x, 1), (graph.one, 1)])
    assert graph.call(MULTIPLY, [more, y]) == graph.call(MULTIPLY, [y, more]) == graph.multiply([more, y])
    wrong = [graph.multiply([x, y]), graph.add([(more, 1), (y, 1)]), graph.call(MULTIPLY, [more, more])]
    for other in wrong:
        assert isinstance(
            Z3().decide(Formulas(graph, ((graph.call(MULTIPLY, [more, y]), other),)), Limits(5000)), Different
        )


def test_an_integer_made_of_a_number_is_whole_to_the_quick_look() -> None:
    """Cases of it cover everything: between 2 and 3 there is no other one."""
    graph = Graph()
    e = graph.operation("integer", graph.call(truncate("i32"), [graph.read("x", (0,), "Real")]))
    for end in range(-3, 4):
        cases = graph.add([(graph.between(e, None, end), 1), (graph.between(e, end + 1, None), 1)])
        assert not any(Guess(graph, seed).differ(cases, graph.one) for seed in range(20))


def test_exponentials_of_infinities_do_not_cancel() -> None:
    graph = Graph()
    x, infinite = graph.read("x", (0,), "Real"), graph.call(INFINITY, ())
    masked = graph.choose(graph.read("keep", (0,), "Real"), x, infinite)
    product = [graph.call(INFINITE_EXPONENTIAL, [graph.multiply([graph.number(c), masked])]) for c in (1, -1)]
    assert graph.multiply(product) != graph.one
    number = [graph.call(INFINITE_EXPONENTIAL, [graph.multiply([graph.number(c), x])]) for c in (1, -1)]
    assert graph.multiply(number) == graph.one


def test_what_has_an_infinity_is_not_taken_for_a_number() -> None:
    graph = Graph()
    x = graph.read("x", (0,), "Real")
    infinite = graph.call(INFINITY, ())
    assert graph.call(IS_FINITE, [graph.call(EXPONENTIAL, [graph.add([(x, 2)])])]) == graph.one
    for term in (
        infinite,
        graph.add([(x, 1), (infinite, -1)]),
        graph.extremum("max", [x, graph.multiply([x, infinite])]),
    ):
        assert graph.call(IS_FINITE, [term]) != graph.one
    row = [
        graph.choose(graph.read("keep", (k,), "Real"), x, graph.multiply([graph.number(-1), infinite])) for k in (0, 1)
    ]
    assert graph.call(IS_FINITE, [graph.extremum("max", row)]) != graph.one
    assert graph.call(IS_FINITE, [graph.extremum("max", [x, *row])]) == graph.one


def test_what_conditions_choose_of_infinities_is_a_number_where_none_is_left() -> None:
    graph = Graph()
    x, infinite = graph.read("x", (0,), "Real"), graph.call(INFINITY, ())
    keep, other = (graph.call(POSITIVE, [graph.read(name, (0,), "Real")]) for name in ("k", "m"))
    masked = graph.add([(infinite, -1), (graph.multiply([infinite, keep]), 1), (graph.multiply([x, keep]), 1)])
    is_number = graph.call(IS_FINITE, [masked])
    for holds in (graph.zero, graph.one):
        assert graph.is_zero(graph.add([(holds, 1), (graph.one, -1)])) == holds
    assert is_number == graph.is_zero(graph.add([(keep, 1), (graph.one, -1)]))
    assert is_number != graph.is_zero(graph.add([(other, 1), (graph.one, -1)]))
    assert graph.call(IS_FINITE, [graph.add([(x, 1), (infinite, -1)])]) == graph.zero
    unsure = graph.add([(graph.multiply([infinite, x]), 1), (x, 1)])
    assert graph.call(IS_FINITE, [unsure]) not in (graph.zero, graph.one)
