"""Formulas of functions have one form, however they were written."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import pytest

from hlo_verify.passes.recheck.float_probe import Guess
from hlo_verify.passes.recheck.formulas import Graph
from hlo_verify.passes.recheck.graph import Node
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE, LOG, Function, real
from tests.conftest import SEED

TERMS = 4


def _exponential(graph: Graph, random: Random, names: int = 3) -> Node:
    """A random product of exponentials."""
    of = [graph.read("x", (n,), "Real") for n in range(names)]
    powers = [(n, Fraction(random.randrange(-3, 4), 2)) for n in [*of, graph.one]]
    return graph.call(EXPONENTIAL, [graph.add(powers)])


def _sum(graph: Graph, random: Random, by: Node, left_out: int = -1) -> Node:
    """A random sum of numbers with exponentials as factors, each of which is multiplied, but for one."""
    parts = []
    for n in range(TERMS):
        factors = [graph.read("y", (n % 3,), "Real"), _exponential(graph, random)]
        parts.append((graph.multiply(factors if n == left_out else [*factors, by]), random.randrange(1, 4)))
    return graph.add(parts)


@pytest.mark.parametrize("function", [INVERSE, LOG])
@pytest.mark.parametrize("draw", range(20))
def test_of_a_sum_times_an_exponential(function: Function, draw: int) -> None:
    seed = SEED + draw
    graph = Graph()
    by = graph.call(EXPONENTIAL, [graph.add([(graph.read("x", (0,), "Real"), 1), (graph.one, 5)])])
    plain, times = (graph.call(function, [_sum(graph, Random(seed), factor)]) for factor in (graph.one, by))
    wrong = graph.call(function, [_sum(graph, Random(seed), by, left_out=draw % TERMS)])
    if function == LOG:
        taken = graph.add([(times, 1), (graph.call(LOG, [by]), -1)])
        other = graph.add([(wrong, 1), (graph.call(LOG, [by]), -1)])
    else:
        taken, other = graph.multiply([times, by]), graph.multiply([wrong, by])
    assert taken == plain != other
    assert Guess(graph).differ(plain, other) and not Guess(graph).differ(plain, taken)


@pytest.mark.parametrize("draw", range(20))
def test_a_form_is_what_was_written(draw: int) -> None:
    """Numbers of the form are those of the function of numbers."""
    graph, random = Graph(), Random(SEED + draw)
    total = _sum(graph, random, _exponential(graph, random))
    guess = Guess(graph)
    assert math.isclose(guess.of(graph.call(INVERSE, [total])), 1 / guess.of(total), rel_tol=1e-9)
    assert math.isclose(guess.of(graph.call(LOG, [total])), 16 * math.log(guess.of(total)), rel_tol=1e-9)


def test_a_large_number_is_no_other_denominator() -> None:
    """Masks by large numbers are divided by the one term or by the other."""
    graph = Graph()
    x, y = (graph.read("y", (n,), "Real") for n in range(2))
    small, large = (graph.call(EXPONENTIAL, [graph.number(sign * 10**30)]) for sign in (-1, 1))
    one = graph.call(INVERSE, [graph.add([(x, 1), (graph.multiply([y, small]), 1)])])
    other = graph.call(INVERSE, [graph.add([(graph.multiply([x, large]), 1), (y, 1)])])
    assert one == graph.multiply([other, large])
    assert one != other


def test_hyperbolic_functions_are_made_of_exponentials() -> None:
    graph = Graph()
    x = graph.read("x", (), "Real")
    sinh, cosh = (graph.call(real(name), [x]) for name in ("sinh", "cosh"))
    assert graph.add([(cosh, 1), (sinh, 1)]) == graph.call(EXPONENTIAL, [x])
    assert graph.add([(cosh, 1), (sinh, -1)]) == graph.call(EXPONENTIAL, [graph.add([(x, -1)])])
    squares = [(graph.multiply([cosh, cosh]), 1), (graph.multiply([sinh, sinh]), -1)]
    assert graph.expand(graph.add(squares)) == graph.expand(graph.one)
