"""Networks of minima, maxima and values in order are the same where they are so for all orders of elements."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import pytest

from hlo_verify.equality.effort import Effort
from hlo_verify.equality.zero_one import same_network
from hlo_verify.index import expr
from hlo_verify.memory import Memory
from hlo_verify.ops.in_order import values
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import INVERSE, MAXIMUM, MINIMUM
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, Tensor, tensor

COUNT = 4
Made = tuple[Poly, Callable[[tuple[int, ...]], int]]


def element(x: Tensor, n: int) -> Poly:
    return algebra.read(x, [expr.constant(n)])


def network(draw: random.Random, x: Tensor, depth: int) -> Made:
    """A random network of some elements, and what it is of numbers."""
    if depth == 0 or draw.random() < 0.2:
        n = draw.randrange(COUNT)
        return element(x, n), lambda given: given[n]
    parts = [network(draw, x, depth - 1) for _ in range(draw.choice((2, 2, 3)))]
    match draw.randrange(4):
        case 0:
            return apply(MAXIMUM, tuple(p for p, _ in parts)), lambda given: max(f(given) for _, f in parts)
        case 1:
            return apply(MINIMUM, tuple(p for p, _ in parts)), lambda given: min(f(given) for _, f in parts)
        case 2:
            p, f = parts[0]
            return algebra.scale(p, -1), lambda given: -f(given)
    k, v = draw.randrange(len(parts)), expr.fresh("v", len(parts))
    at = (guards.interval(expr.of_var(v), n, n) for n in range(len(parts)))
    body = algebra.add(*(algebra.multiply(here, p) for here, (p, _) in zip(at, parts, strict=True)))
    return values(v, body, expr.constant(k), "f32"), lambda given: sorted(f(given) for _, f in parts)[k]


@pytest.mark.parametrize("seed", range(150))
def test_it_is_the_same_for_all_orders(seed: int) -> None:
    with Memory().on():
        draw, x = random.Random(seed), tensor("argument", "x", "f32", (COUNT,))
        (p, f), (q, g) = (network(draw, x, 3) for _ in range(2))
        are_same = all(f(given) == g(given) for given in product((-2, -1, 1, 2), repeat=COUNT))
        found = same_network(p, q, Effort(1000))
        assert are_same or not found


def median(x: Tensor, order: tuple[int, int, int]) -> Poly:
    a, b, c = (element(x, n) for n in order)
    return apply(MAXIMUM, (apply(MINIMUM, (a, b)), apply(MINIMUM, (apply(MAXIMUM, (a, b)), c))))


def test_the_median_of_three() -> None:
    x = tensor("argument", "x", "f32", (3,))
    v = expr.fresh("v", 3)
    middle = values(v, algebra.read(x, [expr.of_var(v)]), expr.constant(1), "f32")
    assert same_network(median(x, (0, 1, 2)), median(x, (2, 0, 1)), Effort(100))
    assert same_network(median(x, (0, 1, 2)), middle, Effort(100))
    assert not same_network(median(x, (0, 1, 1)), middle, Effort(100))
    assert not same_network(median(x, (0, 1, 2)), element(x, 1), Effort(100))


def test_what_may_be_no_number_is_no_element() -> None:
    x = tensor("argument", "x", "f32", (3,))
    v = expr.fresh("v", 3)
    inverse = apply(INVERSE, (element(x, 1),))
    left = apply(MAXIMUM, (apply(MINIMUM, (element(x, 0), inverse)), element(x, 0)))
    middle = values(v, algebra.read(x, [expr.of_var(v)]), expr.constant(1), "f32")
    right = apply(MINIMUM, (apply(MAXIMUM, (element(x, 0), middle)), element(x, 0)))
    assert not same_network(left, element(x, 0), Effort(100))
    assert not same_network(left, right, Effort(100))


def test_more_than_16_elements_are_not_looked_at() -> None:
    x = tensor("argument", "x", "f32", (17,))
    v = expr.fresh("v", 17)
    middle = values(v, algebra.read(x, [expr.of_var(v)]), expr.constant(8), "f32")
    other = values(v, algebra.read(x, [expr.subtract(expr.constant(16), expr.of_var(v))]), expr.constant(8), "f32")
    assert other is middle or not same_network(middle, other, Effort(1000))


@pytest.mark.parametrize("place", [-3, -1, 2, 3, 5])
def test_what_has_no_place_in_order_is_like_nothing_else(place: int) -> None:
    """A read of it stands where a condition around it says that it is not asked for."""
    with Memory().on():
        x, v = tensor("argument", "x", "f32", (COUNT,)), expr.fresh("v", 2)
        there = [guards.interval(expr.of_var(v), n, n) for n in range(2)]

        def ordered(*of: int) -> Poly:
            parts = (algebra.multiply(here, element(x, n)) for here, n in zip(there, of, strict=True))
            return values(v, algebra.add(*parts), expr.constant(place), "f32")

        assert not same_network(ordered(0, 1), ordered(1, 0), Effort(1000))
        assert not same_network(ordered(0, 1), ordered(2, 3), Effort(1000))
        assert not same_network(ordered(0, 1), apply(MAXIMUM, (element(x, 0), element(x, 1))), Effort(1000))
