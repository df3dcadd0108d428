"""Formulas that are taken apart by cases: conditions on one integer, and how long it may take."""

from __future__ import annotations

import random

import pytest

from hlo_verify.equality.effort import Effort
from hlo_verify.equality.scalars import is_zero
from hlo_verify.session import Session, TimeUpError
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import MAXIMUM, MINIMUM
from hlo_verify.terms.laws import apply
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.term import ZERO, Poly, number, tensor


@pytest.mark.parametrize("seed", range(24))
def test_conditions_on_one_integer_are_decided_together(seed: int) -> None:
    """A sum in two spellings under random intervals of an integer: of `[n >= 5]*a + [n <= 4]`, with one condition
    replaced by 1, sums of these had it again, as often as there was room. With other numbers beside, it is another."""
    way = random.Random(seed)
    intervals: list[tuple[int | None, int | None]] = [(None, 4), (5, way.randrange(5, 8)), (way.randrange(3, 9), None)]
    factors = [way.randrange(1, 4) for _ in range(3)]
    with Session().on() as session:
        n = as_index(algebra.read(tensor("argument", "n", "i32", ()), ()), -(2**31), 2**31 - 1)
        both = tuple(algebra.read(tensor("argument", name, "f32", ()), ()) for name in "xy")
        spelled = [algebra.add(*both), algebra.add(apply(MAXIMUM, both), apply(MINIMUM, both))]

        def stepped(*more: int) -> Poly:
            total = ZERO
            for (lo, hi), factor, k in zip(intervals, factors, more, strict=True):
                of = algebra.add(number(factor + k), algebra.scale(way.choice(spelled), factor))
                where = guards.interval(n, lo, hi)
                total = algebra.add(total, algebra.expanded(where, of))
            return total

        difference = next(
            d for _ in range(50) if (d := algebra.subtract(stepped(0, 0, 0), stepped(0, 0, 0))) is not ZERO
        )
        assert is_zero(difference, Effort(60, session=session))
        effort = Effort(60, session=session)
        assert not is_zero(algebra.subtract(stepped(0, 0, 0), stepped(1, -1, 2)), effort)
        assert effort.left > 0


def test_cases_end_where_time_is_up() -> None:
    """A formula is taken apart by cases that Z3 is asked about: each question looks at the time."""
    with Session.begin(seconds=0).on() as session:
        both = tuple(algebra.read(tensor("argument", name, "f32", ()), ()) for name in "xy")
        difference = algebra.subtract(algebra.add(*both), algebra.add(apply(MAXIMUM, both), apply(MINIMUM, both)))
        with pytest.raises(TimeUpError):
            is_zero(difference, Effort(100, session=session))
