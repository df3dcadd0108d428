"""A definition is what it was made of, wherever it is read; equal definitions are one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import define, named, unfold
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE, LOG, SQRT, real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, Poly, Read, Tensor, number, tensor
from tests.support.expressions import Space, assert_equal, data, evaluated, many, poly, renaming, space


@many
@given(draws=st.data())
def test_named(draws: st.DataObject) -> None:
    where, known = space(draws.draw, 2), data(draws.draw)
    p = poly(draws.draw, where, known)
    name = named(p.it)
    assert_equal(evaluated(name, where, known.evaluator), p.values, p.it)
    if isinstance(name.atom, Read) and name.atom.tensor.kind == "term":
        _, (unfolded,) = unfold(name.atom)
        assert_equal(evaluated(unfolded, where, known.evaluator), p.values, p.it)


@many
@given(draws=st.data())
def test_named_elsewhere(draws: st.DataObject) -> None:
    """Substituting in a name is substituting in what it names."""
    inner, outer, known = space(draws.draw, 2, kind="y"), space(draws.draw, 2), data(draws.draw)
    p = poly(draws.draw, outer, known)
    mapping, places = renaming(draws.draw, outer, inner)
    found = algebra.substitute(named(p.it), mapping)
    assert_equal(evaluated(found, inner, known.evaluator), p.values[places], (p.it, mapping))


@many
@given(draws=st.data())
def test_define_and_unfold(draws: st.DataObject) -> None:
    free = Space((expr.var("x", 0, draws.draw(st.sampled_from((2, 3, 4)))),))
    bound = [expr.var("y", n, draws.draw(st.sampled_from((1, 2, 3, 4)))) for n in range(draws.draw(st.integers(1, 3)))]
    every, known = Space((*free.variables, *bound)), data(draws.draw)
    p = poly(draws.draw, every, known)
    kind, function = draws.draw(st.sampled_from((("sum", np.add), ("max", np.maximum), ("min", np.minimum))))
    defined = define(kind, bound, (p.it,))
    axes = tuple(range(1, len(every.variables)))
    wanted = np.asarray(function.reduce(p.values, axis=axes), dtype=object)
    assert_equal(evaluated(defined, free, known.evaluator), wanted, p.it)
    assert isinstance(defined.atom, Read)
    fresh, (again,) = unfold(defined.atom)
    inside = Space((*free.variables, *fresh))
    values = evaluated(again, inside, known.evaluator)
    assert_equal(np.asarray(function.reduce(values, axis=axes), dtype=object), wanted, p.it)


@many
@given(draws=st.data())
def test_bound_variables_have_no_names(draws: st.DataObject) -> None:
    """The same body over other bound variables, listed in another order, is the same definition."""
    sizes = draws.draw(st.lists(st.sampled_from((2, 3, 4)), min_size=1, max_size=3))
    bound = [expr.var("y", n, size) for n, size in enumerate(sizes)]
    known = data(draws.draw)
    p = poly(draws.draw, Space((expr.var("x", 0, 3), *bound)), known, 1)
    others = [expr.fresh("f", v.size) for v in bound]
    renamed = algebra.substitute(p.it, {v: expr.of_var(w) for v, w in zip(bound, others, strict=True)})
    first, second = define("sum", bound, (p.it,)), define("sum", draws.draw(st.permutations(others)), (renamed,))
    where = Space((expr.var("x", 0, 3),))
    assert_equal(evaluated(first, where, known.evaluator), evaluated(second, where, known.evaluator), p.it)


def test_a_name_has_the_range_of_its_own_type() -> None:
    v = expr.var("x", "range", 300)
    square = algebra.power(algebra.of_index(expr.of_var(v)), 2)
    narrow, wide = named(square, "i8"), named(square, "i32")
    assert narrow is not wide
    assert algebra.as_index(wide, -(2**31), 2**31 - 1).hi > 127


@pytest.mark.parametrize("seen_first", [0, 1])
def test_parts_that_differ_in_place_alone_are_numbered_by_what_is_at_the_places(seen_first: int) -> None:
    """In norm(q) * norm(k) * score(q, k) it does not matter which norm was made first."""
    norms, scores = tensor("argument", "norms", "f32", (4,)), tensor("argument", "scores", "f32", (4, 4))
    q, k = (expr.of_var(expr.var("x", n, 4)) for n in range(2))

    def scaled(q: Index, k: Index) -> Poly:
        return algebra.multiply(algebra.multiply(norm(q), norm(k)), algebra.read(scores, (q, k)))

    def norm(place: Index) -> Poly:
        return apply(real("tanh"), (algebra.read(norms, (place,)),))

    norm((q, k)[seen_first])
    found = [named(algebra.add(p, ONE)).atom for p in (scaled(q, k), scaled(k, q))]
    assert isinstance(found[0], Read) and isinstance(found[1], Read)
    assert found[0].tensor is found[1].tensor
    assert found[0].indices == found[1].indices[::-1]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("beside", [False, True])
def test_variables_at_places_of_one_tensor_are_told_apart_by_what_they_do_there(beside: bool, swapped: bool) -> None:
    """How many pairs are in order is one sum, whichever of the two variables and their elements was made first."""
    x = tensor("argument", "x", "i32", (8,))
    y = tensor("argument", "y", "f32", (8,))

    def pairs(swapped: bool) -> Poly:
        bound = [expr.fresh("f", 8) for _ in range(2)]
        places = list(map(expr.of_var, bound))
        elements = [algebra.as_index(algebra.read(x, [e]), -(2**31), 2**31 - 1) for e in places]
        one, other = reversed(elements) if swapped else elements
        a, b = reversed(places) if swapped else places
        body = guards.interval(expr.subtract(other, one), 1, None)
        if beside:
            factors = [algebra.read(y, [e]) for e in (a, b)]
            body = algebra.multiply(algebra.multiply(*factors), apply(EXPONENTIAL, (algebra.subtract(*factors),)))
        return define("sum", bound, (body,))

    assert pairs(swapped) is pairs(not swapped)


def test_a_product_that_laws_write_otherwise_has_one_name() -> None:
    """sqrt-inverses that were joined to one inverse hold what a law would scale: the name is that of the scaled one."""
    n = expr.var("i", "", 8), expr.var("j", "", 8)
    i, j = (expr.of_var(v) for v in n)
    x, y, z = (tensor("argument", name, "f32", (8, 8)) for name in "xyz")

    def value(a: Index, b: Index) -> tuple[Poly, Poly]:
        square = algebra.multiply(algebra.read(x, [a, b]), algebra.read(x, [a, b]))
        under = algebra.add(algebra.scale(square, Fraction(1, 8192)), algebra.scale(ONE, Fraction(1, 100000)))
        root = apply(INVERSE, (apply(SQRT, (under,)),))
        factor = algebra.read(y, [b, a])
        joined = algebra.multiply(algebra.multiply(root, factor), root)
        scaled = algebra.multiply(apply(INVERSE, (under,)), factor)
        return algebra.add(joined, algebra.read(z, [b, a])), algebra.add(scaled, algebra.read(z, [b, a]))

    for a, b in ((i, j), (j, i)):
        names = [named(p).atom for p in value(a, b)]
        first, second = names
        assert isinstance(first, Read) and isinstance(second, Read)
        assert first is second


@pytest.mark.parametrize("size", [11, 12])
def test_a_name_at_a_quotient_is_the_one_at_a_digit(size: int) -> None:
    """What is read at p div 6, p mod 6 and p has one name where p is a variable, and where it is a part of a ring's."""
    d, whole, part = (expr.of_var(expr.var(name, "", n)) for name, n in (("d", 4), ("p", size), ("r", 3)))
    x, y = (tensor("argument", name, "f32", shape) for name, shape in (("x", (2, 6)), ("y", (12,))))

    def value(e: Index) -> Poly:
        high, low = expr.floor_divmod(e, 6)
        return algebra.add(algebra.read(x, [high, low]), algebra.read(y, [e]))

    turned = expr.add(expr.scale(expr.modulo(expr.shift(d, 1), 4), 3), part)
    found = [named(value(e)).atom for e in (whole, turned)]
    assert len({atom.tensor for atom in found if isinstance(atom, Read)}) == 1
    there = [unfold(atom)[1][0] for atom in found if isinstance(atom, Read)]
    assert there == [value(whole), value(turned)]


