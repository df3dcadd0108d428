"""Where a loop has been by an iteration, at places that are clamped, against counting, for all small numbers."""

from __future__ import annotations

from itertools import product

import pytest

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ops.clearing import ever_before
from hlo_verify.session import Session
from hlo_verify.terms import algebra, guards

TURNS, PLACES = 6, 4


def _clamped(n: int, lo: int, hi: int) -> int:
    return max(lo, min(n, hi))


@pytest.mark.parametrize(("step", "rows", "sign"), [(1, 1, 1), (-1, 1, 1), (1, 2, 1), (-1, 3, -1)])
def test_by_counting(step: int, rows: int, sign: int) -> None:
    """`p` in the block of `rows` at `rows * clamp(first + step * s, lo, hi)` for an s < t. `first` is a device's."""
    seen = 0
    for first, (lo, hi) in product(range(-4, 9, 2), [(0, 3), (1, 3), (0, 2), (1, 2)]):
        with Session().on():
            t, p, d = expr.fresh("t", TURNS), expr.fresh("p", rows * PLACES), expr.fresh("d", 2)
            at = expr.add(expr.shift(expr.of_var(d), first), expr.scale(expr.of_var(t), step))
            slot = expr.scale(expr.clamp(at, lo, hi), rows)
            form = expr.scale(expr.subtract(expr.of_var(p), slot), sign)
            ends = (0, rows - 1) if sign == 1 else (1 - rows, 0)
            window = guards.interval(form, *ends)
            if "clamp" not in str(window):
                continue
            found = ever_before(t, window)
            assert found is not None
            seen += 1
            for n, k, device in product(range(TURNS), range(rows * PLACES), range(2)):
                here = {t: expr.constant(n), p: expr.constant(k), d: expr.constant(device)}
                been = any(_clamped(first + device + step * s, lo, hi) == k // rows for s in range(n))
                assert algebra.substitute(found, here).constant == been
    assert seen > 10


def test_what_is_not_told() -> None:
    """Places that go two up a turn, that are clamped twice, and windows that are wider or narrower than a block."""
    with Session().on():
        t, p = expr.fresh("t", TURNS), expr.fresh("p", 3 * PLACES)
        turn, place = expr.of_var(t), expr.of_var(p)

        def window(at: Index, lo: int, hi: int) -> bool:
            return ever_before(t, guards.interval(expr.subtract(place, at), lo, hi)) is not None

        once = expr.clamp(expr.shift(turn, -2), 0, 3)
        assert window(once, 0, 0)
        assert window(expr.scale(once, 3), 0, 2)
        assert not window(expr.clamp(expr.shift(expr.scale(turn, 2), -2), 0, 3), 0, 0)
        assert not window(once, 0, 1)
        assert not window(expr.scale(once, 3), 0, 1)
        assert not window(expr.scale(once, 3), 0, 3)
        assert not window(expr.add(once, turn), 0, 0)
        assert not window(expr.modulo(turn, 4), 0, 0)
