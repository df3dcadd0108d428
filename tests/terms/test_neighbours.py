"""Terms at equal distances are one term, and others are none."""

from __future__ import annotations

from functools import reduce

import pytest

from hlo_verify.index import expr
from hlo_verify.memory import Memory
from hlo_verify.terms import algebra, neighbours
from hlo_verify.terms.functions import EXPONENTIAL, INFINITY, IS_ZERO
from hlo_verify.terms.laws import apply
from hlo_verify.terms.neighbours import IDLE, joined, spread
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, Tensor, number, tensor


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


def test_what_lies_beyond_a_table() -> None:
    """Of four entries 4, 0, 1, 2 the one behind is any number: 2 where the last one is held, 3 where five go round."""
    with Memory().on():
        x, v, i = made(5), expr.var("v", "", 4), expr.var("i", "", 3)
        table = (4, 0, 1, 2)
        entry = expr.lookup(table, expr.of_var(v))
        four = reduce_sum([v], algebra.read(x, (entry,)))
        for n in range(5):
            whole = algebra.add(four, algebra.read(x, (expr.constant(n),)))
            assert joined(whole) is whole
        y = made(7)
        more = reduce_sum([i], algebra.read(y, (expr.lookup(table, expr.shift(expr.of_var(i), 4)),)))
        assert joined(algebra.add(four, more)) is algebra.add(four, more)
        below = algebra.read(x, (expr.lookup(table, expr.constant(-1)),))
        assert joined(algebra.add(four, below)) is algebra.add(four, below)


def test_it_ends_where_joining_makes_a_sum_no_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinite where any element is 1: an infinity under conditions is told apart from what is 0 times it, so that two
    addends become two others."""
    lengths, once = list[int](), neighbours._shorter

    def counted(p: Poly, is_near: bool) -> Poly | None:
        lengths.append(len(p.items))
        return once(p, is_near)

    monkeypatch.setattr(neighbours, "_shorter", counted)
    with Memory().on():
        x = made(8)
        ones = [apply(IS_ZERO, (algebra.add(algebra.read(x, (expr.constant(n),)), number(-1)),)) for n in range(8)]
        none = reduce(algebra.expanded, map(algebra.logical_not, ones))
        p = algebra.expanded(algebra.logical_not(none), apply(INFINITY, ()))
        assert len(p.items) > 100
        joined(p, is_near=True)
    assert len(lengths) > IDLE
    assert all(min(lengths[k : k + IDLE + 1]) < before for k, before in enumerate(lengths[: -IDLE - 1], 1))
