"""What is at a digit of two values and what is at the other one are a sum over both, if nothing else differs."""

from __future__ import annotations

import pytest

from hlo_verify.index import expr
from hlo_verify.terms import algebra, guards, rotations
from hlo_verify.terms.functions import EXPONENTIAL
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, tensor

D, P = expr.var("d", "", 8), expr.var("p", 0, 4)
PLACE, OWN = expr.digit_of(expr.of_var(D), 4, 2), expr.of_var(P)
OTHER = expr.subtract(expr.constant(1), PLACE)
X, W = tensor("argument", "x", "f32", (16, 64)), tensor("argument", "w", "f32", (64,))
RANKS = tensor("argument", "ranks", "i32", (64,))


def part(column: expr.Index, row: expr.Index = PLACE) -> Poly:
    """A block of columns of some rows, times weights of the same block."""
    k = expr.fresh("k", 16)
    at = expr.add(expr.scale(column, 16), expr.of_var(k))
    rows = expr.add(expr.scale(row, 4), OWN)
    return reduce_sum([k], algebra.multiply(algebra.read(X, (rows, at)), algebra.read(W, (at,))))


def count(column: expr.Index, row: expr.Index = PLACE) -> Poly:
    """How many elements of a block are less than that of a row."""
    k = expr.fresh("k", 16)
    at = expr.add(expr.scale(column, 16), expr.of_var(k)), expr.add(expr.scale(row, 4), OWN)
    looked_up = (algebra.as_index(algebra.read(RANKS, (e,)), -(2**31), 2**31 - 1) for e in at)
    return reduce_sum([k], guards.interval(expr.subtract(*looked_up), None, -1))


def test_both_counts_are_one() -> None:
    """Where the places are, at which integers are looked up, is seen in what is asked of these."""
    side = expr.fresh("s", 2)
    total = rotations.joined(algebra.add(count(PLACE), count(OTHER)))
    assert total is reduce_sum([side], count(expr.of_var(side)))


@pytest.mark.parametrize("wrong", ["own rows of others", "twice", "a block on", "another row"])
def test_other_counts_are_not(wrong: str) -> None:
    other = {
        "own rows of others": count(OTHER, expr.constant(0)),
        "twice": algebra.scale(count(OTHER), 2),
        "a block on": count(expr.shift(OTHER, 1)),
        "another row": count(OTHER, expr.constant(1)),
    }[wrong]
    total = algebra.add(count(PLACE), other)
    assert rotations.joined(total) is total


@pytest.mark.parametrize("form", ["itself", "exponential", "square"])
def test_both_blocks_are_one_sum(form: str) -> None:
    def made(p: Poly) -> Poly:
        return {"itself": p, "exponential": apply(EXPONENTIAL, (p,)), "square": algebra.multiply(p, p)}[form]

    total = rotations.joined(algebra.add(made(part(PLACE)), made(part(OTHER))))
    side = expr.fresh("s", 2)
    assert rotations.joined(algebra.add(part(PLACE), part(OTHER, OTHER))).free == OWN.free
    assert total is reduce_sum([side], made(part(expr.of_var(side))))


@pytest.mark.parametrize("wrong", ["own rows of others", "twice", "a block on", "a ring of four"])
def test_others_are_not(wrong: str) -> None:
    quarter = expr.digit_of(expr.of_var(D), 1, 4)
    other = {
        "own rows of others": part(OTHER, expr.constant(0)),
        "twice": algebra.scale(part(OTHER), 2),
        "a block on": part(expr.shift(OTHER, 1)),
        "a ring of four": part(expr.subtract(expr.constant(3), quarter)),
    }[wrong]
    total = algebra.add(part(PLACE), other)
    assert rotations.joined(total) is total
