"""Every rule of sums and of other reductions, against adding up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.terms import algebra, guards, sums
from hlo_verify.terms.term import Poly
from tests.support.expressions import (
    Array,
    Data,
    Draw,
    Numbered,
    Space,
    affine,
    assert_equal,
    data,
    evaluated,
    many,
    poly,
    read,
    truth,
)


def spaces(draw: Draw) -> tuple[Space, Space, Space]:
    """Free variables, bound variables, and both together."""
    free = [expr.var("x", n, draw(st.sampled_from((2, 3, 4, 6)))) for n in range(draw(st.integers(0, 1)))]
    bound = [expr.var("y", n, draw(st.sampled_from((1, 2, 3, 4, 6, 8)))) for n in range(draw(st.integers(1, 3)))]
    return Space(tuple(free)), Space(tuple(bound)), Space((*free, *bound))


def product(draw: Draw, where: Space, known: Data) -> Numbered:
    """A product of a few reads and guards, as contractions and masks have them."""
    total, values = algebra.ONE, where.spread(1)
    for _ in range(draw(st.integers(1, 3))):
        factor = read(draw, where, known) if draw(st.integers(0, 2)) else truth(draw, where, known)
        total, values = algebra.multiply(total, factor.it), values * factor.values
    return Numbered(total, values)


def body(draw: Draw, where: Space, known: Data) -> Numbered:
    parts = [product(draw, where, known) for _ in range(draw(st.integers(1, 2)))]
    if draw(st.integers(0, 3)) == 0:
        parts.append(poly(draw, where, known, 1))
    total, values = algebra.ZERO, where.spread(0)
    for p in parts:
        total, values = algebra.add(total, p.it), values + p.values
    return Numbered(total, values)


def check(p: Poly, free: Space, known: Data, wanted: Array, context: Any) -> None:
    assert p.free <= set(free.variables), p
    found = known.evaluator.poly(p, free.grid)
    assert_equal(np.broadcast_to(found, wanted.shape), wanted, (context, p))


def axes(free: Space, every: Space) -> tuple[int, ...]:
    return tuple(range(len(free.variables), len(every.variables)))


@many
@given(draws=st.data())
def test_sum(draws: st.DataObject) -> None:
    free, bound, every = spaces(draws.draw)
    known = data(draws.draw)
    p = body(draws.draw, every, known)
    wanted = np.asarray(np.add.reduce(p.values, axis=axes(free, every)), dtype=object)
    check(sums.reduce_sum(bound.variables, p.it), free, known, wanted, p.it)


@many
@given(draws=st.data())
def test_sum_of_a_sum(draws: st.DataObject) -> None:
    """Flattening: a part of the variables first, times something that depends on the others."""
    free, bound, every = spaces(draws.draw)
    known = data(draws.draw)
    cut = draws.draw(st.integers(0, len(bound.variables)))
    outer, inner = bound.variables[:cut], bound.variables[cut:]
    p = body(draws.draw, every, known)
    rest = Space((*free.variables, *outer))
    first = sums.reduce_sum(inner, p.it)
    values = np.asarray(np.add.reduce(p.values, axis=axes(rest, every)), dtype=object).reshape(rest.shape)
    if draws.draw(st.booleans()) and rest.variables:
        factor = product(draws.draw, rest, known)
        first, values = algebra.multiply(first, factor.it), values * factor.values
    wanted = np.asarray(np.add.reduce(values, axis=axes(free, rest)), dtype=object) if outer else values
    check(sums.reduce_sum(outer, first), free, known, wanted, p.it)


@many
@given(draws=st.data())
def test_split_variables_join(draws: st.DataObject) -> None:
    """`sum a, b. f(a + m*b)` is `sum k. f(k)`, the very same term, whatever f is and however the parts are bound."""
    m, n = draws.draw(st.sampled_from((2, 3, 4))), draws.draw(st.sampled_from((2, 3, 4)))
    known = data(draws.draw)
    whole = expr.var("y", "whole", m * n)
    where = Space((whole,))
    p = read(draws.draw, where, known)
    a, b = expr.fresh("f", m), expr.fresh("f", n)
    parts = algebra.substitute(p.it, {whole: expr.add(expr.of_var(a), expr.scale(expr.of_var(b), m))})
    joined = sums.reduce_sum([whole], p.it)
    wanted = np.asarray(np.add.reduce(p.values, axis=0), dtype=object)
    check(joined, Space(()), known, wanted, p.it)
    check(sums.reduce_sum([a, b], parts), Space(()), known, wanted, p.it)
    check(sums.reduce_sum([b], sums.reduce_sum([a], parts)), Space(()), known, wanted, p.it)


@many
@given(draws=st.data())
def test_one_point_and_shrinking(draws: st.DataObject) -> None:
    """A guard that fixes a bound variable, or leaves it a part of its range."""
    free, bound, every = spaces(draws.draw)
    known = data(draws.draw)
    v = draws.draw(st.sampled_from(bound.variables))
    c = draws.draw(st.sampled_from((1, 1, -1, 2, -3)))
    rest = affine(draws.draw, every) if draws.draw(st.booleans()) else affine(draws.draw, Space((v,)))
    form = expr.add(expr.scale(expr.of_var(v), c), rest.it)
    form_values = every.spread(c * every.grid[v]) + (
        rest.values if rest.values.shape == every.shape else evaluated(rest.it, every)
    )
    lo = draws.draw(st.integers(-4, 6))
    hi = lo + draws.draw(st.sampled_from((0, 0, 1, abs(c) - 1, 3)))
    inside = guards.interval(form, lo, hi)
    holds = np.asarray(np.frompyfunc(lambda x: int(lo <= x <= hi), 1, 1)(form_values), dtype=object)
    factor = product(draws.draw, every, known)
    p = algebra.multiply(inside, factor.it)
    wanted = np.asarray(np.add.reduce(holds * factor.values, axis=axes(free, every)), dtype=object)
    check(sums.reduce_sum(bound.variables, p), free, known, wanted, p)


@many
@given(draws=st.data())
def test_extremum(draws: st.DataObject) -> None:
    free, bound, every = spaces(draws.draw)
    known = data(draws.draw)
    p = body(draws.draw, every, known)
    kind, function = draws.draw(st.sampled_from((("max", np.maximum), ("min", np.minimum))))
    wanted = np.asarray(function.reduce(p.values, axis=axes(free, every)), dtype=object)
    check(sums.reduce_extremum(kind, bound.variables, p.it), free, known, wanted, p.it)
    cut = draws.draw(st.integers(0, len(bound.variables)))
    inner = sums.reduce_extremum(kind, bound.variables[cut:], p.it)
    check(sums.reduce_extremum(kind, bound.variables[:cut], inner), free, known, wanted, p.it)


@many
@given(draws=st.data())
def test_boolean(draws: st.DataObject) -> None:
    free, bound, every = spaces(draws.draw)
    known = data(draws.draw)
    p = truth(draws.draw, every, known)
    kind, function = draws.draw(st.sampled_from((("or", np.maximum), ("and", np.minimum))))
    wanted = np.asarray(function.reduce(p.values, axis=axes(free, every)), dtype=object)
    check(sums.reduce_boolean(kind, bound.variables, p.it), free, known, wanted, p.it)


@many
@given(draws=st.data())
def test_product(draws: st.DataObject) -> None:
    free, bound, every = spaces(draws.draw)
    known = data(draws.draw)
    p = product(draws.draw, every, known)
    if math.prod(bound.shape) > 30:
        bound, every = Space(bound.variables[:1]), Space((*free.variables, bound.variables[0]))
        p = product(draws.draw, every, known)
    wanted = np.asarray(np.multiply.reduce(p.values, axis=axes(free, every)), dtype=object)
    check(sums.reduce_product(bound.variables, p.it), free, known, wanted, p.it)
