"""What index expressions take the values of, within one another."""

from __future__ import annotations

import pytest

from hlo_verify.equality.alignment import frame_of
from hlo_verify.equality.prefixes import by_parts
from hlo_verify.index import expr
from hlo_verify.memory import Memory
from hlo_verify.ops.in_order import in_order
from hlo_verify.ops.permutations import unpermuted
from hlo_verify.terms import algebra
from hlo_verify.terms.places import index_expressions, within_places
from hlo_verify.terms.term import Poly, Tensor, tensor

SIZE, TURNS = 9, 50


@pytest.fixture
def turns() -> Poly:
    """What turns choose by two look-ups each of what the turn before chose: 2 to the 50th paths lead to the first."""
    with Memory().on():
        tables: list[Tensor] = [tensor("input", name, "i32", (SIZE,)) for name in "xy"]
        chosen = algebra.of_index(expr.of_var(expr.fresh("i", SIZE)))
        for _ in range(TURNS):
            place = algebra.as_index(chosen, 0, SIZE - 1)
            chosen = algebra.multiply(*(algebra.read(table, (place,)) for table in tables))
        yield chosen


def test_each_value_is_met_once(turns: Poly) -> None:
    assert len(list(within_places(turns))) == TURNS


def test_each_index_is_met_once(turns: Poly) -> None:
    assert len(list(index_expressions(turns))) == TURNS


def test_sums_and_their_variables_are_looked_for_in_each_once(turns: Poly) -> None:
    bound = (expr.fresh("f", SIZE),)
    assert by_parts(turns) is None
    assert frame_of(turns, bound).following == {bound[0]: []}


def test_orders_are_looked_for_in_each_once(turns: Poly) -> None:
    assert in_order(turns) is turns
    bound = [expr.fresh("f", SIZE)]
    assert unpermuted(bound, turns) == (bound, turns)
