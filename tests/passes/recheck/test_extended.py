"""Infinities in the second check: IEEE's arithmetic, element by element, and steps that are wrong at an infinity."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from hlo_verify.passes.recheck.answer import Outcome, Task, answer
from hlo_verify.passes.recheck.at_infinities import call
from hlo_verify.passes.recheck.extended import Arithmetic, Extended, Term, Value
from hlo_verify.passes.recheck.float_probe import Guess
from hlo_verify.passes.recheck.formulas import Graph
from hlo_verify.passes.recheck.graph import Node
from hlo_verify.passes.recheck.plain import (
    GREATER,
    ONE,
    ZERO,
    Add,
    Call,
    Choose,
    Element,
    Expr,
    Num,
    Symbol,
    Times,
    minus,
    times,
)
from hlo_verify.terms.functions import (
    EQUAL,
    EXPONENTIAL,
    FINITE_PART,
    INFINITY,
    INVERSE,
    IS_FINITE,
    LESS_OR_EQUAL,
    LOG,
    MAXIMUM,
    MINIMUM,
    MULTIPLY,
    POSITIVE,
    SQRT,
    ZERO_TIMES,
    Function,
    real,
)
from tests.conftest import SEED

MILLISECONDS = 1000


def number(name: str) -> Expr:
    return Element(Symbol(name, "argument", "f32"), ())


def truth(name: str) -> Expr:
    return Element(Symbol(name, "argument", "i1"), ())


X, Y, Z = map(number, "xyz")
M, K = map(truth, "mk")
INF: Expr = Call(INFINITY, ())
LOW = times(Num(-1), INF)


def f(name: str, *args: Expr) -> Expr:
    return Call(real(name, len(args)), args)


def exp(x: Expr) -> Expr:
    return Call(EXPONENTIAL, (x,))


def most(*args: Expr) -> Expr:
    return Call(MAXIMUM, args)


def least(*args: Expr) -> Expr:
    return Call(MINIMUM, args)


def multiplied(*args: Expr) -> Expr:
    return Call(MULTIPLY, args)


def add(*args: Expr) -> Expr:
    return Add(args)


def collected(*args: Expr) -> Expr:
    return Add(args, collects=True)


def opposite(condition: Expr) -> Expr:
    return minus(ONE, condition)


XM, YM, YK, ZK = Choose(M, X, LOW), Choose(M, Y, LOW), Choose(K, Y, LOW), Choose(K, Z, LOW)
PRODUCT = collected(LOW, times(M, INF), times(M, X))
"""`XM`, as the prover writes a choice."""

RIGHT: dict[str, tuple[Expr, Expr]] = {
    "a choice multiplied out": (XM, PRODUCT),
    "an exponential": (exp(XM), times(M, exp(X))),
    "an exponential of the prover's choice": (exp(PRODUCT), times(M, exp(X))),
    "less a number": (exp(minus(XM, Y)), times(M, exp(X), exp(times(Num(-1), Y)))),
    "greatest": (most(XM, Y), Choose(M, most(X, Y), Y)),
    "greatest in another order": (most(most(XM, YK), Z), most(XM, most(Z, YK))),
    "all masked": (most(XM, YM), Choose(M, most(X, Y), LOW)),
    "greatest of choices": (most(XM, ZK), Choose(M, Choose(K, most(X, Z), X), ZK)),
    "least": (least(Choose(M, X, INF), Y), Choose(M, least(X, Y), Y)),
    "least of the negative": (least(times(Num(-1), XM), times(Num(-1), YK)), times(Num(-1), most(XM, YK))),
    "within others": (most(least(XM, Y), LOW), least(Y, XM)),
    "a sum": (add(XM, Y), Choose(M, add(X, Y), LOW)),
    "sums of two": (add(XM, YK), Choose(Times((M, K)), add(X, Y), LOW)),
    "beyond all numbers": (add(X, INF), INF),
    "twice": (times(Num(2), XM), Choose(M, times(Num(2), X), LOW)),
    "a negative multiple": (times(Num(-2), XM), Choose(M, times(Num(-2), X), INF)),
    "an inverse": (Call(INVERSE, (Choose(M, exp(X), INF),)), times(M, exp(times(Num(-1), X)))),
    "a hyperbolic tangent": (f("tanh", XM), collected(times(M, f("tanh", X)), M, Num(-1))),
    "a sigmoid": (f("logistic", XM), times(M, f("logistic", X))),
    "compared": (Call(GREATER, (XM, Y)), times(M, Call(GREATER, (X, Y)))),
    "compared with an infinity": (Call(EQUAL, (XM, LOW)), opposite(M)),
    "both infinite": (Call(LESS_OR_EQUAL, (LOW, XM)), ONE),
    "asked for finite": (Call(IS_FINITE, (XM,)), M),
    "the greatest asked for finite": (Call(IS_FINITE, (most(XM, YK),)), opposite(times(opposite(M), opposite(K)))),
    "the finite part": (Call(FINITE_PART, (XM,)), times(M, X)),
    "no number on both sides": (minus(XM, XM), Call(ZERO_TIMES, (XM,))),
    "zero times": (multiplied(ZERO, XM), Call(ZERO_TIMES, (PRODUCT,))),
    "a truth value as a factor": (multiplied(M, INF), add(times(M, INF), Call(ZERO_TIMES, (Choose(M, X, INF),)))),
    "a function of which nothing is known": (f("lgamma", XM), f("lgamma", PRODUCT)),
    "chosen": (Choose(Call(IS_FINITE, (XM,)), XM, ZERO), times(M, X)),
}
"""The same value, written in two ways."""

WRONG: dict[str, tuple[Expr, Expr]] = {
    "a mask left out": (exp(XM), exp(X)),
    "one for nothing": (exp(XM), add(times(M, exp(X)), opposite(M))),
    "the other side": (exp(XM), times(opposite(M), exp(X))),
    "no infinity": (XM, times(M, X)),
    "another sign": (XM, Choose(M, X, INF)),
    "the masked one is greatest": (most(XM, Y), most(X, Y)),
    "0 where all are masked": (most(XM, YM), times(M, most(X, Y))),
    "one of them": (most(XM, YM), Choose(M, X, LOW)),
    "the least": (most(XM, Y), least(XM, Y)),
    "an infinity that cancels": (minus(XM, Choose(M, ZERO, LOW)), times(M, X)),
    "an infinity less itself": (minus(INF, INF), ZERO),
    "two of one sign": (add(INF, LOW), ZERO),
    "zero times an infinity": (multiplied(ZERO, INF), ZERO),
    "a truth value that selects": (multiplied(M, INF), times(M, INF)),
    "a number's sign": (multiplied(X, INF), INF),
    "a product that may be 0": (multiplied(exp(XM), INF), INF),
    "quotients of exponentials": (multiplied(exp(XM), Call(INVERSE, (exp(XM),))), ONE),
    "what the maximum cancels": (exp(minus(XM, most(XM, YM))), times(M, exp(X), exp(times(Num(-1), most(X, Y))))),
    "a maximum less itself": (minus(most(XM, YK), most(XM, YK)), ZERO),
    "twice a maximum": (most(XM, times(Num(2), most(YK, ZK))), most(X, times(Num(2), most(Y, Z)))),
    "a maximum that is somewhere a number": (Call(IS_FINITE, (most(XM, YK),)), ONE),
    "a bound that is a number": (Call(GREATER, (most(XM, YK), times(Num(-3), most(X, Y)))), ONE),
    "one is as great": (Call(EQUAL, (XM, X)), ONE),
    "what is none is no less": (Call(LESS_OR_EQUAL, (minus(XM, XM), Y)), opposite(Call(GREATER, (minus(XM, XM), Y)))),
    "what is none is equal": (Call(EQUAL, (minus(XM, XM), minus(XM, XM))), ONE),
    "an odd function": (f("tanh", XM), times(M, f("tanh", X))),
    "an unknown function less itself": (minus(f("lgamma", XM), f("lgamma", XM)), ZERO),
    "an unknown function of something else": (f("lgamma", XM), f("lgamma", times(M, X))),
    "an infinite root": (Call(SQRT, (Choose(M, exp(X), INF),)), times(M, Call(SQRT, (exp(X),)))),
    "an infinite logarithm": (Call(LOG, (Choose(M, exp(X), INF),)), times(M, X)),
    "the logarithm of nothing": (Call(LOG, (exp(XM),)), XM),
    "coefficients that do not cancel": (collected(LOW, times(Num(2), M, INF)), collected(LOW, times(M, INF))),
}
"""What is another value where something is infinite, or none."""


@pytest.mark.parametrize("name", RIGHT)
def test_the_same_at_infinities(name: str) -> None:
    for sides in RIGHT[name], RIGHT[name][::-1]:
        found = answer(Task(sides, True, MILLISECONDS))
        assert found.agrees, found


@pytest.mark.parametrize("name", WRONG)
def test_another_value_at_infinities(name: str) -> None:
    for sides in WRONG[name], WRONG[name][::-1]:
        assert not answer(Task(sides, True, MILLISECONDS)).agrees


def test_what_only_makes_no_number_is_not_checked() -> None:
    """An infinity less itself is none, and the prover's term may not say so; that is no difference between numbers."""
    for name in "an infinity that cancels", "zero times an infinity", "a truth value that selects":
        assert answer(Task(WRONG[name], True, MILLISECONDS)).outcome is Outcome.UNDECIDED
    for name in "a mask left out", "no infinity", "another sign", "0 where all are masked":
        assert answer(Task(WRONG[name], True, MILLISECONDS)).outcome is Outcome.DIFFERENT


