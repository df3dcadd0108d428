"""Quotients are brought to one denominator where it is never 0, row by row, and counted once a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from hlo_verify.equality.denominators import Denominators
from hlo_verify.equality.labelling import Labelling
from hlo_verify.equality.networks import same_network
from hlo_verify.equality.summands import Steps, Summand, Unfolding
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
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
