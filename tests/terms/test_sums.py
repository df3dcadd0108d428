"""Every rule of sums and of other reductions, against adding up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra, extrema, guards, sums
from hlo_verify.terms.definitions import named
from hlo_verify.terms.functions import LOG
from hlo_verify.terms.laws import apply
from hlo_verify.terms.losses import zero_times
from hlo_verify.terms.term import Poly, tensor
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
    check(extrema.reduce_extremum(kind, bound.variables, p.it), free, known, wanted, p.it)
    cut = draws.draw(st.integers(0, len(bound.variables)))
    inner = extrema.reduce_extremum(kind, bound.variables[cut:], p.it)
    check(extrema.reduce_extremum(kind, bound.variables[:cut], inner), free, known, wanted, p.it)


@many
@given(draws=st.data())
def test_boolean(draws: st.DataObject) -> None:
    free, bound, every = spaces(draws.draw)
    known = data(draws.draw)
    p = truth(draws.draw, every, known)
    kind, function = draws.draw(st.sampled_from((("or", np.maximum), ("and", np.minimum))))
    wanted = np.asarray(function.reduce(p.values, axis=axes(free, every)), dtype=object)
    check(extrema.reduce_boolean(kind, bound.variables, p.it), free, known, wanted, p.it)


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
    check(extrema.reduce_product(bound.variables, p.it), free, known, wanted, p.it)


@many
@given(draws=st.data())
def test_counting_down(draws: st.DataObject) -> None:
    """Values that are read from the other end, all or some of them, are what they are."""
    n, known = draws.draw(st.sampled_from((2, 3, 4))), data(draws.draw)
    down, other, free = expr.var("y", "down", n), expr.var("y", "other", 2), expr.var("x", 0, 3)
    every = Space((free, down, other))
    p, rest = product(draws.draw, every, known), product(draws.draw, every, known)
    backwards = {down: expr.subtract(expr.constant(n - 1), expr.of_var(down))}
    turned, values = algebra.substitute(p.it, backwards), p.values[:, ::-1] * np.ones((3, n, 2), dtype=int)
    bound = draws.draw(st.permutations([down, other]))
    for term, at in ((turned, values), (algebra.multiply(turned, rest.it), values * rest.values)):
        wanted = np.asarray(np.add.reduce(at, axis=(1, 2)), dtype=object)
        check(sums.reduce_sum(bound, term), Space((free,)), known, wanted, term)
        check(sums.reduce_sum(bound[:1], sums.reduce_sum(bound[1:], term)), Space((free,)), known, wanted, term)
    for kind, function in (("max", np.maximum), ("min", np.minimum)):
        wanted = np.asarray(function.reduce(values, axis=(1, 2)), dtype=object)
        check(extrema.reduce_extremum(kind, bound, turned), Space((free,)), known, wanted, turned)


def test_all_that_is_counted_down_is_counted_up() -> None:
    first, second = (tensor("argument", name, "f32", (12, 5)) for name in "ab")
    whole, a, b = expr.fresh("f", 12), expr.fresh("f", 3), expr.fresh("f", 4)

    def of(v: Index, w: Index) -> Poly:
        k = expr.var("x", 0, 5)
        return algebra.multiply(*(algebra.read(x, (at, expr.of_var(k))) for x, at in ((first, v), (second, w))))

    up, last = expr.of_var(whole), expr.subtract(expr.constant(11), expr.of_var(whole))
    expected = sums.reduce_sum([whole], of(up, up))
    down = expr.subtract(expr.constant(2), expr.of_var(a))
    for high in (down, expr.of_var(a)):
        at = expr.add(expr.scale(high, 4), expr.of_var(b))
        assert sums.reduce_sum([a], sums.reduce_sum([b], of(at, at))) is expected
    assert sums.reduce_sum([whole], of(last, last)) is expected
    assert sums.reduce_sum([whole], of(up, last)) is not expected


@given(draws=st.data())
def test_rotations(draws: st.DataObject) -> None:
    """Values that are read round a ring, in steps that may or may not reach all of it, from a place that varies."""
    n = draws.draw(st.sampled_from((2, 3, 4, 5, 6)))
    step, start, scale = (draws.draw(st.integers(0, 2 * n)) for _ in range(3))
    shard, other = expr.var("y", "shard", n), expr.var("y", "other", draws.draw(st.sampled_from((1, 3))))
    free, turns = expr.var("x", 0, draws.draw(st.sampled_from((n, 4)))), expr.var("y", "turns", n)
    known, where = data(draws.draw), Space((shard, other))
    p = product(draws.draw, where, known)
    position = expr.add(expr.scale(expr.of_var(turns), step), expr.scale(expr.of_var(free), scale))
    turned = algebra.substitute(p.it, {shard: expr.modulo(expr.shift(position, start), n)})
    every = Space((free, turns, other))
    reached = (step * every.grid[turns] + scale * every.grid[free] + start) % n
    values = p.values[reached.astype(int), np.arange(other.size)]
    bound = draws.draw(st.permutations([turns, other]))
    wanted = np.asarray(np.add.reduce(values, axis=(1, 2)), dtype=object)
    check(sums.reduce_sum(bound, turned), Space((free,)), known, wanted, p.it)
    check(sums.reduce_sum(bound[:1], sums.reduce_sum(bound[1:], turned)), Space((free,)), known, wanted, p.it)
    for kind, function in (("max", np.maximum), ("min", np.minimum)):
        wanted = np.asarray(function.reduce(values, axis=(1, 2)), dtype=object)
        check(extrema.reduce_extremum(kind, bound, turned), Space((free,)), known, wanted, p.it)


def test_a_full_rotation_is_the_whole() -> None:
    source = tensor("argument", "source", "f32", (24,))
    k, turns, inside, place = expr.fresh("f", 24), expr.fresh("f", 4), expr.fresh("f", 6), expr.var("x", 0, 4)
    whole = sums.reduce_sum([k], algebra.read(source, (expr.of_var(k),)))

    def round_the_ring(step: int) -> Poly:
        shard = expr.modulo(expr.add(expr.of_var(place), expr.scale(expr.of_var(turns), step)), 4)
        at = expr.add(expr.scale(shard, 6), expr.of_var(inside))
        return sums.reduce_sum([turns], sums.reduce_sum([inside], algebra.read(source, (at,))))

    assert round_the_ring(1) is whole
    assert round_the_ring(3) is whole
    assert round_the_ring(2) is not whole


@many
@given(draws=st.data())
def test_names_among_the_factors(draws: st.DataObject) -> None:
    """Products that are named, of which a part may not depend on the variables."""
    bound, rest = expr.var("y", 0, draws.draw(st.sampled_from((2, 3, 4)))), expr.var("x", 0, 3)
    known, every = data(draws.draw), Space((rest, bound))
    total, values = algebra.ONE, every.spread(1)
    for _ in range(2):
        outside, inside = product(draws.draw, Space((rest,)), known), product(draws.draw, every, known)
        total = algebra.multiply(total, named(algebra.multiply(outside.it, inside.it)))
        values = values * outside.values[:, None] * inside.values
    wanted = np.asarray(np.add.reduce(values, axis=1), dtype=object)
    check(sums.reduce_sum([bound], total), Space((rest,)), known, wanted, total)


def test_a_name_of_what_is_zero_at_the_places_read() -> None:
    """In a product with another factor that the sum's variable is in."""
    x, y = (tensor("argument", name, "f32", (4,)) for name in "xy")
    i, j, k = (expr.var("x", n, 4) for n in range(3))
    summed = expr.fresh("y", 4)
    at = {v: algebra.read(x, (expr.of_var(v),)) for v in (i, j)}
    name = named(algebra.multiply(algebra.subtract(at[i], at[j]), algebra.read(y, (expr.of_var(k),))))
    zero = algebra.substitute(name, dict.fromkeys((i, j), expr.of_var(summed)))
    product = algebra.multiply(zero, algebra.read(y, (expr.of_var(summed),)))
    assert sums.reduce_sum([summed], product) is algebra.ZERO


