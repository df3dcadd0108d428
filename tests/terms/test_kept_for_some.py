"""What is said to be positive for some arguments is so at each place; what is nothing at one is found as before."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hlo_verify.index import expr
from hlo_verify.memory import Memory
from hlo_verify.terms import algebra, certain_poles, guards
from hlo_verify.terms.definitions import define
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.functions import EXPONENTIAL, INFINITY, INVERSE, IS_ZERO, SQRT
from hlo_verify.terms.kept_for_some import is_positive_for_some
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, Poly, Read, Tensor, number, tensor
from tests.support.evaluate import Evaluator

SIZE = 4
INT = (-(2**31), 2**31 - 1)
SEEDS = range(30)


class Drawn:
    """A term in `i` and `j` that is never negative: sums of exponentials under conditions on places and integers."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.i, self.j = expr.var("i", 0, SIZE), expr.var("j", 1, SIZE)
        self.x = tensor("argument", "x", "f32", (SIZE,))
        self.integers = [tensor("argument", name, "i32", (SIZE,)) for name in "tu"]
        self.count = 2
        self.outer = [expr.of_var(self.i), expr.of_var(self.j)]
        self.term = self.total(2)

    def condition(self, places: list[expr.Index]) -> Poly:
        lo = self.draw.randint(-3, 4)
        ends = self.draw.choice([(lo, None), (None, lo), (lo, lo + self.draw.randint(0, 3))])
        if self.draw.random() < 0.4:
            element = algebra.read(self.draw.choice(self.integers), [self.draw.choice(places)])
            return guards.interval(algebra.as_index(element, *INT), *ends)
        form = self.draw.choice(places)
        if self.draw.random() < 0.6:
            form = expr.subtract(form, self.draw.choice(places))
        return guards.interval(form, *ends)

    def total(self, depth: int, places: list[expr.Index] | None = None) -> Poly:
        places = places or self.outer
        parts = [self.product(depth, places) for _ in range(self.draw.choice([1, 1, 2, 3]))]
        whole = algebra.add(*parts)
        return define("term", (), (whole,)) if self.draw.random() < 0.3 and whole.constant is None else whole

    def product(self, depth: int, places: list[expr.Index]) -> Poly:
        result = number(self.draw.choice([1, 1, 3]))
        for _ in range(self.draw.choice([0, 1, 1, 2])):
            result = algebra.multiply(result, self.condition(places))
        if depth and self.draw.random() < 0.7:
            self.count += 1
            bound = expr.var("k", self.count, SIZE)
            inner = self.total(depth - 1, [*places, expr.of_var(bound), expr.of_var(bound)])
            result = algebra.multiply(result, reduce_sum([bound], inner))
        elif self.draw.random() < 0.8:
            result = algebra.multiply(result, apply(EXPONENTIAL, (algebra.read(self.x, [self.draw.choice(places)]),)))
        return apply(SQRT, (result,)) if self.draw.random() < 0.2 else result

    def positive_at_all(self) -> bool:
        """Whether at each place it is positive for some integers, as many as there are in both arguments."""
        env = {self.i: np.arange(SIZE)[:, None], self.j: np.arange(SIZE)[None, :]}
        found = np.zeros((SIZE, SIZE), bool)
        for numbers in range(-4, 9):
            for others in range(-4, 9):
                values: dict[Tensor, object] = {self.x: np.zeros(SIZE)}
                values |= dict(zip(self.integers, (np.full(SIZE, n) for n in (numbers, others)), strict=True))
                found |= np.broadcast_to(Evaluator(values).poly(self.term, env) > 0, found.shape).astype(bool)
            if found.all():
                return True
        return bool(found.all())


def test_what_is_positive_for_some_is_so_at_each_place() -> None:
    said = 0
    for seed in SEEDS:
        drawn = Drawn(seed)
        if is_positive_for_some(drawn.term):
            said += 1
            assert drawn.positive_at_all(), f"{seed}: {drawn.term}"
    assert said > len(SEEDS) // 6


def answers(seed: int) -> tuple[bool, bool]:
    """Whether it is divided by at a place at which it is nothing, itself and as the elements of a definition."""
    with Memory().on():
        drawn = Drawn(seed)
        inverse = apply(INVERSE, (drawn.term,))
        share = algebra.multiply(inverse, apply(EXPONENTIAL, (algebra.read(drawn.x, [drawn.outer[0]]),)))
        read = define("term", (), (share,)).atom if share.constant is None else None
        return bool(inverse.doubt & INFINITE), isinstance(read, Read) and certain_poles.has_some(read)


