"""Sums over turns, round by round, against the sums over all turns."""

from __future__ import annotations

from itertools import product

import pytest

from hlo_verify.equality.rounds_of_turns import round_by_round
from hlo_verify.equality.shifted_sums import shifted
from hlo_verify.index import expr
from hlo_verify.session import Session
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, tensor


def number(p: Poly) -> int:
    """A term that is an integer."""
    assert not any(mono for mono, _ in p.items)
    return int(sum(c for _, c in p.items))


@pytest.mark.parametrize(("turns", "size"), [(5, 2), (7, 3), (11, 4), (12, 4), (6, 5)])
@pytest.mark.parametrize(("step", "times"), [(1, 1), (-1, 1), (1, -1), (-1, -1)])
def test_each_turn_is_in_one_round(turns: int, size: int, step: int, times: int) -> None:
    """Every turn is counted once, for every place, whatever is asked of it."""
    with Session().on():
        t, d = expr.fresh("t", turns), expr.fresh("d", 5)
        apart = expr.add(expr.scale(expr.of_var(t), step), expr.shift(expr.scale(expr.of_var(d), times), 1))
        rest = expr.modulo(apart, size)
        asked = expr.add(expr.of_var(t), expr.scale(rest, -2))
        for lo, hi in ((None, 2), (0, 1), (-1, 0)):
            inside = guards.interval(asked, lo, hi)
            found = round_by_round(t, inside)
            assert found is not None
            b, each = found
            for place in map(expr.constant, range(5)):
                there = [algebra.substitute(p, {d: place}) for p in each]
                whole = (algebra.substitute(inside, {d: place, t: expr.constant(n)}) for n in range(turns))
                parts = (algebra.substitute(p, {b: expr.constant(n)}) for p, n in product(there, range(size)))
                assert sum(map(number, whole)) == sum(map(number, parts))


@pytest.mark.parametrize(("most", "is_plain"), [(7, True), (8, False)])
def test_a_round_by_itself(most: int, is_plain: bool) -> None:
    """A sum of `[4 <= t - (t - d) mod 4 <= most] * x[(t - d) mod 4]`: over one round's turns if it asks for one."""
    with Session().on():
        t, d = expr.fresh("t", 12), expr.of_var(expr.fresh("d", 4))
        rest = expr.modulo(expr.subtract(expr.of_var(t), d), 4)
        inside = guards.interval(expr.subtract(expr.of_var(t), rest), 4, most)
        x = tensor("argument", "x", "f32", (4,))
        found = shifted(reduce_sum([t], algebra.multiply(inside, algebra.read(x, (rest,)))), {})
        n = expr.fresh("n", 4)
        assert (found is reduce_sum([n], algebra.read(x, (expr.of_var(n),)))) == is_plain
