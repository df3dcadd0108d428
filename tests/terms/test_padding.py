"""Padding is told apart from what is defined, and nothing is lost on the way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.limits import limit_of
from hlo_verify.terms import algebra, guards, padding
from hlo_verify.terms.term import Read
from tests.support.evaluate import objects
from tests.support.expressions import affine, assert_equal, data, evaluated, poly, space


@given(drawn=st.data())
def test_parts_add_up_to_the_term(drawn: st.DataObject) -> None:
    draw = drawn.draw
    known = data(draw)
    where = space(draw)
    inside = poly(draw, where, known, 2)
    form = affine(draw, where)
    bound = draw(st.integers(-2, 12))
    source = padding.padding("x", "f32", (64,))
    known.tensors[source] = objects(known.rng.integers(-8, 9, size=64))
    past = algebra.read(source, (expr.clamp(form.it, 0, 63),))
    on, off = guards.interval(form.it, None, bound), guards.interval(form.it, bound + 1, None)
    term = algebra.add(algebra.multiply(on, inside.it), algebra.multiply(off, past))
    pieces = padding.parts(term)
    if not pieces:
        return
    for n, (guard, piece) in enumerate(pieces):
        assert all(algebra.multiply(guard, other) is algebra.ZERO for other, _ in pieces[:n])
        padded = [
            a for mono, _ in piece.items for a, _ in mono if isinstance(a, Read) and a.tensor.kind == padding.KIND
        ]
        assert not padded or algebra.multiply(guard, off) is guard
    total = algebra.add(*(algebra.multiply(guard, piece) for guard, piece in pieces))
    assert_equal(evaluated(total, where, known.evaluator), evaluated(term, where, known.evaluator), term)


def test_bounds_that_always_hold_inside_are_left_out() -> None:
    x = expr.of_var(expr.var("x", 0, 50))
    past = algebra.read(padding.padding("x", "f32", (50,)), (x,))
    value = algebra.of_index(x)
    term = algebra.add(
        algebra.multiply(guards.interval(x, 1, 30), value), algebra.multiply(guards.interval(x, 31, None), past)
    )
    (_, outside), (_, inside) = padding.parts(term)
    assert outside is past
    assert inside is algebra.multiply(guards.interval(x, 1, None), value)


def test_padding_in_many_places_is_not_taken_apart() -> None:
    """Parts double with every condition that says where padding lies: past a few, a term stays whole."""
    x = [expr.of_var(expr.var("x", n, 50)) for n in range(limit_of("padding_forms") + 1)]
    past = padding.padding("x", "f32", (50,))
    each = [algebra.multiply(guards.interval(e, 31, None), algebra.read(past, (e,))) for e in x]
    assert len(padding.parts(algebra.add(*each[:-1]))) == 2
    assert not padding.parts(algebra.add(*each))