def test_places_are_told_as_where_each_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [answers(seed) for seed in SEEDS]
    monkeypatch.setattr(certain_poles, "is_positive_for_some", lambda _: False)
    monkeypatch.setattr(certain_poles, "_numbers_where", lambda _: None)
    assert found == [answers(seed) for seed in SEEDS]
    assert 3 < sum(own for own, _ in found) < len(SEEDS) - 3


T = tensor("argument", "t", "i32", (SIZE,))
X = tensor("argument", "x", "f32", (SIZE,))
PLACE, BOUND = expr.var("i", 0, SIZE), expr.var("k", 9, SIZE)


def row(lo: int | None, hi: int | None, *asked: tuple[int, int]) -> Poly:
    """sum k. [lo <= i - k <= hi] * [t[k] is in each range] * exp(x[k]), for each of its places."""
    i, k = expr.of_var(PLACE), expr.of_var(BOUND)
    body = guards.interval(expr.subtract(i, k), lo, hi)
    for least, greatest in asked:
        element = algebra.as_index(algebra.read(T, [k]), *INT)
        body = algebra.multiply(body, guards.interval(element, least, greatest))
    return define("sum", (BOUND,), (algebra.multiply(body, apply(EXPONENTIAL, (algebra.read(X, [k]),))),))


@pytest.mark.parametrize(("lo", "hi"), [(1, None), (None, -1), (2, 3), (0, None), (-4, 4), (None, 5), (-1, 0)])
@pytest.mark.parametrize("shift", [0, 1, 3])
def test_elements_of_a_definition_at_places(lo: int | None, hi: int | None, shift: int) -> None:
    """Of `1 / sum k. [lo <= i - k <= hi]*[t[k] is in a range]*exp(x[k])` at i + shift, for a definition made once."""
    whole = define("term", (), (apply(INVERSE, (algebra.add(row(lo, hi, (2, 5)), row(lo, hi, (2, 5), (3, 7))),)),))
    assert isinstance(whole.atom, Read)
    place = expr.shift(expr.of_var(expr.var("p", 10, SIZE)), shift)
    rows = range(shift, shift + SIZE)
    held = [any((lo is None or lo <= i - k) and (hi is None or i - k <= hi) for k in range(SIZE)) for i in rows]
    read = algebra.read(whole.atom.tensor, [place]).atom
    assert isinstance(read, Read) and certain_poles.has_some(read) == (not all(held))


def test_conditions_that_no_argument_fulfils() -> None:
    assert is_positive_for_some(row(0, None, (2, 5)))
    assert not is_positive_for_some(row(1, None, (2, 5)))  # row 0 is empty
    assert not is_positive_for_some(algebra.multiply(row(0, None, (2, 5)), row(0, None, (6, 7))))
    assert not is_positive_for_some(algebra.subtract(row(0, None, (2, 5)), ONE))
    assert not is_positive_for_some(algebra.add(row(1, None, (2, 5)), row(1, None)))
    infinite = algebra.multiply(apply(INFINITY, ()), algebra.add(ONE, algebra.read(X, [expr.of_var(PLACE)])))
    assert not is_positive_for_some(apply(EXPONENTIAL, (algebra.scale(infinite, -1),)))


def counted(lo: int, elements: str) -> Poly:
    """How many of the first elements, up to a place, are the greatest of them, which others are a number in place of:
    of a quotient, which is a number for some arguments, or of another one."""
    i, k, divisor = expr.of_var(PLACE), expr.of_var(BOUND), tensor("argument", "y", "f32", (SIZE,))
    here = guards.interval(expr.subtract(i, k), lo, None)

    def quotient(source: Tensor) -> Poly:
        return algebra.multiply(algebra.read(source, [k]), apply(INVERSE, (algebra.read(divisor, [k]),)))

    masked = algebra.select(here, quotient(X), number(-1000))
    best = reduce_extremum("max", [BOUND], masked)
    own = quotient(X if elements == "its own" else tensor("argument", "z", "f32", (SIZE,)))
    indicator = apply(IS_ZERO, (algebra.subtract(best, own),))
    below = apply(IS_ZERO, (algebra.subtract(best, number(-1000)),))
    others = algebra.multiply(algebra.subtract(ONE, here), below)
    return define("term", (), (reduce_sum([BOUND], algebra.add(algebra.multiply(here, indicator), others)),))


@pytest.mark.parametrize("lo", [0, 1])
@pytest.mark.parametrize("elements", ["its own", "others"])
def test_one_is_the_greatest_of_masked_numbers(lo: int, elements: str) -> None:
    """Where nothing is left, the number in its place is the greatest; of other elements none may be."""
    count = counted(lo, elements)
    assert is_positive_for_some(count) is (elements == "its own")