def test_a_factor_of_a_name_leaves_what_may_be_no_number_in_it() -> None:
    """So a sum stays one sum, whether the factor is known to be a number or not: a loop adds up parts of one."""
    x, y, z = (tensor("argument", name, "f32", (4,)) for name in "xyz")
    here, v = expr.of_var(expr.var("x", 0, 4)), expr.fresh("y", 4)
    at = {source: algebra.read(source, (expr.of_var(v),)) for source in (x, y, z)}
    zero = zero_times(apply(LOG, (algebra.read(z, (here,)),)))
    scale = algebra.read(z, (here,))
    name = named(algebra.add(algebra.multiply(scale, algebra.add(at[x], at[y])), zero))
    found = sums.reduce_sum([v], algebra.multiply(name, at[z]))
    assert len(found.items) == 1
    assert scale.atom in [atom for atom, _ in found.items[0][0]]
    assert found.doubt


def test_a_name_that_is_read_at_one_point_stays_one() -> None:
    """So a shard that a mask and a sum over devices pick has the name that the whole has, as its shards have."""
    x, y = (tensor("argument", name, "f32", (4,)) for name in "xy")
    here, summed = expr.of_var(expr.var("x", 0, 4)), expr.fresh("y", 4)
    v = expr.var("x", 1, 4)
    name = named(algebra.add(*(algebra.read(source, (expr.of_var(v),)) for source in (x, y))))
    at = {place: algebra.substitute(name, {v: place}) for place in (here, expr.of_var(summed))}
    picked = guards.interval(expr.subtract(expr.of_var(summed), here), 0, 0)
    assert at[here].atom is not None
    assert sums.reduce_sum([summed], algebra.multiply(picked, at[expr.of_var(summed)])) is at[here]


