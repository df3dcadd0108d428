"""Terms at equal distances are one term, and others are none."""

from __future__ import annotations

from hlo_verify.index import expr
from hlo_verify.memory import Memory
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import EXPONENTIAL
from hlo_verify.terms.laws import apply
from hlo_verify.terms.neighbours import joined, spread
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, Tensor, tensor


def made(*sizes: int) -> Tensor:
    return tensor("argument", "x", "f32", sizes)


def test_terms_at_equal_distances() -> None:
    with Memory().on():
        x, place, k = made(16, 4), expr.var("place", "", 3), expr.var("k", "", 4)

        def at(row: expr.Index) -> Poly:
            return apply(EXPONENTIAL, (reduce_sum([k], algebra.read(x, (row, expr.of_var(k)))),))

        found = spread([at(expr.constant(5 * n + 1)) for n in range(3)], place)
        assert found is at(expr.shift(expr.scale(expr.of_var(place), 5), 1))
        assert spread([at(expr.constant(n)) for n in (1, 2, 4)], place) is None


def test_terms_of_other_structure_are_none() -> None:
    """A sum of a row and one of a vector have one structure, but for how many dimensions they read."""
    with Memory().on():
        x, y, k, place = made(4, 4), made(4), expr.var("k", "", 4), expr.var("place", "", 2)
        row = reduce_sum([k], algebra.multiply(*[algebra.read(x, (expr.constant(0), expr.of_var(k)))] * 2))
        vector = reduce_sum([k], algebra.multiply(*[algebra.read(y, (expr.of_var(k),))] * 2))
        i = expr.of_var(expr.var("i", "", 4))
        pairs = [
            (row, vector),
            (algebra.read(x, (i, expr.constant(0))), algebra.read(y, (i,))),
            (apply(EXPONENTIAL, (row,)), apply(EXPONENTIAL, (vector,))),
        ]
        for one, other in pairs:
            assert spread([one, other], place) is None
            assert joined(algebra.add(one, other)) is algebra.add(one, other)