# against numpy


def _exponential(x: float) -> float:  # as the quick look takes it
    return float(np.exp(x / 16))


UNARY: dict[Function, Callable[[float], float]] = {
    EXPONENTIAL: _exponential,
    IS_FINITE: lambda x: float(np.isfinite(x)),
    POSITIVE: lambda x: float(x > 0),
    real("abs"): abs,
    FINITE_PART: lambda x: x if np.isfinite(x) else 0.0,
    ZERO_TIMES: lambda x: 0 * x,
}
BINARY: dict[Function, Callable[[float, float], float]] = {
    MULTIPLY: lambda x, y: x * y,
    MAXIMUM: np.maximum,
    MINIMUM: np.minimum,
    EQUAL: lambda x, y: float(x == y),
    GREATER: lambda x, y: float(x > y),
    LESS_OR_EQUAL: lambda x, y: float(x <= y),
}


class Drawn:
    """Random terms, with what they are for the numbers that are drawn for arguments."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.graph = Graph()
        self.arithmetic = Arithmetic(self.graph)
        self.guess = Guess(self.graph)
        self.truths = [self.graph.read("m", (n,), "i1") for n in range(3)]
        self.numbers = [self.graph.read("x", (n,), "Real") for n in range(3)]
        for n in self.truths:
            self.guess.values[n] = float(random.randrange(2))
        for n in self.numbers:
            self.guess.values[n] = float(random.choice((-2, -1, 0, 0.5, 1, 3)))

    def term(self, depth: int) -> tuple[Value, float]:
        random, arithmetic = self.random, self.arithmetic
        if depth == 0 or random.random() < 0.1:
            return self._leaf()
        kind = random.choice(("unary", "binary", "binary", "add", "choose", "scaled", "collected"))
        a, x = self.term(depth - 1)
        if kind == "unary":
            function = random.choice(list(UNARY))
            return call(arithmetic, function, (a,)), float(UNARY[function](x))
        if kind == "scaled":
            c = random.choice((-2, -1, 0, 1, 3))
            return arithmetic.scaled(a, c), c * x
        b, y = self.term(depth - 1)
        if kind == "binary":
            function = random.choice(list(BINARY))
            return call(arithmetic, function, (a, b)), float(BINARY[function](x, y))
        if kind == "add":
            return arithmetic.add((a, b)), x + y
        condition = random.choice(self.truths)
        holds = self.guess.values[condition] == 1
        if kind == "choose":
            return arithmetic.choose(condition, a, b), x if holds else y
        terms = [Term(1, (condition,), (a,)), Term(1, (), (b,)), Term(-1, (condition,), (b,))]
        return arithmetic.collected(terms), x if holds else y

    def _leaf(self) -> tuple[Value, float]:
        random = self.random
        if random.random() < 0.5:
            n = random.choice(self.numbers)
            return n, self.guess.values[n]
        sign = random.choice((1, -1))
        if random.random() < 0.3:
            return self.arithmetic.nothing(), np.nan
        return self.arithmetic.infinity(sign), sign * np.inf

    def value(self, value: Value) -> float:
        found = self.arithmetic.extended(value)
        ends = [self.guess.of(n) for n in (found.plus, found.minus, found.none)]
        assert set(ends) <= {0, 1} and sum(ends) <= 1, "at most one condition holds"
        if not any(ends):
            return self.guess.of(found.number)
        return (np.inf, -np.inf, np.nan)[ends.index(1)]


def test_operations_are_those_of_ieee() -> None:
    print(f"HLO_VERIFY_SEED={SEED}")
    random = Random(SEED)
    infinite = 0
    for turn in range(400):
        drawn = Drawn(random)
        with np.errstate(all="ignore"):
            value, expected = drawn.term(4)
        found = drawn.value(value)
        infinite += not np.isfinite(expected)
        assert np.isclose(found, expected, rtol=1e-9, atol=1e-9, equal_nan=True), (turn, found, expected)
    assert 40 < infinite < 360


def _number(graph: Graph, value: Value) -> Node:
    assert not isinstance(value, Extended), graph
    return value


def test_a_symbol_that_is_beyond_all_numbers_is_none_itself() -> None:
    """What is known of it holds where everything is masked, too."""
    graph = Graph()
    arithmetic = Arithmetic(graph)
    x, y = (graph.read(name, (), "Real") for name in "xy")
    keep = [graph.read("m", (n,), "i1") for n in range(2)]
    masked = [arithmetic.choose(k, n, arithmetic.infinity(-1)) for k, n in zip(keep, (x, y), strict=True)]
    found = arithmetic.extremum("max", masked)
    assert isinstance(found, Extended)
    assert found.minus == arithmetic.both(*map(arithmetic.otherwise, keep))
    assert _number(graph, call(arithmetic, IS_FINITE, (found,))) == arithmetic.otherwise(found.minus)
