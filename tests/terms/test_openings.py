"""Sums of names within names are made in a bounded number of steps, and are the same sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.limits import Limits, in_force
from hlo_verify.session import Session
from hlo_verify.terms import algebra, sums
from hlo_verify.terms.definitions import named
from hlo_verify.terms.term import Poly, Tensor, tensor
from tests.support.expressions import Data, Space, assert_equal, objects

WIDE, ROWS = 2, 4
ROW = expr.var("row", 0, ROWS)


def network(depth: int) -> tuple[Poly, Index, list[Tensor]]:
    """`t = t @ w + t @ z` so many times, each with a name: its sum over rows has 2**depth products."""
    x = tensor("argument", "x", "f32", (ROWS, WIDE))
    column = expr.var("column", 0, WIDE)
    arguments, t = [x], algebra.read(x, [expr.of_var(ROW), expr.of_var(column)])
    for n in range(depth):
        inner = expr.var("inner", n, WIDE)
        there = algebra.substitute(t, {column: expr.of_var(inner)})
        total = algebra.ZERO
        for letter in "wz":
            weight = tensor("argument", f"{letter}{n}", "f32", (WIDE, WIDE))
            arguments.append(weight)
            by = algebra.read(weight, [expr.of_var(inner), expr.of_var(column)])
            total = algebra.add(total, sums.reduce_sum([inner], algebra.multiply(there, by)))
        t = named(total)
    return t, expr.of_var(column), arguments


def opening_at_most(count: int, reached: dict[str, None]) -> Any:
    return in_force(replace(Limits(), opened_names=count), reached)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("most", [1, 2, 3, 5, 300])
def test_the_sum_is_the_same_whatever_is_opened(depth: int, most: int) -> None:
    reached: dict[str, None] = {}
    with Session().on(), opening_at_most(most, reached):
        t, column, arguments = network(depth)
        found = sums.reduce_sum([ROW], t)
        generator = np.random.default_rng(depth)
        known = {a: objects(generator.integers(-3, 4, a.shape)) for a in arguments}
        wanted = known[arguments[0]]
        for w, z in zip(arguments[1::2], arguments[2::2], strict=True):
            wanted = wanted @ known[w] + wanted @ known[z]
        values = Data(known, generator).evaluator.poly(found, Space(tuple(column.free)).grid)
        assert_equal(values, wanted.sum(0), (depth, most))
        assert ("opened_names" in reached) is (most < 2**depth - 1)
        assert sums.reduce_sum([ROW], t) is found


@pytest.mark.parametrize("most", [1, 2, 3, 5, 300])
def test_shards_add_up_to_what_the_whole_does(most: int) -> None:
    """And rows that are not those of the shards do not."""
    with Session().on(), opening_at_most(most, {}):
        t, _, _ = network(4)
        whole = sums.reduce_sum([ROW], t)
        device, own = expr.var("device", 0, 2), expr.var("own", 0, ROWS // 2)
        for stride in (1, 2):
            rows = expr.add(expr.scale(expr.of_var(device), stride), expr.of_var(own))
            shard = sums.reduce_sum([own], algebra.substitute(t, {ROW: rows}))
            assert (sums.reduce_sum([device], shard) is whole) is (stride == ROWS // 2)


def test_names_within_names_have_an_end() -> None:
    """2**30 products, if all names were opened."""
    reached: dict[str, None] = {}
    with Session().on(), opening_at_most(50, reached):
        t, _, _ = network(30)
        found = sums.reduce_sum([ROW], t)
        assert found.weight < 1000 and "opened_names" in reached
