"""Quotients of quotients are compared as one polynomial over another: where they are numbers, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify.ops  # noqa: F401  # which equality is about
from hlo_verify import Verdict, verify
from hlo_verify.equality import rational_functions
from hlo_verify.equality.rational_functions import same_rational_function
from hlo_verify.index import expr
from hlo_verify.session import Session
from hlo_verify.terms import algebra, guards, losses
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, Poly, number, tensor
from tests.support.lowering import Placed, floats

Tree = tuple[Any, ...] | str | int


def term(tree: Tree, atoms: dict[str, Poly]) -> Poly:
    if isinstance(tree, int):
        return number(tree)
    if isinstance(tree, str):
        return atoms[tree]
    kind, *parts = tree
    args = [term(part, atoms) for part in parts]
    if kind == "/":
        return apply(INVERSE, (args[0],))
    if kind == "+":
        return losses.checked(algebra.add(*args), *args, added=True)
    return losses.checked(algebra.multiply(*args), *args)


def value(tree: Tree, numbers: dict[str, int]) -> Fraction:
    """What a tree is; raises `ZeroDivisionError` where it is no number."""
    if isinstance(tree, int):
        return Fraction(tree)
    if isinstance(tree, str):
        return Fraction(numbers[tree])
    kind, *parts = tree
    args = [value(part, numbers) for part in parts]
    if kind == "/":
        return 1 / args[0]
    return args[0] + args[1] if kind == "+" else args[0] * args[1]


def drawn(random: Random, depth: int) -> Tree:
    if depth == 0 or random.random() < 0.15:
        return random.choice(["a", "b", "a", "b", 1, -1, 2])
    kind = random.choice("++**/")
    return kind, *(drawn(random, depth - 1) for _ in range(1 if kind == "/" else 2))


def spelled_otherwise(random: Random, tree: Tree) -> Tree:
    """A tree that is equal wherever both are numbers, or nearly so."""
    if not isinstance(tree, tuple):
        return tree
    kind, *parts = tree
    parts = [spelled_otherwise(random, part) for part in parts]
    way = random.randrange(5)
    if kind == "+" and way == 0:  # a + b = (a/b + 1)*b
        return "*", ("+", ("*", parts[0], ("/", parts[1])), 1), parts[1]
    if kind == "*" and way == 1:  # a*b = b/(1/a)
        return "*", parts[1], ("/", ("/", parts[0]))
    if kind == "/" and way == 2:  # 1/a = a/(a*a)
        return "*", parts[0], ("/", ("*", parts[0], parts[0]))
    if kind == "+" and way == 3:  # a + b, nearly
        return "+", parts[0], ("*", parts[1], random.choice([1, 1, -1]))
    return kind, *parts


def of_two(*, positive: bool = True) -> dict[str, Poly]:
    """Two numbers, exponentials of arguments or these."""
    given = {name: algebra.read(tensor("argument", name, "f32", ()), ()) for name in "ab"}
    return {name: apply(EXPONENTIAL, (p,)) for name, p in given.items()} if positive else given


@pytest.mark.parametrize("start", range(4))
def test_what_is_one_is_a_number_and_equal_everywhere(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a look at some numbers would say, too, which is taken before."""
    monkeypatch.setattr(rational_functions, "is_far", lambda _: False)
    random, session = Random(start), Session()
    same = 0
    with session.on():
        for positive in (True, False):
            atoms = of_two(positive=positive)
            for _ in range(120):
                expected = drawn(random, 5)
                found = spelled_otherwise(random, expected)
                one, other = term(found, atoms), term(expected, atoms)
                if one is other or not same_rational_function(one, other, session):
                    continue
                same += 1
                for a, b in product(range(1, 5) if positive else range(-2, 3), repeat=2):
                    numbers = {"a": a, "b": b}
                    assert value(found, numbers) == value(expected, numbers), (found, expected, numbers)
    assert same


ONE_AS = ("/", ("/", "a"))
PARALLEL = "/", ("+", ("/", "a"), ("/", "b"))
SHORT = "*", ("*", "a", "b"), ("/", ("+", "a", "b"))
GAIN = "*", "a", ("/", ("+", "a", "b"))
LEFT = "*", ("+", 1, ("*", -1, GAIN)), "a"
NESTED = "/", ("+", 1, ("/", ("+", 1, "b")))
PAIRS: dict[str, tuple[Tree, Tree, bool]] = {
    "in parallel": (SHORT, PARALLEL, True),
    "what a gain leaves": (SHORT, ("*", LEFT, ("*", "b", ("/", "a"))), False),
    "of another": (GAIN, ("*", LEFT, ("/", "a")), False),
    "of the other": (("*", "b", GAIN), ("*", LEFT, 1), True),
    "the opposite": (("*", -1, SHORT), PARALLEL, False),
    "a factor that divides": (("*", ("/", "a"), NESTED), NESTED, False),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rational_functions, "is_far", lambda _: False)
    found, expected, same = PAIRS[name]
    session = Session()
    with session.on():
        for positive in (True, False):
            atoms = of_two(positive=positive)
            one, other = term(found, atoms), term(expected, atoms)
            assert same_rational_function(one, other, session) == (same and positive)
            assert same_rational_function(other, one, session) == (same and positive)


def test_conditions_are_apart() -> None:
    session = Session()
    with session.on():
        atoms = of_two()
        on = guards.interval(expr.of_var(expr.fresh("i", 4)), 0, 1)
        off = algebra.subtract(ONE, on)
        short, parallel = term(SHORT, atoms), term(PARALLEL, atoms)
        one, other = (algebra.multiply(where, parallel) for where in (on, off))
        assert same_rational_function(algebra.multiply(on, short), one, session)
        assert not same_rational_function(algebra.multiply(on, short), other, session)
        assert same_rational_function(algebra.multiply(on, short), algebra.multiply(on, parallel), session)
        assert not same_rational_function(short, one, session)


def filtered(z: Any, q: Any, r: Any) -> Any:
    """Kalman's filter of series, by gains."""
    mean, variance, means = jnp.zeros(z.shape[1]), jnp.ones(z.shape[1]), []
    for each in z:
        variance = variance + q
        gain = variance / (variance + r)
        mean, variance = mean + gain * (each - mean), (1 - gain) * variance
        means.append(mean)
    return jnp.stack(means)


def filtered_otherwise(wrong: str) -> Callable[..., Any]:
    def run(z: Any, q: Any, r: Any) -> Any:
        mean, variance, means = jnp.zeros(z.shape[1]), jnp.ones(z.shape[1]), []
        for each in z:
            before = variance + q
            total = before + r
            mean = (r * mean + before * each) / total
            variance = before * r / (before if wrong == "another variance" else total)
            means.append(mean if wrong != "twice" else 2 * mean)
        return jnp.stack(means)

    return run


@pytest.mark.parametrize(
    ("wrong", "verdict"), [("", Verdict.PROVED), ("another variance", Verdict.UNKNOWN), ("twice", Verdict.UNKNOWN)]
)
@pytest.mark.usefixtures("prover_alone")
def test_filters_by_gains_and_by_weights(wrong: str, verdict: Verdict) -> None:
    parts = P(None, "x"), P("x"), P("x")
    placed = Placed(AbstractMesh((4,), ("x",)), parts, P(None, "x"), floats((3, 8), (8,), (8,)))
    pair = placed.pair(filtered, filtered_otherwise(wrong))
    report = verify(*pair, refute=False, assume={"q": "positive", "r": "positive"})
    assert report.verdict is verdict
