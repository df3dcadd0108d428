"""What is written to in place: what is in a turn's slot, read there, is left where the turn has nothing for it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from hlo_verify.equality.effort import Effort
from hlo_verify.index import expr
from hlo_verify.ops.filling import is_left_at_zero, parts_written, written_before, written_late
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


@pytest.mark.parametrize("slot_in_turn", [(1, 1), (2, 2), (0, 1), (1, 0)])
@pytest.mark.parametrize("beside_in_turn", [(1, 1), (0, 1)])
def test_slots_of_one_device(slot_in_turn: tuple[int, int], beside_in_turn: tuple[int, int]) -> None:
    """`out.at[slot].set(where(d == 0, t + 10, out[slot]))` for `slot = clamp(t - first, low, SLOTS - 1)`, against what
    turns leave one by one. What is kept, and what is beside, is so many times what it was in the first turn and in
    others: where that is not once, there is another form or none."""
    seen = 0
    is_kept = slot_in_turn == beside_in_turn == (1, 1)
    for first, low, late, writers in product(range(5), range(2), (SLOTS - 1, SLOTS, TURNS), (1, 2)):
        with Session().on() as session:
            t, p, d, before = expr.fresh("t", TURNS), expr.fresh("p", SLOTS), expr.fresh("d", 2), expr.fresh("b", 1000)
            turn, place = expr.of_var(t), expr.of_var(p)
            now = algebra.read(tensor("opaque", "held", "f32", (1000, SLOTS)), (expr.of_var(before), place))
            at = expr.subtract(place, expr.clamp(expr.shift(turn, -first), low, SLOTS - 1))
            is_first = guards.interval(turn, 0, 0)

            def times(factors: tuple[int, int], value: Poly, is_first: Poly = is_first) -> Poly:
                return algebra.select(is_first, *(algebra.scale(value, n) for n in factors))

            writes, is_there = guards.interval(expr.of_var(d), 0, writers - 1), guards.interval(at, 0, 0)
            new = algebra.select(writes, algebra.of_index(expr.shift(turn, 10)), times(slot_in_turn, now))
            after = algebra.select(is_there, new, times(beside_in_turn, now))
            initial = algebra.of_index(expr.shift(place, 1))
            found = written_late(t, late, before, now, after, initial, Effort(1000, session=session))
            if found is None:
                continue
            seen += 1
            for device in range(2):
                state = np.arange(SLOTS) + 1
                for n in range(TURNS):
                    slot = max(low, min(n - first, SLOTS - 1))
                    new_value = n + 10 if device < writers else state[slot] * slot_in_turn[n > 0]
                    state *= beside_in_turn[n > 0]
                    state[slot] = new_value
                assert [_at(found, {p: k, d: device}) for k in range(SLOTS)] == list(state)
    assert not is_kept or seen >= 6


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
