"""Quotients are brought to one denominator where it is never 0, row by row, and counted once a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from hlo_verify.equality.denominators import Denominators
from hlo_verify.equality.labelling import Labelling
from hlo_verify.equality.networks import same_network
from hlo_verify.equality.summands import Steps, Summand, Unfolding
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, number, tensor
from tests.support.evaluate import Evaluator

ROWS, KEYS = 3, 4
row, other = (expr.var(name, "", ROWS) for name in ("row", "other"))
key, second = (expr.var(name, "", KEYS) for name in ("key", "second"))
SCORES = tensor("argument", "s", "f32", (ROWS, KEYS))
VALUES = tensor("argument", "v", "f32", (KEYS,))
rng = np.random.default_rng(0)
EVALUATOR = Evaluator({SCORES: rng.normal(size=(ROWS, KEYS)), VALUES: rng.normal(size=KEYS)})


def weight(r: Var, k: Var) -> Poly:
    return apply(EXPONENTIAL, (algebra.read(SCORES, [expr.of_var(r), expr.of_var(k)]),))


def value(k: Var) -> Poly:
    return algebra.read(VALUES, [expr.of_var(k)])


def over(bound: Sequence[Var], *factors: Poly) -> Poly:
    whole = factors[0]
    for factor in factors[1:]:
        whole = algebra.expanded(whole, factor)
    return reduce_sum(bound, whole)


def total(r: Var) -> Poly:
    return over([key], weight(r, key))


def inverse(r: Var, power: int = 1) -> Poly:
    return algebra.power_of(apply(INVERSE, (total(r),)), power)


def mean(r: Var, k: Var = key) -> Poly:
    return algebra.expanded(over([k], weight(r, k), value(k)), inverse(r))


ONES = over([second], weight(row, second), inverse(row))
ONES_ELSEWHERE = over([], weight(other, second), inverse(other))
RIGHT = {
    "ones": (ONES, number(1)),
    "a mean less itself": (algebra.expanded(algebra.subtract(ONES, number(1)), mean(row)), number(0)),
    "squares": (over([second], weight(row, second), inverse(row, 3)), inverse(row, 2)),
    "row by row": (
        over([row], inverse(row, 2), over([second], weight(row, second)), over([key], weight(row, key), value(key))),
        over([row, key], weight(row, key), value(key), inverse(row)),
    ),
}
WRONG = {
    "twos": (ONES, number(2)),
    "a mean": (algebra.expanded(ONES, mean(row)), inverse(row)),
    "squares": (over([second], weight(row, second), inverse(row, 3)), inverse(row, 1)),
    "another row's": (over([second], weight(row, second), inverse(other)), number(1)),
    "more rows": (
        over(
            [row, other, second, key], weight(row, key), value(key), inverse(row), weight(other, second), inverse(other)
        ),
        over([row, key], weight(row, key), value(key), inverse(row)),
    ),
}


def numbers(p: Poly) -> np.ndarray:
    grid = np.ogrid[:ROWS, :ROWS, :KEYS]
    return np.asarray(EVALUATOR.poly(p, dict(zip((row, other, second), grid, strict=True))), dtype=float)


@pytest.mark.parametrize("name", RIGHT)
def test_quotients(name: str) -> None:
    found, expected = RIGHT[name]
    assert np.allclose(numbers(found), numbers(expected))
    assert same_network(found, expected, Session())


def test_what_may_be_zero_does_not_cancel() -> None:
    quotient = over([key], value(key), apply(INVERSE, (over([second], value(second)),)))
    assert not same_network(quotient, number(1), Session())


@pytest.mark.parametrize("rows", [(row, other), (other, row)])
def test_rows_are_counted(rows: tuple[Var, Var]) -> None:
    """Of two sums over as many rows the one cancels the other; not so if one is over other rows as well."""
    one, two = rows
    ((in_rows, _),) = over([], value(second), inverse(one)).items
    ((ones, _),) = over([], weight(two, key), inverse(two), inverse(one), value(second)).items
    in_both = Summand((one, two, key), ones, 1)
    steps = Steps(1000)
    denominators = Denominators()
    labelling = Labelling(Unfolding(denominators.read([in_both]), {}, steps), steps)
    assert denominators.cancel([in_both, replace(in_both, times=-1)], labelling)
    assert not denominators.cancel([in_both, Summand((one,), in_rows, -1)], labelling)


@pytest.mark.parametrize("name", WRONG)
def test_quotients_that_differ(name: str) -> None:
    found, expected = WRONG[name]
    assert not np.allclose(numbers(found), numbers(expected))
    assert not same_network(found, expected, Session())


v, w = (expr.var(name, "", ROWS) for name in ("v", "w"))
SQUARE = tensor("argument", "h", "f32", (ROWS, ROWS))
SHIFT = tensor("argument", "x", "f32", (ROWS,))
WHERE = tensor("argument", "n", "i32", (ROWS,))
PLACES = Evaluator({SQUARE: rng.normal(size=(ROWS, ROWS)), SHIFT: rng.normal(size=ROWS), WHERE: np.array([2, 0, 1])})


def shift(r: Var) -> Poly:
    return algebra.read(SHIFT, [expr.of_var(r)])


def exponential(p: Poly) -> Poly:
    return apply(EXPONENTIAL, (p,))


def integer(r: Var) -> Index:
    return expr.clamp(algebra.as_index(algebra.read(WHERE, [expr.of_var(r)]), -(2**31), 2**31 - 1), 0, ROWS - 1)


OF_ROWS: dict[str, Callable[[Var], Poly]] = {
    "an element": lambda r: algebra.add(number(1), algebra.power_of(shift(r), 2)),
    "a function": lambda r: algebra.add(number(1), exponential(shift(r))),
    "a function of a function": lambda r: algebra.add(number(1), exponential(exponential(shift(r)))),
    "two functions": lambda r: algebra.add(exponential(shift(r)), exponential(algebra.scale(shift(r), 2))),
    "a place": lambda r: algebra.add(number(1), algebra.of_index(expr.of_var(r))),
    "an integer there": lambda r: algebra.add(number(1), exponential(algebra.read(SHIFT, [integer(r)]))),
}
"""Denominators that hang on a row, each in another way."""


@pytest.mark.parametrize("name", OF_ROWS)
def test_a_denominator_is_one_number_of_each_row(name: str) -> None:
    """`sum v, w. h[w,v]*u[w]/u[v]` is not `sum v, w. h[v,w]`, though each is multiplied by u[v] and renamed then."""
    u, h = OF_ROWS[name], lambda a, b: algebra.read(SQUARE, [expr.of_var(a), expr.of_var(b)])
    divided = apply(INVERSE, (u(v),))
    quotient = algebra.expanded(algebra.expanded(h(w, v), u(w)), divided)
    once = algebra.expanded(h(w, v), divided)
    twice = algebra.expanded(algebra.expanded(once, u(v)), divided)
    for body, like, equal in ((quotient, h(v, w), False), (quotient, h(w, v), False), (twice, once, True)):
        sums = [float(PLACES.poly(reduce_sum([v, w], p), {})) for p in (body, like)]
        assert np.isclose(*sums) == equal
        steps = Steps(10_000)
        summands = [Summand((v, w), mono, c) for mono, c in algebra.subtract(body, like).items]
        labelling = Labelling(Unfolding(frozenset(), {}, steps), steps)
        assert Denominators().cancel(summands, labelling) == equal
