"""What is written to in place: what is in a turn's slot, read there, is left where the turn has nothing for it."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.equality.effort import Effort
from hlo_verify.index import expr
from hlo_verify.ops.filling import is_left_at_zero, parts_written, written_before
from hlo_verify.session import Session
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import LOG
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ZERO, Poly, tensor

TURNS, SLOTS, LATE = 7, 4, 3


@pytest.mark.parametrize(
    ("off", "late", "equal", "is_seen"),
    [
        (0, LATE, True, True),
        (1, LATE, True, False),  # what is left is what is in the next slot
        (0, LATE - 1, True, False),  # the first slot is written to twice
        (0, LATE, False, False),  # what is in the slot is left in all before it, too
    ],
)
def test_slots_in_place(off: int, late: int, equal: bool, is_seen: bool) -> None:
    """`out.at[slot].set(where(t >= late, x[t], out[slot]))` for `slot = clamp(t - LATE, 0, SLOTS - 1)`."""
    with Session().on() as session:
        t, p, before = expr.fresh("t", TURNS), expr.fresh("p", SLOTS), expr.fresh("b", 1000)
        turn, place = expr.of_var(t), expr.of_var(p)
        x = tensor("argument", "x", "f32", (TURNS,))
        held = tensor("opaque", "held", "f32", (1000, SLOTS + 1))
        slot = expr.clamp(expr.shift(turn, -LATE), 0, SLOTS - 1)

        def out(at: expr.Index) -> Poly:
            return algebra.read(held, (expr.of_var(before), at))

        is_there = guards.interval(expr.subtract(place, slot), 0 if equal else None, 0)
        is_late = guards.interval(turn, late, None)
        left = algebra.multiply(algebra.logical_not(is_late), out(expr.shift(slot, off)))
        new = algebra.add(algebra.multiply(is_late, algebra.read(x, (turn,))), left)
        beside = algebra.multiply(algebra.logical_not(is_there), out(place))
        after = algebra.add(algebra.multiply(is_there, new), beside)
        found = parts_written(t, before, out(place), after, Effort(1000, session=session))
        assert (found is not None) == is_seen
        if found is not None:
            windows = np.array([[_at(found[0], {t: n, p: k}) for k in range(SLOTS)] for n in range(TURNS)])
            assert np.array_equal(windows, np.eye(TURNS, SLOTS, -LATE))


@pytest.mark.parametrize("value", [0, 1])
def test_slots_that_are_cleared_again(value: int) -> None:
    """`[d = 0] out.at[clamp(LATE - t, 0, SLOTS - 1)].set(value)`: the first slot is written to again and again, which
    is the same for 0 alone."""
    with Session().on() as session:
        t, p, d, before = expr.fresh("t", TURNS), expr.fresh("p", SLOTS), expr.fresh("d", 2), expr.fresh("b", 1000)
        turn, place = expr.of_var(t), expr.of_var(p)
        held = tensor("opaque", "held", "f32", (1000, SLOTS))
        slot = expr.clamp(expr.shift(expr.scale(turn, -1), LATE), 0, SLOTS - 1)
        is_there = guards.interval(expr.subtract(place, slot), 0, 0)
        window = algebra.multiply(is_there, guards.interval(expr.of_var(d), 0, 0))
        now = algebra.read(held, (expr.of_var(before), place))
        new = algebra.scale(window, value)
        after = algebra.add(algebra.multiply(algebra.logical_not(window), now), new)
        initial = algebra.add(algebra.of_index(place), algebra.logical_not(ZERO))
        found = written_before(t, before, now, after, initial, Effort(1000, session=session))
        assert (found is None) == (value != 0)
        if found is not None:
            for device in range(2):
                state = np.arange(SLOTS) + 1
                for n in range(TURNS):
                    assert [_at(found, {t: n, p: k, d: device}) for k in range(SLOTS)] == list(state)
                    state[max(LATE - n, 0)] *= device


def _at(p: Poly, point: dict[expr.Var, int]) -> int:
    value = algebra.substitute(p, {v: expr.constant(n) for v, n in point.items()}).constant
    assert value is not None
    return int(value)


def test_what_is_left_at_zero() -> None:
    """A turn that writes 0 to its own slot leaves zeros; one that adds, that multiplies by what may be no number, or
    that takes what another slot or device has, is not seen to."""
    with Session().on():
        t, p, before = expr.fresh("t", SLOTS), expr.fresh("p", SLOTS), expr.fresh("b", 1000)
        turn, place = expr.of_var(t), expr.of_var(p)
        x, held = tensor("argument", "x", "f32", (SLOTS,)), tensor("opaque", "held", "f32", (1000, SLOTS))
        own = algebra.read(held, (expr.of_var(before), place))
        beside = algebra.read(held, (expr.of_var(before), expr.modulo(expr.shift(place, 1), SLOTS)))
        given = algebra.read(x, (place,))
        is_there = guards.interval(expr.subtract(place, turn), 0, 0)
        left = algebra.multiply(algebra.logical_not(is_there), own)
        assert is_left_at_zero(own, left)
        assert is_left_at_zero(own, own)
        for after in (
            algebra.add(left, algebra.multiply(is_there, given)),
            algebra.add(left, algebra.multiply(is_there, beside)),
            algebra.add(own, given),
            algebra.times(own, apply(LOG, (given,))),
            algebra.times(is_there, own),
            beside,
        ):
            assert not is_left_at_zero(own, after)
