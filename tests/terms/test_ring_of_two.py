"""What is at a digit of two values and what is at the other one are a sum over both, if nothing else differs."""

from __future__ import annotations

import pytest

from hlo_verify.index import expr
from hlo_verify.terms import algebra, rotations
from hlo_verify.terms.functions import EXPONENTIAL
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, tensor

D, P = expr.var("d", "", 8), expr.var("p", 0, 4)
PLACE, OWN = expr.digit_of(expr.of_var(D), 4, 2), expr.of_var(P)
OTHER = expr.subtract(expr.constant(1), PLACE)
X, W = tensor("argument", "x", "f32", (16, 64)), tensor("argument", "w", "f32", (64,))


def part(column: expr.Index, row: expr.Index = PLACE) -> Poly:
    """A block of columns of some rows, times weights of the same block."""
    k = expr.fresh("k", 16)
    at = expr.add(expr.scale(column, 16), expr.of_var(k))
    rows = expr.add(expr.scale(row, 4), OWN)
    return reduce_sum([k], algebra.multiply(algebra.read(X, (rows, at)), algebra.read(W, (at,))))


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
