"""What a product's own guards make needless, and what they make impossible."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ops.movement import guarded_select
from hlo_verify.terms import algebra, guards, idle
from hlo_verify.terms.functions import MAXIMUM
from hlo_verify.terms.laws import apply
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.term import ZERO, Guard, Poly, number, tensor
from tests.support.evaluate import Evaluator, objects
from tests.support.expressions import Numbered, Space, assert_equal, data, evaluated, index, many, poly, space, truth

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


@pytest.mark.parametrize("size", [8, 9, 10])
def test_a_condition_on_the_high_part_of_a_variable_tells_of_the_variable(size: int) -> None:
    """`[6 <= t]` asks of `t div 3` alone, where t is below 9: what is clamped of t is known all the same."""
    v = expr.var("t", "", size)
    t, where, x = expr.of_var(v), Space((v,)), tensor("argument", "x", "f32", (size,))
    values = Evaluator({x: objects(np.arange(1, size + 1))})
    for first in range(1, size):
        early, late = guards.interval(t, None, first - 1), guards.interval(t, first, None)
        for n in range(size):
            clamped = expr.clamp(expr.shift(expr.scale(t, -1), n), 0, n)
            inside = guards.interval(expr.add(t, clamped), None, n)
            read = algebra.read(x, (expr.clamp(t, 0, n),))
            for side in (early, late):
                for other in (inside, read, algebra.multiply(inside, read)):
                    product = algebra.multiply(side, other)
                    numbers = evaluated(side, where) * evaluated(other, where, values)
                    assert_equal(evaluated(product, where, values), numbers, product)
            assert n >= first or algebra.multiply(late, inside) is ZERO
            assert n < first or algebra.multiply(early, read) is algebra.multiply(early, algebra.read(x, (t,)))


def test_a_function_is_freed_by_its_own_conditions_alone() -> None:
    """Of one function under several conditions, and of one within others: what is known of one is not of another."""
    size = 9
    v = expr.var("t", "", size)
    t, where, x = expr.of_var(v), Space((v,)), tensor("argument", "x", "f32", (size,))
    values = Evaluator({x: objects(np.arange(1, size + 1))})
    plain, clamped = (algebra.read(x, (e,)) for e in (t, expr.clamp(t, 0, 4)))
    one, other = plain, clamped
    for n in range(3):
        one, other = (apply(MAXIMUM, (algebra.scale(p, -1), number(n - 6))) for p in (one, other))
        for hi in (3, 4, 5, 8):
            inside = guards.interval(t, None, hi)
            product = algebra.multiply(inside, other)
            assert (product is algebra.multiply(inside, one)) == (hi <= 4)
            numbers = evaluated(inside, where) * evaluated(other, where, values)
            assert_equal(evaluated(product, where, values), numbers, product)


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


@pytest.mark.parametrize(("size", "length", "step"), [(6, 4, 1), (6, 4, 3), (64, 2, 1), (64, 2, 63)])
def test_windows_filled_turn_by_turn_are_as_many_products(size: int, length: int, step: int) -> None:
    """Windows of equal length round a ring meet nowhere, unless they are one: `size / gcd(size, step)` turns on."""
    d, p = (expr.of_var(expr.var(name, "", n)) for name, n in (("d", size), ("p", size * length)))
    written: Poly = ZERO
    for t in range(12):
        at = expr.modulo(expr.shift(d, -t * step), size)
        value = algebra.read(tensor("argument", f"x{t}", "f32", (size,)), (d,))
        inside = guards.interval(expr.subtract(p, expr.scale(at, length)), 0, length - 1)
        written = guarded_select(inside, value, written)
        assert len(written.items) == min(t + 1, size // math.gcd(size, step))


@pytest.mark.parametrize(("size", "length", "step"), [(6, 4, 1), (6, 4, 5), (64, 2, 1), (64, 2, 63)])
def test_windows_cleared_turn_by_turn_are_as_many_products(size: int, length: int, step: int) -> None:
    """What is cleared is left out of one term; it is whole where no window was cleared, and 0 in one that was."""
    d, p = (expr.of_var(expr.var(name, "", n)) for name, n in (("d", size), ("p", size * length)))
    x = tensor("argument", "x", "f32", (size, size * length))
    left = algebra.read(x, (d, p))
    for t in range(6):
        at = expr.scale(expr.modulo(expr.shift(d, -t * step), size), length)
        here = expr.add(at, expr.of_var(expr.var("w", "", length)))
        (v,) = p.free
        assert algebra.substitute(left, {v: here}) is (algebra.read(x, (d, here)) if t < size else ZERO)
        left = guarded_select(guards.interval(expr.subtract(p, at), 0, length - 1), ZERO, left)
        assert algebra.substitute(left, {v: here}) is ZERO
        assert len(left.items) == t + 2


@many
@given(draws=st.data())
def test_what_is_written_and_cleared_at_places_of_rings_keeps_its_value(draws: st.DataObject) -> None:
    """In windows of any length, which meet or do not: each is what was written last."""
    row, column = expr.var("d", "", draws.draw(st.sampled_from((4, 6, 8)))), expr.var("p", "", 24)
    where, known = Space((row, column)), data(draws.draw)
    written = poly(draws.draw, where, known, 2)
    term, numbers = written.it, written.values
    for _ in range(draws.draw(st.integers(2, 4))):
        n, length = draws.draw(st.sampled_from((2, 3, 4, 6, 8))), draws.draw(st.integers(1, 6))
        at = expr.modulo(expr.shift(expr.of_var(row), draws.draw(st.integers(0, 8))), n)
        start = draws.draw(st.integers(-3, 3))
        offset = expr.shift(expr.subtract(expr.of_var(column), expr.scale(at, draws.draw(st.integers(1, 6)))), start)
        inside = guards.interval(offset, 0, length - 1)
        new = Numbered(ZERO, where.spread(0)) if draws.draw(st.booleans()) else poly(draws.draw, where, known, 1)
        holds = evaluated(inside, where)
        term, numbers = guarded_select(inside, new.it, term), holds * new.values + (1 - holds) * numbers
    assert_equal(evaluated(term, where, known.evaluator), numbers, term)


@many
@given(draws=st.data())
def test_windows_of_any_length_exclude_each_other_where_they_do(draws: st.DataObject) -> None:
    """At multiples of places on rings, of sizes and lengths that are any: 0 only where no two are in both."""
    row, column = expr.var("d", "", draws.draw(st.sampled_from((4, 6, 8)))), expr.var("p", "", 24)
    where, lengths = Space((row, column)), st.integers(1, 6)
    product, numbers = algebra.ONE, where.spread(1)
    for _ in range(draws.draw(st.integers(2, 3))):
        n, every = draws.draw(st.sampled_from((2, 3, 4, 6, 8))), draws.draw(lengths)
        at = expr.modulo(expr.shift(expr.of_var(row), draws.draw(st.integers(0, 8))), n)
        offset = expr.shift(expr.subtract(expr.of_var(column), expr.scale(at, every)), draws.draw(st.integers(-3, 3)))
        inside = guards.interval(offset, 0, draws.draw(lengths) - 1)
        product, numbers = algebra.multiply(product, inside), numbers * evaluated(inside, where)
    assert_equal(evaluated(product, where), numbers, product)


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


@pytest.mark.parametrize("operator", ["clamp", "mod", "div"])
def test_what_one_guard_frees_is_not_taken_from_what_others_do(operator: str) -> None:
    """An answer is remembered for one expression under some guards: not for others on the same form, nor for fewer."""
    i, j = expr.var("i", "", 7), expr.var("j", "", 7)
    there = Space((i, j))
    both = expr.add(expr.of_var(i), expr.of_var(j))
    limited = {"clamp": expr.clamp(both, 0, 7), "mod": expr.modulo(both, 8), "div": expr.floor_div(both, 8)}
    e = expr.add(expr.of_var(i), limited[operator])
    found = set()
    for lo, hi in ((None, 7), (8, None), (None, 20), (8, 10), (0, 7)):
        held = guards.interval(both, lo, hi)
        for beside in (held, algebra.multiply(held, guards.interval(expr.of_var(i), 1, 5))):
            _is_the_same_where(beside, e, there)
        found.add(idle.unlimited(e, {a.form: a for mono, _ in held.items for a, _ in mono if isinstance(a, Guard)}))
        assert idle.unlimited(e, {}) is e
    assert len(found) > 1
