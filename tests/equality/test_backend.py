"""Formulas and Z3: the laws prove what they should, what differs has a model, and a limit is no answer."""

from __future__ import annotations

from fractions import Fraction

from hlo_verify.equality.backend import Answer, Backend, Different, Equal, Limit, Limits, Unknown
from hlo_verify.passes.recheck.float_probe import Guess
from hlo_verify.passes.recheck.formulas import Graph
from hlo_verify.passes.recheck.graph import Node
from hlo_verify.passes.recheck.normal_form import NormalForm
from hlo_verify.passes.recheck.question import Formulas
from hlo_verify.passes.recheck.z3_formulas import Z3
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE, LOG, real

F = real("f")

BACKENDS: tuple[Backend[Formulas], ...] = (NormalForm(), Z3())


def ask(graph: Graph, *pairs: tuple[Node, Node], milliseconds: int = 5000) -> Answer:
    """Z3's answer, which the exact normal form does not contradict."""
    form, found = (backend.decide(Formulas(graph, pairs), Limits(milliseconds)) for backend in BACKENDS)
    assert not isinstance(form, Equal) or not isinstance(found, Different)
    return found


def symbols(graph: Graph, count: int, sort: str = "Real") -> list[Node]:
    return [graph.read("x", (n,), sort) for n in range(count)]


def test_arithmetic_is_the_solvers() -> None:
    graph = Graph()
    a, b = symbols(graph, 2)
    square = graph.multiply([graph.add([(a, 1), (b, 1)])] * 2)
    long = graph.add([(graph.multiply([a, a]), 1), (graph.multiply([a, b]), 2), (graph.multiply([b, b]), 1)])
    assert square != long
    assert ask(graph, (square, long)) == Equal()
    assert NormalForm().decide(Formulas(graph, ((square, long),)), Limits(0)) == Equal()
    found = ask(graph, (square, long), (square, a))
    assert isinstance(found, Different) and found.pair == 1 and "x_0" in found.model
    guess = Guess(graph)
    assert guess.differ(square, a) and not guess.differ(square, long)


def test_laws_of_functions() -> None:
    graph = Graph()
    a, b, c = symbols(graph, 3)

    def exp(n: Node) -> Node:
        return graph.call(EXPONENTIAL, [n])

    def inverse(n: Node) -> Node:
        return graph.call(INVERSE, [n])

    sums = exp(graph.add([(a, 1), (b, Fraction(-1, 2))]))
    products = graph.multiply([exp(a), graph.power(exp(b), Fraction(-1, 2))])
    assert ask(graph, (sums, products)) == Equal()
    assert ask(graph, (graph.multiply([exp(a), inverse(exp(a))]), graph.one)) == Equal()
    part = graph.multiply([graph.number(2), a, exp(b)])
    assert inverse(part) == graph.multiply([graph.number(Fraction(1, 2)), inverse(a), exp(graph.add([(b, -1)]))])
    assert graph.call(LOG, [graph.multiply([exp(a), c])]) == graph.add([(a, 1), (graph.call(LOG, [c]), 1)])
    assert isinstance(ask(graph, (exp(a), exp(b))), Different)
    assert isinstance(ask(graph, (graph.multiply([a, inverse(a)]), graph.one)), Different)  # 0/0 never cancels


def test_sigmoids_and_hyperbolic_tangents() -> None:
    graph = Graph()
    a, b = symbols(graph, 2)

    def call(name: str, n: Node, by: Fraction | int = 1) -> Node:
        return graph.call(real(name), [graph.add([(n, by)])])

    def written(n: Node, sign: int) -> Node:
        return graph.call(
            INVERSE, [graph.add([(graph.one, 1), (graph.call(EXPONENTIAL, [graph.add([(n, sign)])]), 1)])]
        )

    half = Fraction(1, 2)
    by_tangent = graph.add([(call("tanh", a, half), half), (graph.one, half)])
    assert by_tangent == call("logistic", a) == written(a, -1)
    assert graph.multiply([graph.call(EXPONENTIAL, [a]), written(a, 1)]) == written(a, -1)
    both = graph.add([(a, -1), (b, 2)])
    assert call("tanh", both, -1) == graph.add([(call("tanh", both), -1)])
    others = [call("logistic", a, -1), call("logistic", a, 2), call("tanh", a), by_tangent]
    guess = Guess(graph)
    assert all(guess.differ(x, y) for k, x in enumerate(others) for y in others[:k])
    assert isinstance(ask(graph, (by_tangent, call("tanh", a))), Different)


def test_extrema_and_choices_mean_what_they_say() -> None:
    graph = Graph()
    a, b, c = symbols(graph, 3)
    left = graph.extremum("max", [graph.extremum("max", [a, b]), c])
    right = graph.extremum("max", [a, graph.extremum("max", [c, b])])
    assert ask(graph, (left, right)) == Equal()
    assert isinstance(ask(graph, (left, graph.extremum("min", [a, b, c]))), Different)
    assert graph.extremum("max", [a, graph.add([(graph.infinity, -1)])]) == a
    test = graph.positive(graph.add([(a, 1), (b, -1)]))
    assert ask(graph, (graph.choose(test, a, b), graph.extremum("max", [a, b]))) == Equal()
    assert ask(graph, (graph.multiply([test, test]), test)) == Equal()


def test_integers_that_tensors_hold() -> None:
    graph = Graph()
    (i,) = (graph.operation("integer", n) for n in symbols(graph, 1, "i32"))
    row = graph.read("w", (i,), "Real")
    inside = graph.between(i, 0, 3)
    one_point = graph.add(
        (graph.multiply([graph.between(graph.affine([(i, 1)], -v), 0, 0), graph.read("w", (v,), "Real")]), 1)
        for v in range(4)
    )
    assert ask(graph, (one_point, graph.multiply([inside, row]))) == Equal()
    assert isinstance(ask(graph, (one_point, row)), Different)
    assert graph.between(graph.affine([(i, -1)], 2), 0, 1) == graph.between(i, 1, 2)
    guess = Guess(graph)
    assert not guess.differ(one_point, graph.multiply([inside, row]))


def test_a_limit_is_no_answer() -> None:
    graph = Graph()
    a, b, c = symbols(graph, 3)
    cubes = graph.add([(graph.multiply([n, n, n]), 1) for n in (a, b, c)])
    hard = graph.extremum("max", [cubes, graph.multiply([a, b, c]), graph.number(42)])
    question = Formulas(graph, ((graph.call(F, [hard]), graph.call(F, [cubes])),))
    assert isinstance(NormalForm().decide(question, Limits(5000)), Unknown)
    for limits in (Limits(0), Limits(60_000, steps=200)):
        found = Z3().decide(question, limits)
        assert isinstance(found, Unknown) and found.limit is Limit.TIME and str(limits) in found.reason


def test_the_normal_form_multiplies_out_what_is_long() -> None:
    graph = Graph()
    x = symbols(graph, 14)
    total = graph.add((n, 1) for n in x)
    square = graph.multiply([total, total])
    once = graph.add((graph.multiply([n, total, square]), 1) for n in x)
    assert NormalForm().decide(Formulas(graph, ((graph.multiply([square, square]), once),)), Limits(0)) == Equal()
    nodes = len(graph.nodes)
    off = graph.add([(once, 1), (graph.multiply([x[0], x[1], x[2], x[3]]), 1)])
    assert isinstance(NormalForm().decide(Formulas(graph, ((once, off),)), Limits(0)), Unknown)
    assert len(graph.nodes) <= nodes + 2  # no product was made a node
