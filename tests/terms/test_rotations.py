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


@many
@given(draws=st.data())
def test_joining_keeps_the_value(draws: st.DataObject) -> None:
    draw, known = draws.draw, data(draws.draw)
    n = draw(st.sampled_from((2, 3, 4, 6, 8)))
    low, above = draw(st.sampled_from((1, 2))), draw(st.sampled_from((1, 2)))
    where = Space((expr.var("d", "", low * n * above), expr.var("p", 0, 2 * n)))
    device, element = map(expr.of_var, where.variables)
    source, ids = known.make((n, n), "f32"), known.make((n,), "i8")
    of_data = draw(st.booleans())
    total = algebra.ZERO
    for _ in range(draw(st.integers(1, 4))):
        v = expr.fresh("t", draw(st.integers(1, n)))
        steps = expr.scale(expr.of_var(v), draw(st.integers(-2, 2)))
        at = expr.add(expr.shift(expr.digit_of(device, low, n), draw(st.integers(0, n))), steps)
        each = looked_up(source, ids, at, n, element) if of_data else part(source, at, n, element)
        piece = reduce_sum([v], each)
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
