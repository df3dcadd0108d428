"""An operand that is put together keeps its value where it is contracted piece by piece, and has a piece for each part
of it, whatever its parts are made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.ops.contraction import _in_pieces
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import Poly, Tensor, tensor
from tests.support.expressions import Space, assert_equal, data, evaluated, many

WIDE, LONG = 6, 8
place, time, k = expr.var("p", 0, WIDE), expr.var("p", 1, LONG), expr.var("k", "", 5)


def taps(x: Tensor, count: int) -> Poly:
    """What a causal window of so many elements adds up."""
    every = []
    for n in range(count):
        before = expr.shift(expr.of_var(time), -n)
        element = algebra.read(x, (before, expr.of_var(k)))
        every.append(algebra.multiply(guards.interval(before, 0, None), element))
    return algebra.add(*every)


def put_together(parts: list[Poly], border: int) -> Poly:
    on = guards.interval(expr.of_var(place), None, border - 1)
    return algebra.add(algebra.multiply(on, parts[0]), algebra.multiply(algebra.logical_not(on), parts[1]))


@many
@given(draws=st.data())
def test_pieces_keep_the_value(draws: st.DataObject) -> None:
    draw, known = draws.draw, data(draws.draw)
    parts = [taps(known.make((LONG, 5), "f32"), draw(st.integers(1, 4))) for _ in range(2)]
    term = put_together(parts, draw(st.integers(1, WIDE - 1)))
    if draw(st.booleans()):
        late = guards.interval(expr.of_var(time), draw(st.integers(1, LONG - 1)), None)
        term = algebra.multiply(term, late)
    where = Space((place, time, k))
    pieces = _in_pieces(term, frozenset((place, time)), "f32")
    if pieces is not None:
        assert_equal(evaluated(pieces, where, known.evaluator), evaluated(term, where, known.evaluator), (term, pieces))


@pytest.mark.parametrize("counts", [(1, 1), (3, 1), (1, 4), (4, 4)])
def test_taps_of_a_window_are_one_piece(counts: tuple[int, int]) -> None:
    parts = [taps(tensor("argument", name, "f32", (LONG, 5)), count) for name, count in zip("xy", counts, strict=True)]
    pieces = _in_pieces(put_together(parts, 2), frozenset((place, time)), "f32")
    assert pieces is not None
    assert len(pieces.items) == 2


def test_what_lies_side_by_side_are_pieces() -> None:
    """Three parts, of which two are told apart by another place, are three pieces."""
    x, y, z = (algebra.read(tensor("argument", name, "f32", (5,)), (expr.of_var(k),)) for name in "xyz")
    late = guards.interval(expr.of_var(time), 3, None)
    inner = algebra.add(algebra.multiply(late, x), algebra.multiply(algebra.logical_not(late), y))
    pieces = _in_pieces(put_together([inner, z], 2), frozenset((place, time)), "f32")
    assert pieces is not None
    assert len(pieces.items) == 3
