"""Exponentials of numbers that conditions choose, minus infinity among them."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from hlo_verify.index import expr
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import EXPONENTIAL, INFINITY, LOG
from hlo_verify.terms.laws import apply
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.term import ONE, ZERO, number, tensor
from tests.support.evaluate import Evaluator

PLACE = expr.var("place", "", 12)
DATA = tensor("argument", "x", "f32", (PLACE.size,))
KEYS = tensor("argument", "t", "i32", (PLACE.size,))
NUMBERS = [-2, 1, 3, 0, 2, -1, 1, 2, -3, 1, 0, 2]


@pytest.mark.parametrize("seed", range(60))
def test_conditions_that_are_about_one_integer(seed: int) -> None:
    """Several intervals of one integer, one in another or beside it: with one of them replaced by 1, sums of these were
    written with it again, without end."""
    way = random.Random(seed)
    key = as_index(algebra.read(KEYS, [expr.of_var(PLACE)]), -20, 20)
    p, choices = ZERO, (algebra.scale(apply(INFINITY, ()), -1), algebra.read(DATA, [expr.of_var(PLACE)]), number(1))
    for of in (choices[0], *way.choices(choices, k=way.randrange(2, 6))):
        lo = way.choice([None, way.randrange(1, 11)])
        hi = way.choice([None, way.randrange(lo or 0, 11)])
        p = algebra.add(p, algebra.expanded(guards.interval(key, lo, hi), of))
    evaluator, where = Evaluator({DATA: NUMBERS, KEYS: range(PLACE.size)}), {PLACE: np.arange(PLACE.size)}
    found = evaluator.poly(apply(EXPONENTIAL, (p,)), where)
    expected = [math.exp(max(-700, x)) for x in evaluator.poly(p, where)]
    np.testing.assert_allclose(found.astype(float), expected, atol=1e-12)


@pytest.mark.parametrize(("count", "multiplied"), [(2, True), (5, True), (9, False), (40, False)])
def test_exponentials_of_many_logarithms_are_not_multiplied_out(count: int, multiplied: bool) -> None:
    elements = [algebra.read(DATA, [expr.shift(expr.of_var(PLACE), k)]) for k in range(count)]
    sums = [algebra.add(ONE, algebra.multiply(p, p)) for p in elements]
    found = apply(EXPONENTIAL, (algebra.add(*(apply(LOG, (p,)) for p in sums)),))
    assert len(found.items) == (2**count if multiplied else 1)
