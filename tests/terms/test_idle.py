"""What a product's own guards make needless, and what they make impossible."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ops.movement import guarded_select
from hlo_verify.terms import algebra, guards, idle
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.term import ZERO, Guard, Poly, tensor
from tests.support.expressions import Space, assert_equal, data, evaluated, index, many, poly, space, truth

BOUND = st.none() | st.integers(-12, 24)


@many
@given(draws=st.data())
def test_a_product_of_guards_is_their_conjunction(draws: st.DataObject) -> None:
    where = space(draws.draw, 2)
    product, numbers = algebra.ONE, where.spread(1)
    for _ in range(3):
        e, lo, hi = index(draws.draw, where), draws.draw(BOUND), draws.draw(BOUND)
        guard = guards.interval(e.it, lo, hi)
        product, numbers = algebra.multiply(product, guard), numbers * evaluated(guard, where)
    assert_equal(evaluated(product, where), numbers, product)


@many
@given(draws=st.data())
def test_a_choice_is_what_it_chooses(draws: st.DataObject) -> None:
    where, known = space(draws.draw, 2), data(draws.draw)
    inside, a, b = truth(draws.draw, where, known), *(poly(draws.draw, where, known, 2) for _ in range(2))
    inner = guards.interval(index(draws.draw, where).it, 0, draws.draw(BOUND))
    b_outside = algebra.multiply(inner, b.it)
    chosen = guarded_select(inside.it, a.it, b_outside)
    expected = inside.values * a.values + (1 - inside.values) * evaluated(b_outside, where, known.evaluator)
    assert_equal(evaluated(chosen, where, known.evaluator), expected, chosen)


def _places(order: tuple[int, ...], d: Index) -> list[Index]:
    """Where each device writes in each turn of a ring, whose devices stand in that order."""
    n = len(order)
    return [expr.modulo(expr.shift(expr.lookup(order, d), n - t), n) for t in range(n)]


def test_places_that_never_meet_exclude_each_other() -> None:
    device, slot = expr.var("d", "", 6), expr.var("p", "", 6)
    d, p = expr.of_var(device), expr.of_var(slot)
    first, *others = (guards.interval(expr.subtract(p, place), 0, 0) for place in _places((5, 1, 2, 3, 0, 4), d))
    for other in others:
        assert not evaluated(algebra.multiply(first, other), Space((device, slot))).any()
        assert algebra.multiply(first, other) is ZERO


def test_slots_filled_turn_by_turn_are_as_many_products() -> None:
    """What was written is left alone by every later turn, in whatever order the devices stand: no product doubles."""
    device, slot = expr.var("d", "", 6), expr.var("p", "", 6)
    d, p = expr.of_var(device), expr.of_var(slot)
    written: Poly = ZERO
    for n, place in enumerate(_places((5, 1, 2, 3, 0, 4), d)):
        value = algebra.read(tensor("argument", f"x{n}", "f32", (6,)), (d,))
        written = guarded_select(guards.interval(expr.subtract(p, place), 0, 0), value, written)
        assert len(written.items) == n + 1


@many
@given(draws=st.data())
def test_a_condition_on_a_part_of_a_sum_follows_from_that_on_the_sum(draws: st.DataObject) -> None:
    """With multiples of either, of any sign: what remains is true where both were, and nowhere else."""
    row, column = expr.var("d", "", 5), expr.var("p", "", 7)
    whole, factors = Space((row, column)), st.integers(-16, 16).filter(bool)
    d, p = expr.of_var(row), expr.of_var(column)
    mixed = expr.add(expr.scale(d, draws.draw(factors)), expr.scale(p, draws.draw(factors)))
    first = guards.interval(expr.scale(d, draws.draw(factors)), draws.draw(BOUND), draws.draw(BOUND))
    second = guards.interval(mixed, draws.draw(BOUND), draws.draw(BOUND))
    product = algebra.multiply(first, second)
    assert_equal(evaluated(product, whole), evaluated(first, whole) * evaluated(second, whole), product)


def test_a_halo_that_reaches_past_the_first_shard_is_what_it_reads() -> None:
    """[1 <= d] [1 <= 16*d - p] x + [16*d - p <= 0] x, of 576 columns on four devices of which 512 are cut, is x."""
    d, p = (expr.of_var(expr.var(name, "", size)) for name, size in (("d", 4), ("p", 128)))
    across = expr.subtract(expr.scale(d, 16), p)
    left = guards.interval(across, 1, None)
    assert algebra.multiply(guards.interval(d, 1, None), left) is left
    x = algebra.read(tensor("argument", "x", "f32", (512,)), [expr.add(expr.scale(d, 128), p)])
    halo = algebra.multiply(algebra.multiply(guards.interval(d, 1, None), left), x)
    assert algebra.add(halo, algebra.multiply(guards.interval(across, None, 0), x)) is x


WIDE = 2**31
"""Nothing here wraps in a type of so many values."""


@pytest.mark.parametrize("size", [4, 6, 8])
def test_a_number_that_is_told_by_cases_is_freed_of_them_once(size: int) -> None:
    """Where a case is known to hold, what is left may be told by cases anew, with the known one among them."""
    d = expr.of_var(expr.var("d", "", size))
    number, high = algebra.of_index(d), expr.digit_of(d, size // 2, 2)
    cases = [guards.interval(high, 1, None), guards.interval(d, 0, 0), guards.interval(d, 1, 1)]
    for known in (high, d):
        for k, case in enumerate(cases):
            others = algebra.add(*(algebra.scale(algebra.multiply(number, c), 2) for c in cases[:k] + cases[k + 1 :]))
            told = as_index(algebra.add(algebra.multiply(number, case), others), -WIDE, WIDE - 1)
            for lo, hi in ((0, 0), (1, 1), (1, None), (0, size // 2 - 1)):
                held = guards.interval(known, lo, hi)
                _is_the_same_where(held, told, Space(tuple(d.free)))


@many
@given(draws=st.data())
def test_conditions_that_hold_free_a_number_that_is_told_by_cases(draws: st.DataObject) -> None:
    where = space(draws.draw, 2)
    told: Poly = ZERO
    for _ in range(draws.draw(st.integers(1, 4))):
        case = guards.interval(index(draws.draw, where, 1).it, draws.draw(BOUND), draws.draw(BOUND))
        number = algebra.of_index(index(draws.draw, where, 1).it)
        told = algebra.add(told, algebra.multiply(number, case))
    held = guards.interval(index(draws.draw, where, 1).it, draws.draw(BOUND), draws.draw(BOUND))
    _is_the_same_where(held, as_index(told, -WIDE, WIDE - 1), where)


def _is_the_same_where(held: Poly, e: Index, where: Space) -> None:
    forms = {a.form: a for mono, _ in held.items for a, _ in mono if isinstance(a, Guard)}
    holds = evaluated(held, where) == 1
    for old in (e, expr.clamp(e, -3, 3)):
        new = idle.unlimited(old, forms)
        assert (evaluated(new, where) == evaluated(old, where))[holds].all(), (held, old, new)