def test_a_variable_whose_digits_do_not_divide_is_joined_with_none() -> None:
    """`v mod 3` and `v div 3` of 4 values: joined with what has 4 times the coefficient, it was split for ever."""
    v, w = expr.var("y", 0, 4), expr.var("y", 1, 4)
    parts = (expr.digit_of(expr.of_var(v), 1, 3), 1), (expr.digit_of(expr.of_var(v), 3, 2), -1)
    place = expr.add(*(expr.scale(e, c) for e, c in parts), expr.scale(expr.digit_of(expr.of_var(w), 1, 2), 4))
    source = tensor("argument", "x", "f32", (8,))
    held = guards.interval(place, None, 4)
    found = sums.reduce_sum([v, w], algebra.multiply(held, algebra.read(source, (expr.shift(place, 1),))))
    values = np.arange(8).astype(object)
    wanted = sum(int(n) for a in range(4) for b in range(4) for n in [a % 3 - a // 3 + 4 * (b % 2)] if n <= 4) + sum(
        1 for a in range(4) for b in range(4) if a % 3 - a // 3 + 4 * (b % 2) <= 4
    )
    known = Data({source: values}, np.random.default_rng(0))
    check(found, Space(()), known, np.asarray(wanted, dtype=object), place)


@pytest.mark.parametrize(("n", "k", "parts"), [(12, 8, 4), (12, 5, 6), (36, 32, 4)])
@pytest.mark.parametrize("off", [0, 1])
def test_a_sum_of_what_is_put_together_is_that_of_its_shards(n: int, k: int, parts: int, off: int) -> None:
    """Two tensors one after the other, in shards whose borders lie elsewhere; `off`, each begins one element later."""
    (x, y, w), m = (tensor("argument", name, "f32", (n + 1,)) for name in "xyw"), n // parts

    def put_together(at: Index) -> Poly:
        first = algebra.multiply(guards.interval(at, None, k - 1), algebra.read(x, [at]))
        rest = algebra.multiply(guards.interval(at, k, None), algebra.read(y, [expr.shift(at, -k)]))
        return named(algebra.add(first, rest))

    v, d, p = expr.fresh("v", n), expr.fresh("d", parts), expr.fresh("p", m)
    whole = sums.reduce_sum([v], algebra.multiply(put_together(expr.of_var(v)), algebra.read(w, [expr.of_var(v)])))
    at = expr.add(expr.scale(expr.of_var(d), m), expr.of_var(p))
    shard = sums.reduce_sum([p], algebra.multiply(put_together(expr.shift(at, off)), algebra.read(w, [at])))
    assert (sums.reduce_sum([d], shard) is whole) is not bool(off)
