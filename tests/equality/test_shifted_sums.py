"""Sums over a span that begins where a place says are sums from 0 on, and others stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.equality.shifted_sums import shifted, turned_over
from hlo_verify.index import expr
from hlo_verify.session import Session
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, tensor
from tests.support.evaluate import Evaluator, objects


@pytest.mark.parametrize(
    ("size", "lo", "hi", "is_shifted"),
    [
        (71, 0, 7, True),
        (70, 0, 7, False),
        (71, -1, 7, False),
        (71, 0, 8, False),
        (75, 2, 9, True),
        (71, None, 7, False),
    ],
)
@pytest.mark.parametrize("is_back", [False, True])
def test_sums(size: int, lo: int | None, hi: int, is_shifted: bool, is_back: bool) -> None:
    """`sum t. [lo <= t - d <= hi] * x[t - d]`, for a d of 0 to 63, or with `63 - d` in the place of d."""
    with Session().on():
        t, d = expr.fresh("t", size), expr.of_var(expr.fresh("d", 64))
        place = expr.subtract(expr.constant(63), d) if is_back else d
        apart = expr.subtract(expr.of_var(t), place)
        x = tensor("argument", "x", "f32", (100,))
        inside = guards.interval(apart, lo, hi)
        found = shifted(reduce_sum([t], algebra.multiply(inside, algebra.read(x, (expr.shift(apart, 3),)))), {})
        n = expr.fresh("n", hi - (lo or 0) + 1)
        here = algebra.read(x, (expr.shift(expr.of_var(n), 3 + (lo or 0)),))
        assert (found is reduce_sum([n], here)) == is_shifted


@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize(("most", "is_plain"), [(3, True), (4, False)])
def test_places_between_bounds(is_down: bool, most: int, is_plain: bool) -> None:
    """`sum t<10. [place is t] * x[place]` for `place = clamp(t, 0, 3)`, and for what goes down as it does."""
    with Session().on():
        t = expr.fresh("t", 10)
        along = expr.subtract(expr.constant(3), expr.of_var(t)) if is_down else expr.of_var(t)
        place = expr.clamp(along, 0, 3)
        off = expr.subtract(expr.of_var(t), expr.subtract(expr.constant(3), place) if is_down else place)
        x = tensor("argument", "x", "f32", (4,))
        inside = guards.interval(off, None, most - 3)
        found = shifted(reduce_sum([t], algebra.multiply(inside, algebra.read(x, (place,)))), {})
        n = expr.of_var(expr.fresh("n", 4))
        plain = reduce_sum(list(n.free), algebra.read(x, (n,)))
        assert (found is plain) == is_plain
        last = algebra.read(x, (expr.constant(0 if is_down else 3),))
        assert is_plain or found is algebra.add(plain, last)


@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize(("most", "is_plain"), [(3, True), (4, False)])
def test_places_by_digits(is_down: bool, most: int, is_plain: bool) -> None:
    """`sum t<9. [place is t] * y[t div 3, place]`, where t is two digits."""
    with Session().on():
        t = expr.fresh("t", 9)
        along = expr.subtract(expr.constant(3), expr.of_var(t)) if is_down else expr.of_var(t)
        place = expr.clamp(along, 0, 3)
        off = expr.subtract(expr.of_var(t), expr.subtract(expr.constant(3), place) if is_down else place)
        y = tensor("argument", "y", "f32", (3, 4))
        there = algebra.read(y, (expr.floor_div(expr.of_var(t), 3), place))
        found = shifted(reduce_sum([t], algebra.multiply(guards.interval(off, None, most - 3), there)), {})
        v = expr.fresh("n", 4)
        n = expr.of_var(v)
        first = expr.subtract(expr.constant(3), n) if is_down else n
        here = algebra.read(y, (expr.floor_div(n, 3), first))
        assert (found is reduce_sum([v], here)) == is_plain


@pytest.mark.parametrize(("lo", "hi"), [(None, 7), (1, 6), (3, 8)])
def test_a_product_that_falls_apart_where_digits_are_one_place(lo: int | None, hi: int) -> None:
    """`sum h<3, l<3. [lo <= t <= hi] tanh(x[t] + [h = 1][2 <= t <= 4] y[t] + [d = 1] z[t] + ..)`, t = 3h + l: by t
    there are fewer conditions, so the function is one of choices, each of which holds between bounds of its own."""
    with Session().on():
        digits = [expr.fresh(name, 3) for name in "hldef"]
        h, low, *places = map(expr.of_var, digits)
        t = expr.add(expr.scale(h, 3), low)
        tensors = [tensor("argument", f"x{n}", "f32", (9,)) for n in range(5)]
        x, y, *others = (algebra.read(source, (t,)) for source in tensors)
        asked = algebra.multiply(guards.interval(h, 1, 1), guards.interval(t, 2, 4))
        parts = [algebra.multiply(guards.interval(e, 1, 1), z) for e, z in zip(places, others, strict=True)]
        value = apply(real("tanh"), (algebra.add(x, algebra.multiply(asked, y), *parts),))
        found = reduce_sum(digits[:2], algebra.multiply(guards.interval(t, lo, hi), value))
        random = np.random.default_rng(1)
        evaluator = Evaluator({source: objects(random.normal(size=9)) for source in tensors})
        axes = dict(zip(digits[2:], np.meshgrid(*[np.arange(3)] * 3, indexing="ij"), strict=True))
        grid = {v: numbers.astype(object) for v, numbers in axes.items()}
        before, after = (evaluator.poly(p, grid).astype(float) for p in (found, shifted(found, {})))
        assert np.allclose(before, after)


@pytest.mark.parametrize("size", [1, 4])
def test_either_direction(size: int) -> None:
    """`sum n. y[3-n] * tanh(sum k. x[n, k])` is one term in either direction, and worth the same; of another size, or
    read at other places, it is another one."""
    with Session().on():
        n, k, d = expr.fresh("n", 4), expr.fresh("k", 3), expr.fresh("d", 2)
        x, y = tensor("argument", "x", "f32", (5, 3)), tensor("argument", "y", "f32", (8,))

        def total(is_back: bool, further: int = 0) -> Poly:
            along = expr.of_var(n)
            back = expr.subtract(expr.constant(3), along)
            there, other = (back, along) if is_back else (along, back)
            inner = reduce_sum([k], algebra.read(x, (expr.shift(there, further), expr.of_var(k))))
            own = algebra.read(y, (expr.add(other, expr.scale(expr.of_var(d), 4)),))
            return reduce_sum([n], algebra.multiply(own, apply(real("tanh"), (inner,))))

        ways = [total(is_back) for is_back in (False, True)]
        random = np.random.default_rng(1)
        evaluator = Evaluator({source: objects(random.normal(size=source.shape)) for source in (x, y)})
        grid = {d: np.arange(2).astype(object)}
        for way in ways:
            before, after = (evaluator.poly(p, grid).astype(float) for p in (way, turned_over(way, {size}, {})))
            assert np.allclose(before, after)
        first, second = (turned_over(way, {size}, {}) for way in ways)
        assert (first is second) == (size == 4)
        assert turned_over(total(False, 1), {size}, {}) is not first