def _turned(columns: Tensor, k: Index, x: Index, power: Fraction) -> Poly:
    """What rotary embeddings leave of column x, whose frequency is `10000**(k*power)`: the sum over positions b."""
    b = expr.var("b", "", 32)
    frequency = algebra.multiply(apply(LOG, (number(10_000),)), algebra.of_index(k))
    angle = algebra.multiply(
        algebra.of_index(expr.of_var(b)), algebra.power_of(apply(EXPONENTIAL, (frequency,)), power)
    )
    column = algebra.read(columns, (expr.of_var(b), x))
    return reduce_sum([b], algebra.multiply(apply(real("cosine"), (angle,)), column))


@pytest.mark.parametrize("power", [Fraction(-1, 8), Fraction(1, 4), Fraction(-3, 2)])
@pytest.mark.parametrize("lost", [0, 1])
def test_exponentials_of_places_have_one_name(power: Fraction, lost: int) -> None:
    """The upper half of columns by their places in it, and by those among all, which are 8 more; 7 are wrong."""
    x = tensor("argument", "x", "f32", (32, 16), skey=1)
    k, j = (expr.of_var(expr.var(name, "", size)) for name, size in (("k", 8), ("j", 16)))
    half = _turned(x, k, expr.shift(k, 8), power)
    whole = _turned(x, expr.shift(j, lost - 8), j, power)
    found = algebra.substitute(whole, {v: expr.shift(k, 8) for v in j.free})
    assert (found is half) is (lost == 0)
