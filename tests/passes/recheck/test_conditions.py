"""Conditions as decisions: what they are for all values of their truths, and that equal ones are one."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from hlo_verify.equality.backend import Different, Equal, Limits
from hlo_verify.passes.recheck.conditions import MOST, Conditions, Decision
from hlo_verify.passes.recheck.formulas import Graph
from hlo_verify.passes.recheck.graph import Node
from hlo_verify.passes.recheck.question import Formulas
from hlo_verify.passes.recheck.z3_formulas import Z3
from tests.conftest import SEED

TRUTHS = 4


def _truths(graph: Graph) -> list[Node]:
    return [graph.read("t", (n,), "i1") for n in range(TRUTHS)]


def _condition(graph: Graph, random: Random, depth: int) -> Node:
    """A random condition of sums, products and choices."""
    if not depth:
        return random.choice([*_truths(graph), graph.one, graph.zero])
    a, b, c = (_condition(graph, random, depth - 1) for _ in range(3))
    return random.choice(
        [
            graph.add([(graph.one, 1), (a, -1)]),
            graph.multiply([a, b]),
            graph.add([(a, 1), (b, 1), (graph.multiply([a, b]), -1)]),
            graph.choose(a, b, c),
        ]
    )


def _value(graph: Graph, n: Node, values: dict[Node, int]) -> int:
    node = graph.nodes[n]
    if n in values or node[0] == "number":
        return values.get(n, node[1])
    if node[0] == "sum":
        return int(node[1] + sum(c * _value(graph, m, values) for m, c in node[2]))
    if node[0] == "choose":
        return _value(graph, node[2] if _value(graph, node[1], values) else node[3], values)
    found = 1
    for m, k in node[1]:
        found *= _value(graph, m, values) ** k
    return found


def _told(conditions: Conditions, d: Decision, values: dict[Node, int]) -> int:
    found = conditions.made[d]
    while isinstance(found, tuple):
        found = conditions.made[found[1] if values[found[0]] else found[2]]
    return int(found)


@pytest.mark.parametrize("draw", range(40))
def test_decisions_are_what_they_are_of(draw: int) -> None:
    """Of all values of truths; two that are equal for all are one, and only these."""
    graph, random = Graph(), Random(SEED + draw)
    conditions, truths, seen = Conditions(graph), _truths(graph), dict[tuple[int, ...], Decision]()
    for _ in range(20):
        n = _condition(graph, random, 3)
        d = conditions.of(n)
        assert d is not None
        cases = [dict(zip(truths, values, strict=True)) for values in product((0, 1), repeat=TRUTHS)]
        table = tuple(_value(graph, n, values) for values in cases)
        assert table == tuple(_told(conditions, d, values) for values in cases)
        assert seen.setdefault(table, d) == d
    assert len(set(seen.values())) == len(seen)


@pytest.mark.parametrize("draw", range(10))
def test_a_solver_tells_what_conditions_choose(draw: int) -> None:
    """Numbers that a condition chooses are the same exactly if they are for all truths."""
    graph, random = Graph(), Random(SEED + draw)
    x, y = (graph.read("x", (n,), "Real") for n in range(2))
    a, b = (_condition(graph, random, 3) for _ in range(2))
    one = graph.add([(graph.multiply([a, x]), 1), (graph.multiply([graph.add([(graph.one, 1), (a, -1)]), y]), 1)])
    for condition in (a, b):
        found = Z3().decide(Formulas(graph, ((one, graph.choose(condition, x, y)),)), Limits(5000))
        values = [dict(zip(_truths(graph), each, strict=True)) for each in product((0, 1), repeat=TRUTHS)]
        is_same = all(_value(graph, a, each) == _value(graph, condition, each) for each in values)
        assert isinstance(found, Equal if is_same else Different)


def test_what_is_no_condition() -> None:
    graph = Graph()
    a, b, *_ = _truths(graph)
    x = graph.read("x", (0,), "Real")
    conditions = Conditions(graph)
    for n in (graph.add([(a, 1), (b, 1)]), graph.add([(a, -1)]), graph.multiply([a, x]), x, graph.choose(a, x, b)):
        assert conditions.of(n) is None


def test_what_takes_too_many_decisions_is_a_number() -> None:
    """Whether all of many pairs are alike takes a decision for each of what the first ones are, in a bad order."""
    graph = Graph()
    count = MOST.bit_length() + 1
    truths = [graph.read("t", (n,), "i1") for n in range(2 * count)]
    alike = [
        graph.add([(graph.one, 1), (a, -1), (b, -1), (graph.multiply([a, b]), 2)])
        for a, b in zip(truths[:count], truths[count:], strict=True)
    ]
    assert Conditions(graph).of(graph.multiply(alike[:3])) is not None
    assert Conditions(graph).of(graph.multiply(alike)) is None
    assert Z3().decide(Formulas(graph, ((graph.multiply(alike), graph.zero),)), Limits(5000)) != Equal()
