"""The range of a count of what holds, at the places where it is read."""

from __future__ import annotations

import pytest

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra, counts, guards, truths
from hlo_verify.terms.extrema import reduce_boolean
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ZERO, Poly, Read, Tensor, tensor

SIZE = 8
BYTES = -128, 127


def element(source: Tensor, place: Index) -> Index:
    return algebra.as_index(algebra.read(source, (place,)), *BYTES)


def counted(ids: Tensor, last: Index, wanted: Index) -> Poly:
    """How many of the elements so far are a number."""
    v = expr.of_var(expr.fresh("v", SIZE))
    so_far = guards.interval(expr.subtract(v, last), None, 0)
    same = guards.interval(expr.subtract(element(ids, v), wanted), 0, 0)
    return reduce_sum([next(iter(v.free))], algebra.multiply(so_far, same))


@pytest.mark.parametrize(("size", "most"), [(3, 3), (SIZE, SIZE), (2 * SIZE, SIZE)])
def test_places_leave_so_many(size: int, most: int) -> None:
    ids = tensor("argument", "ids", "i8", (SIZE,))
    last, wanted = expr.of_var(expr.var("p", 0, size)), expr.of_var(expr.var("p", 1, 4))
    assert counts.range_of_count(counted(ids, last, wanted).atom) == (0, most)


def test_an_element_is_like_itself() -> None:
    ids, own = tensor("argument", "ids", "i8", (SIZE,)), expr.of_var(expr.var("p", 0, SIZE))
    other = tensor("argument", "others", "i8", (SIZE,))
    assert counts.range_of_count(counted(ids, own, element(ids, own)).atom) == (1, SIZE)
    assert counts.range_of_count(counted(ids, own, element(other, own)).atom) == (0, SIZE)


def test_what_is_counted_is_looked_at_as_it_is_defined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of counts that a kernel's groups are made of are read at many places, each of which made them anew."""
    ids, opened = tensor("argument", "ids", "i8", (SIZE,)), []
    ask = truths._of_truths
    monkeypatch.setattr(truths, "_of_truths", lambda atom, kind: opened.append(atom) or ask(atom, kind))
    for n in range(20):
        place = expr.of_var(expr.var("q", n, SIZE))
        groups = algebra.as_index(counted(ids, place, expr.constant(3)), *BYTES)
        v = expr.of_var(expr.fresh("v", SIZE))
        inside = guards.interval(expr.subtract(groups, v), 2, None)
        outer = reduce_sum([next(iter(v.free))], inside)
        assert isinstance(outer.atom, Read)
        assert counts.range_of_count(outer.atom) == (0, SIZE - 1)
    assert not opened


@pytest.mark.parametrize(("ahead", "is_counted"), [(-1, False), (0, True), (3, True), (4, False)])
@pytest.mark.parametrize("as_integers", [True, False])
def test_any_of_several_holds_where_one_does(ahead: int, is_counted: bool, as_integers: bool) -> None:
    """Of four elements from a place on: those before them and past them say nothing of them."""
    place, v = expr.of_var(expr.var("p", 0, SIZE)), expr.fresh("v", 4)
    ids, flags = tensor("argument", "ids", "i8", (2 * SIZE,)), tensor("argument", "flags", "i1", (2 * SIZE,))

    def holds(e: Index) -> Poly:
        at = expr.shift(e, 1)
        return guards.interval(element(ids, at), 3, 3) if as_integers else algebra.read(flags, (at,))

    on, any_of = holds(expr.shift(place, ahead)), reduce_boolean("or", (v,), holds(expr.add(place, expr.of_var(v))))
    none = algebra.logical_not(any_of)
    assert counts.where_held(on, none) is (ZERO if is_counted else algebra.multiply(on, none))
    assert counts.where_held(algebra.logical_not(on), none) is not ZERO
