"""Terms for the ranges of what they read definitions at have the numbers that they had, and one form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.memory import Memory
from hlo_verify.terms import algebra, extrema, guards, sums
from hlo_verify.terms.definitions import named
from hlo_verify.terms.functions import EXPONENTIAL, MAXIMUM, real
from hlo_verify.terms.in_ranges import in_ranges, told
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Guard, Poly, atoms, tensor
from tests.support.expressions import (
    Array,
    Data,
    Draw,
    Numbered,
    Space,
    assert_equal,
    data,
    index,
    many,
    poly,
    read,
    truth,
)

SIZES = (2, 3, 4, 6)


def masked(draw: Draw, where: Space, known: Data) -> Numbered:
    """A choice by a condition, or what a table says, of two terms."""
    kept, other = poly(draw, where, known, 1), poly(draw, where, known, 0)
    if draw(st.booleans()):
        condition = truth(draw, where, known)
    else:
        entries = tuple(draw(st.lists(st.integers(0, 1), min_size=8, max_size=8)))
        place = index(draw, where, 1)
        entry = expr.lookup(entries, expr.modulo(place.it, 8))
        values = np.asarray(entries, dtype=object)[(place.values % 8).astype(int)]
        condition = Numbered(algebra.of_index(entry), values)
    chosen = np.where(condition.values.astype(bool), kept.values, other.values)
    return Numbered(algebra.select(condition.it, kept.it, other.it), chosen)


def reduced(draw: Draw, free: Space, known: Data, inner: Numbered | None = None) -> Numbered:
    """A sum or an extremum of a masked term, and of what is given, over some variables."""
    bound = [expr.var("y", (id(free), n), draw(st.sampled_from(SIZES))) for n in range(draw(st.integers(1, 2)))]
    every = Space((*free.variables, *bound))
    p = masked(draw, every, known)
    if inner is not None:
        factor = read(draw, every, known)
        values = inner.values.reshape(*free.shape, *[1] * len(bound)) * factor.values
        p = Numbered(algebra.add(p.it, algebra.multiply(inner.it, factor.it)), p.values + values)
    axes = tuple(range(len(free.variables), len(every.variables)))
    kind = draw(st.sampled_from(("sum", "sum", "max", "min", "term")))
    if kind == "sum":
        return Numbered(sums.reduce_sum(bound, p.it), np.asarray(np.add.reduce(p.values, axis=axes), dtype=object))
    if kind == "term":
        there = {v: expr.constant(v.size - 1) for v in bound}
        return Numbered(named(algebra.substitute(p.it, there)), p.values[(..., *[-1] * len(bound))])
    reducer = {"max": np.maximum, "min": np.minimum}[kind]
    values = np.asarray(reducer.reduce(p.values, axis=axes), dtype=object)
    return Numbered(extrema.reduce_extremum(kind, bound, p.it), values)


def moved(draw: Draw, outer: Space, p: Numbered) -> tuple[Space, Numbered]:
    """A term where its variables are parts of their ranges, or places in them."""
    mapping: dict[Var, Index] = {}
    kept: list[Var] = []
    where: list[Any] = []
    for v in outer.variables:
        start = draw(st.integers(0, v.size - 1))
        part = expr.var("z", v.key, draw(st.integers(1, v.size - start)))
        mapping[v] = expr.shift(expr.of_var(part), start)
        where.append(range(start, start + part.size))
        kept.append(part)
    return Space(tuple(kept)), Numbered(algebra.substitute(p.it, mapping), p.values[np.ix_(*where)])


@many
@given(draws=st.data())
def test_numbers_stay(draws: st.DataObject) -> None:
    with Memory().on():
        known = data(draws.draw)
        free = Space(tuple(expr.var("x", n, draws.draw(st.sampled_from(SIZES))) for n in range(2)))
        p = reduced(draws.draw, free, known)
        for _ in range(draws.draw(st.integers(0, 2))):
            p = reduced(draws.draw, free, known, p)
        there, part = moved(draws.draw, free, p)
        for where, term in ((free, p), (there, part)):
            found = known.evaluator.poly(in_ranges(term.it), where.grid)
            assert_equal(where.spread(found), where.spread(term.values), term.it)


@many
@given(draws=st.data())
def test_what_tables_say(draws: st.DataObject) -> None:
    """A table of two places, near a bound of one that the other moves, is that condition, or stays what it is."""
    with Memory().on():
        rows, columns = draws.draw(st.sampled_from(SIZES)), draws.draw(st.sampled_from(SIZES))
        c, start = draws.draw(st.sampled_from((-1, 0, 1, 2))), draws.draw(st.integers(-2, 6))
        values: Array = (np.arange(columns)[None] < (c * np.arange(rows) + start)[:, None]).astype(int)
        if draws.draw(st.booleans()):
            values = 1 - values
        if draws.draw(st.booleans()):
            values[draws.draw(st.integers(0, rows - 1)), draws.draw(st.integers(0, columns - 1))] ^= 1
        where = Space((expr.var("x", 0, rows), expr.var("x", 1, columns)))
        place = expr.add(expr.scale(expr.of_var(where.variables[0]), columns), expr.of_var(where.variables[1]))
        entry = algebra.of_index(expr.lookup(tuple(int(n) for n in values.reshape(-1)), place))
        known = data(draws.draw)
        kept = read(draws.draw, where, known)
        term = algebra.multiply(entry, kept.it)
        found = known.evaluator.poly(told(term), where.grid)
        assert_equal(where.spread(found), values.astype(object) * kept.values, term)


@pytest.mark.parametrize("is_strict", [False, True])
@pytest.mark.parametrize("offset", [0, 4, 12])
def test_a_sum_up_to_a_place(offset: int, is_strict: bool) -> None:
    """Of 16 elements those before a block are summed without a condition, and those behind it not at all."""
    with Memory().on():
        x, p, s, k = (
            tensor("argument", "x", "f32", (16,)),
            expr.var("p", 0, 4),
            expr.var("s", "", 16),
            expr.fresh("f", 16),
        )
        reached = expr.subtract(expr.of_var(s), expr.of_var(k))
        body = algebra.multiply(guards.interval(reached, int(is_strict), None), algebra.read(x, [expr.of_var(k)]))
        whole = sums.reduce_sum([k], body)
        there = {s: expr.shift(expr.of_var(p), offset)}
        before, own = expr.fresh("f", max(offset, 1)), expr.fresh("f", 4)
        apart = algebra.multiply(
            guards.interval(expr.subtract(expr.of_var(p), expr.of_var(own)), int(is_strict), None),
            algebra.read(x, [expr.shift(expr.of_var(own), offset)]),
        )
        parts = [sums.reduce_sum([own], apart)]
        if offset:
            parts.append(sums.reduce_sum([before], algebra.read(x, [expr.of_var(before)])))
        found, expected = in_ranges(algebra.substitute(whole, there)), in_ranges(algebra.add(*parts))
        assert found is expected
        other = algebra.substitute(whole, {s: expr.shift(expr.of_var(p), (offset + 4) % 16)})
        assert in_ranges(other) is not expected


def test_choices_that_a_place_decides() -> None:
    """A maximum for the first half of rows, and another one for the second, is one of them in each."""
    with Memory().on():
        x, row, p = tensor("argument", "x", "f32", (8, 2)), expr.var("s", "", 8), expr.var("p", 0, 4)

        def at(n: int) -> Poly:
            return algebra.read(x, [expr.of_var(row), expr.constant(n)])

        first = guards.interval(expr.of_var(row), None, 3)
        chosen = algebra.select(first, apply(MAXIMUM, (at(0), at(1))), at(0))
        weight = apply(EXPONENTIAL, (algebra.subtract(at(0), named(chosen)),))
        early = in_ranges(algebra.substitute(weight, {row: expr.of_var(p)}))
        late = in_ranges(algebra.substitute(weight, {row: expr.shift(expr.of_var(p), 4)}))
        assert late is algebra.ONE
        assert early is not algebra.ONE
        assert not any(isinstance(atom, Guard) for atom in atoms(early))


@pytest.mark.parametrize("first", [1, 3, 5])
def test_sums_in_parts_are_counted_like_whole_ones(first: int) -> None:
    """A sum over ten turns, counted by two digits, is put together of parts: what is read backwards in each is read
    forwards in the whole, in the arguments of functions too."""
    with Memory().on():
        x, y = (tensor("argument", name, "f32", (10, 3)) for name in ("x", "y"))
        high, low, n, k = (expr.fresh("f", size) for size in (5, 2, 10 - first, 3))
        turn = expr.add(expr.scale(expr.of_var(high), 2), expr.of_var(low))
        late = guards.interval(expr.add(expr.of_var(high), expr.of_var(low)), first // 2 + 1, None)

        def total(bound: list[Var], where: Poly, place: Index, shift: int = 0) -> Poly:
            held = expr.clamp(expr.shift(place, -shift), 0, 9 - first)
            row = algebra.multiply(*(algebra.read(of, [place, expr.of_var(k)]) for of in (x, y)))
            made = apply(real("tanh"), (sums.reduce_sum([k], row),))
            product = algebra.multiply(algebra.power(made, 2), algebra.read(x, [held, expr.constant(0)]))
            return sums.reduce_sum(bound, algebra.multiply(where, product))

        back = expr.subtract(expr.constant(9), turn)
        found, expected = in_ranges(total([high, low], late, back)), in_ranges(total([n], algebra.ONE, expr.of_var(n)))
        assert found is expected
        assert in_ranges(total([high, low], late, back, shift=1)) is not expected
        assert in_ranges(total([high, low], algebra.ONE, back)) is not expected
