"""What is paired adds up to both terms, whatever these are, and right addends are paired with their blocks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.equality.block_by_block import Pairs, in_blocks
from hlo_verify.index import expr
from hlo_verify.terms import algebra
from hlo_verify.terms.at_constants import at_constants
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, tensor
from tests.support.expressions import Data, Draw, Space, assert_equal, data, evaluated, many, poly, space

SIZE = 8
V = expr.var("v", 0, SIZE)
ROWS = (4, SIZE + 4)
"""How many rows there are of the argument that is read wherever a sum goes, and the first that is."""


def added(body: Poly, start: int, stop: int) -> Poly:
    """What a block adds."""
    inner = expr.fresh("w", stop - start)
    return reduce_sum([inner], algebra.substitute(body, {V: expr.shift(expr.of_var(inner), start)}))


def body_of(draw: Draw, rest: Space, known: Data) -> Poly:
    first, count = ROWS
    row = algebra.read(known.make((count,), "positive"), [expr.shift(expr.of_var(V), first)])
    return algebra.multiply(row, poly(draw, Space((*rest.variables, V)), known).it)


def blocks(draw: Draw) -> list[tuple[int, int]]:
    ends = draw(st.sets(st.integers(1, SIZE - 1), min_size=1, max_size=3))
    return list(pairwise([0, *sorted(ends), SIZE]))


def assert_adds_up(pairs: Pairs, found: Poly, expected: Poly, rest: Space, known: Data) -> None:
    for n, whole in enumerate((found, expected)):
        parts = sum(evaluated(pair[n], rest, known.evaluator) for pair in pairs)
        assert_equal(rest.spread(parts), evaluated(whole, rest, known.evaluator))


@many
@given(draws=st.data())
def test_blocks_are_paired_with_what_they_add(draws: st.DataObject) -> None:
    rest, known = space(draws.draw, 1), data(draws.draw)
    body, cut = body_of(draws.draw, rest, known), blocks(draws.draw)
    whole = at_constants(reduce_sum([V], body))
    parts = algebra.add(*(at_constants(added(body, *block)) for block in cut))
    for found, expected in ((parts, whole), (whole, parts)):
        pairs = in_blocks(found, expected)
        if pairs:
            assert_adds_up(pairs, found, expected, rest, known)
        for one, other in pairs:
            assert_equal(evaluated(one, rest, known.evaluator), evaluated(other, rest, known.evaluator))


@many
@given(draws=st.data())
def test_of_others_too_the_pairs_add_up(draws: st.DataObject) -> None:
    """Blocks that are left out, that overlap, or are another's, more than once, with something beside them."""
    rest, known = space(draws.draw, 1), data(draws.draw)
    body, cut = body_of(draws.draw, rest, known), blocks(draws.draw)
    whole = at_constants(reduce_sum([V], body))
    parts = []
    for start, stop in cut:
        kind = draws.draw(st.sampled_from(("right", "right", "none", "twice", "longer", "beside")))
        longer = min(SIZE, stop + 1) if kind == "longer" else stop
        own = added(body, start, longer)
        parts += {"none": [], "twice": [algebra.scale(own, 2)]}.get(kind, [own])
        parts += [added(poly(draws.draw, Space((*rest.variables, V)), known).it, 0, 2)] if kind == "beside" else []
    found = at_constants(algebra.add(*parts))
    for pairs, one, other in ((in_blocks(found, whole), found, whole), (in_blocks(whole, found), whole, found)):
        if pairs:
            assert_adds_up(pairs, one, other, rest, known)


def test_blocks_of_any_sizes_are_told_by_what_they_read() -> None:
    """A block of one row has no sum, and what no block adds has to be nothing."""
    x, w = tensor("argument", "x", "f32", (SIZE,)), tensor("argument", "w", "f32", ())
    body = algebra.read(x, [expr.of_var(V)])
    body = algebra.multiply(algebra.multiply(body, body), algebra.read(w, []))
    whole = at_constants(reduce_sum([V], body))
    parts = [at_constants(added(body, *block)) for block in ((0, 3), (3, 4), (4, SIZE))]
    beside = algebra.read(w, [])
    pairs = in_blocks(algebra.add(*parts, beside), whole)
    assert [first for first, _ in pairs] == [*parts, beside]
    assert [second for _, second in pairs[:-1]] == parts
    assert pairs[-1][1].items == ()
    assert not in_blocks(algebra.add(*parts[:2]), whole)
    assert not in_blocks(algebra.add(*parts, at_constants(added(body, 2, 5))), whole)
