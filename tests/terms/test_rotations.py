"""Sums over parts of a rotation keep their value, and are one sum where they go round the whole ring."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra, guards, rotations
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, Poly, Tensor, tensor
from tests.support.expressions import Space, assert_equal, data, evaluated, many


def window(at: Index, n: int, p: Index) -> Poly:
    """Whether an element of the result is in the two that belong to a place on a ring of n."""
    return guards.interval(expr.subtract(p, expr.scale(expr.modulo(at, n), 2)), 0, 1)


def part(source: Tensor, at: Index, n: int, p: Index) -> Poly:
    """Something of that place and the next, and more in its window of the result."""
    place, after = expr.modulo(at, n), expr.modulo(expr.shift(at, 1), n)
    everywhere = algebra.read(source, (place, after))
    return algebra.add(everywhere, algebra.multiply(window(at, n, p), algebra.read(source, (place, place))))


def looked_up(source: Tensor, ids: Tensor, at: Index, n: int, p: Index) -> Poly:
    """Something that is read at a number that another tensor has of that place."""
    (size,) = ids.shape
    number = algebra.as_index(algebra.read(ids, (expr.modulo(at, size),)), -128, 127)
    return algebra.multiply(
        algebra.read(source, (expr.modulo(number, n), expr.modulo(p, n))), guards.interval(number, 0, 63)
    )


def along_two_axes(source: Tensor, at: Index, n: int) -> Poly:
    """Something of the two digits of that place, as a ring along two mesh axes has: the lower one is a rotation too."""
    low = 2 if n % 2 == 0 else n
    return algebra.read(source, (expr.floor_div(expr.modulo(at, n), low), expr.modulo(at, low)))


@many
@given(draws=st.data())
def test_joining_keeps_the_value(draws: st.DataObject) -> None:
    draw, known = draws.draw, data(draws.draw)
    n = draw(st.sampled_from((2, 3, 4, 6, 8)))
    low, above = draw(st.sampled_from((1, 2))), draw(st.sampled_from((1, 2)))
    where = Space((expr.var("d", "", low * n * above), expr.var("p", 0, 2 * n)))
    device, element = map(expr.of_var, where.variables)
    source, ids = known.make((n, n), "f32"), known.make((n,), "i8")
    of_data, by_digits, in_two = (draw(st.booleans()) for _ in range(3))
    total = algebra.ZERO
    for _ in range(draw(st.integers(1, 4))):
        v = expr.fresh("t", draw(st.integers(1, n)))
        steps = expr.scale(expr.of_var(v), draw(st.integers(-2, 2)))
        at = expr.add(expr.shift(expr.digit_of(device, low, n), draw(st.integers(0, n))), steps)
        turning = [v]
        if in_two:
            turning.append(expr.fresh("t", draw(st.integers(2, 3))))
            at = expr.add(at, expr.scale(expr.of_var(turning[1]), draw(st.integers(-3, 3))))
        each = looked_up(source, ids, at, n, element) if of_data else part(source, at, n, element)
        piece = reduce_sum(turning, along_two_axes(source, at, n) if by_digits else each)
        total = algebra.add(total, algebra.scale(piece, draw(st.sampled_from((1, 1, 1, 2, Fraction(1, 2))))))
    joined = rotations.joined(total)
    assert_equal(evaluated(joined, where, known.evaluator), evaluated(total, where, known.evaluator), (total, joined))


@pytest.mark.parametrize(("n", "starts"), [(4, (0, 1)), (4, (0, 1, 2, 3)), (6, (1, 2, 0)), (6, (5, 0)), (8, (3, 0))])
def test_a_whole_ring_is_one_sum(n: int, starts: tuple[int, ...]) -> None:
    """Several windows start so many places on and move by as many places a turn as there are windows."""
    source = tensor("argument", "x", "f32", (n, n))
    device, element = expr.of_var(expr.var("d", "", n)), expr.of_var(expr.var("p", 0, 2 * n))
    v = expr.fresh("t", n // len(starts))
    covered, total = algebra.ZERO, algebra.ZERO
    for start in starts:
        at = expr.add(expr.shift(device, start), expr.scale(expr.of_var(v), len(starts)))
        total = algebra.add(total, reduce_sum([v], part(source, at, n, element)))
        covered = algebra.add(covered, reduce_sum([v], window(at, n, element)))
    assert device.free <= total.free
    assert rotations.joined(total).free == element.free
    assert rotations.joined(covered) is ONE


@pytest.mark.parametrize("apart", [0, 1, 2])
@pytest.mark.parametrize(("low", "above"), [(2, 4), (4, 4), (3, 2)])
def test_a_ring_along_two_axes_is_one_sum(low: int, above: int, apart: int) -> None:
    """Windows go both ways, two places a turn, whose lower digit comes back after some turns; those that start where
    others do, or one place off (`apart`), leave places out."""
    n = low * above
    source = tensor("argument", "x", "f32", (above, low))
    device = expr.of_var(expr.var("d", "", n))
    total = algebra.ZERO
    for direction, start in ((1, 1 + apart), (1, 2), (-1, 0), (-1, n - 1)):
        v = expr.fresh("t", n // 4) if n % 4 == 0 else expr.fresh("t", 1)
        at = expr.add(expr.shift(device, start), expr.scale(expr.of_var(v), 2 * direction))
        place = expr.modulo(at, n)
        term = algebra.read(source, (expr.floor_div(place, low), expr.modulo(at, low)))
        total = algebra.add(total, reduce_sum([v], term))
    joined = rotations.joined(total)
    is_whole = n % 4 == 0 and apart == 0
    assert bool(joined.free & device.free) is not is_whole
    if is_whole:
        assert joined is reduce_sum(
            list(device.free), algebra.read(source, (expr.digit_of(device, low, above), expr.digit_of(device, 1, low)))
        )


@pytest.mark.parametrize("also", [False, True])
@pytest.mark.parametrize("n", [3, 4, 8])
def test_what_is_looked_up_by_place_is_one_sum(n: int, also: bool) -> None:
    """The place is in the term of an index alone, as in rows of ragged groups, or also beside it."""
    source, ids = tensor("argument", "x", "f32", (16, n)), tensor("argument", "ids", "i8", (n,))
    device, element = expr.of_var(expr.var("d", "", n)), expr.of_var(expr.var("p", 0, n))

    def at(place: Index) -> Poly:
        number = algebra.as_index(algebra.read(ids, (place,)), -128, 127)
        return algebra.read(source, (expr.modulo(number, 16), place if also else element))

    turned = [expr.modulo(expr.shift(device, k), n) for k in range(n)]
    v = expr.fresh("v", n)
    whole = reduce_sum([v], at(expr.of_var(v)))
    assert rotations.joined(algebra.add(*map(at, turned))) is whole
    assert rotations.joined(algebra.add(*map(at, [*turned[1:], turned[1]]))) is not whole


@pytest.mark.parametrize(("n", "low"), [(4, 2), (8, 4), (8, 2), (6, 3), (12, 6)])
@pytest.mark.parametrize("twice", [False, True])
def test_what_each_place_of_two_digits_fills_is_one_function(n: int, low: int, twice: bool) -> None:
    """Half way round, the lower digit of the place is the device's own, and so is all of it at the last one; with
    `twice` one place is filled with what belongs to the next."""
    source = tensor("argument", "x", "f32", (n // low, low, 3 * n, n))
    device, element = expr.of_var(expr.var("d", "", 2 * n)), expr.of_var(expr.var("p", 0, 3 * n))
    own = expr.digit_of(device, 1, n)

    def filled(turns: int, after: int = 0) -> Poly:
        at = expr.shift(own, turns)
        place, there = expr.modulo(at, n), expr.modulo(expr.shift(at, after), n)
        held = guards.interval(expr.subtract(element, expr.scale(place, 3)), 0, 2)
        digits = expr.floor_div(there, low), expr.modulo(expr.shift(at, after), low)
        return algebra.multiply(held, algebra.read(source, (*digits, element, own)))

    total = algebra.add(*(filled(turns, int(twice and turns == 1)) for turns in range(n)))
    place = expr.floor_div(element, 3)
    whole = algebra.read(source, (expr.floor_div(place, low), expr.modulo(place, low), element, own))
    assert (rotations.joined(total) is whole) is not twice


@pytest.mark.parametrize(("n", "taken"), [(2, (1,)), (3, (0, 1)), (4, (0, 1, 3)), (3, (0, 1, 2))])
def test_remainders_that_no_others_complete_are_left(
    n: int, taken: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose own place is a remainder too, as that of an associative scan's elements, is among the others or none is
    looked at: what is made anew of such terms is long."""
    source = tensor("argument", "x", "f32", (n, 7))
    v, w = expr.var("p", 0, n), expr.var("p", 1, 7)
    places = [expr.modulo(expr.shift(expr.add(expr.of_var(v), expr.of_var(w)), k), n) for k in taken]
    total = algebra.add(*(algebra.read(source, (at, expr.of_var(w))) for at in places))
    if len(taken) < n:
        monkeypatch.setattr(rotations, "_parts", lambda _: pytest.fail("a part was made"))
        assert rotations.joined(total) is total
    else:
        assert rotations.joined(total).free == {w}
