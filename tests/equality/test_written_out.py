"""Elements written out: windows that are gone through in other ways are one sum, others are none.

Random windows, of which each side says one way; what is found to be equal is so for numbers with ties too.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from hlo_verify.equality.summands import SpentError, Steps
from hlo_verify.equality.written_out import Writing, same_written_out
from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ops.best import index_of_best
from hlo_verify.ops.movement import guarded_select
from hlo_verify.session import Session
from hlo_verify.terms import algebra, extrema, guards, sums
from hlo_verify.terms.functions import INFINITY, LESS_OR_EQUAL, wrap
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, Poly, number, tensor

SIZE, WINDOWS = 7, 5
X, G = tensor("argument", "x", "f32", (SIZE,)), tensor("argument", "g", "f32", (WINDOWS,))
DTYPES = ("f32", "i64")


@dataclass(frozen=True)
class Windows:
    """Windows over x: which is added to where the greatest (or least) element of each is, the first or the last one."""

    size: int
    stride: int
    low: int
    extremum: str = "max"
    first: bool = True
    windows: int = WINDOWS

    def places(self, w: int) -> list[int]:
        return [w * self.stride + f - self.low for f in range(self.size)]

    def by_numbers(self, x: Sequence[int], g: Sequence[int], place: int) -> int:
        total = 0
        for w in range(self.windows):
            inside = [k for k in self.places(w) if 0 <= k < SIZE]
            if inside:
                order = inside if self.first else inside[::-1]
                total += g[w] * ((max if self.extremum == "max" else min)(order, key=lambda k: x[k]) == place)
        return total

    def worst(self) -> Poly:
        return algebra.scale(apply(INFINITY, ()), -1 if self.extremum == "max" else 1)

    def chosen(self, start: Index, shifted: int = 0, more: int = 0) -> Poly:
        """The offset of the best element of the window that starts there; from an element before it, over more of them,
        where padding is worse than all."""
        v = expr.fresh("f", self.size + shifted + more)
        offset = expr.shift(expr.of_var(v), -shifted)
        place = expr.add(start, offset)
        inside = algebra.multiply(guards.interval(place, 0, SIZE - 1), guards.interval(offset, 0, self.size - 1))
        numbered = offset if self.first else expr.shift(expr.scale(offset, -1), self.size - 1)
        worst, last = self.worst(), number(self.size + more + 9)
        pair = (guarded_select(inside, algebra.read(X, [place]), worst), algebra.of_index(numbered))
        found = index_of_best(self.extremum, [v], pair, (worst, last), DTYPES)
        return found if self.first else algebra.subtract(number(self.size - 1), found)

    def added(self, place: int, *, apart: bool, shifted: int = 0, more: int = 0) -> Poly:
        """What an element has: as a sum over windows, or window by window."""
        v = expr.fresh("f", self.windows)
        each = [expr.constant(w) for w in range(self.windows)] if apart else [expr.of_var(v)]
        total = []
        for w in each:
            start = expr.shift(expr.scale(w, self.stride), -self.low)
            chosen = algebra.as_index(self.chosen(start, shifted, more), -50, 50)
            offset = expr.subtract(expr.constant(place), start)
            lands = guards.interval(offset, 0, self.size - 1)
            lands = algebra.multiply(lands, guards.interval(expr.subtract(chosen, offset), 0, 0))
            total.append(algebra.multiply(lands, algebra.read(G, [w])))
        return algebra.add(*total) if apart else sums.reduce_sum([v], total[0])


def drawn(rng: random.Random) -> Windows:
    size = rng.choice((1, 2, 3, 4))
    return Windows(size, rng.choice((1, 2, 3)), rng.randrange(size), rng.choice(("max", "min")), rng.random() < 0.5)


def another(windows: Windows, rng: random.Random) -> Windows:
    return rng.choice(
        (
            replace(windows, low=windows.low + rng.choice((-1, 1))),
            replace(windows, stride=windows.stride % 3 + 1),
            replace(windows, size=windows.size + 1),
            replace(windows, first=not windows.first),
            replace(windows, extremum="min" if windows.extremum == "max" else "max"),
            replace(windows, windows=windows.windows - 1),
        )
    )


def same(found: Poly, expected: Poly) -> bool:
    return same_written_out(found, expected, ONE, Session(), Steps(20_000))


@pytest.mark.parametrize("seed", range(30))
def test_windows_gone_through_otherwise_are_the_same(seed: int) -> None:
    rng = random.Random(seed)
    windows, place = drawn(rng), rng.randrange(SIZE)
    shifted, more = rng.randrange(3), rng.randrange(3)
    with Session().on():
        assert same(windows.added(place, apart=False), windows.added(place, apart=True, shifted=shifted, more=more))


@pytest.mark.parametrize("seed", range(60))
def test_what_is_the_same_is_so_for_numbers(seed: int) -> None:
    rng = random.Random(seed)
    windows = drawn(rng)
    other = another(windows, rng)
    with Session().on():
        for place in range(SIZE):
            if same(windows.added(place, apart=False), other.added(place, apart=rng.random() < 0.5)):
                for _ in range(300):
                    x, g = ([rng.randrange(3) for _ in range(n)] for n in (SIZE, WINDOWS))
                    assert windows.by_numbers(x, g, place) == other.by_numbers(x, g, place)


def test_some_of_those_differ() -> None:
    """The numbers tell them apart, so that the test above says something."""
    differ = 0
    for seed in range(60):
        rng = random.Random(seed)
        windows = drawn(rng)
        other = another(windows, rng)
        x, g = [rng.randrange(3) for _ in range(SIZE)], list(range(1, WINDOWS + 1))
        differ += any(windows.by_numbers(x, g, k) != other.by_numbers(x, g, k) for k in range(SIZE))
    assert differ > 20


def test_an_infinity_that_a_program_writes_is_a_candidate() -> None:
    """Where minus infinity may be an element, padding is worse than none of them: which is first counts."""
    with Session().on():
        minus = algebra.scale(apply(INFINITY, ()), -1)
        v = expr.fresh("f", 3)
        is_last = guards.interval(expr.of_var(v), 2, 2)
        less = apply(LESS_OR_EQUAL, (algebra.read(X, [expr.constant(0)]), number(0)))
        element = guarded_select(less, minus, algebra.read(X, [expr.constant(1)]))
        value = guarded_select(is_last, element, minus)  # all are minus infinity where x[0] < 0
        best = index_of_best("max", [v], (value, algebra.of_index(expr.of_var(v))), (minus, number(9)), DTYPES)
        assert not same(best, number(2))


def best_of(elements: list[Poly], first: Poly | None = None) -> Poly:
    """The index of the greatest of some elements."""
    v = expr.fresh("f", len(elements))
    chosen = algebra.add(
        *(algebra.multiply(guards.interval(expr.of_var(v), n, n), each) for n, each in enumerate(elements))
    )
    start = Windows(1, 1, 0).worst() if first is None else first
    return index_of_best("max", [v], (chosen, algebra.of_index(expr.of_var(v))), (start, number(9)), DTYPES)


def x(n: int) -> Poly:
    return algebra.read(X, [expr.constant(n)])


def has(index: Poly, n: int) -> Poly:
    return guards.interval(algebra.as_index(index, -50, 50), n, n)


def test_of_one_element_twice_the_second_is_never_the_first_best() -> None:
    with Session().on():
        twice = best_of([x(1), x(2), x(1)])
        assert same(has(twice, 2), number(0))
        assert same(has(twice, 0), has(best_of([x(1), x(2)]), 0))
        assert not same(has(twice, 0), number(1))
        assert not same(has(twice, 0), has(best_of([x(2), x(1)]), 0))
        assert not same(has(twice, 1), has(best_of([x(2), x(1)]), 0))  # equal ones


def test_a_first_value_that_is_not_the_worst_is_a_candidate() -> None:
    with Session().on():
        assert not same(has(best_of([x(1), x(2)], number(0)), 0), has(best_of([x(1), x(2)]), 0))


def test_terms_are_compared_where_they_count() -> None:
    with Session().on():
        first, second = has(best_of([x(1), x(2)]), 0), has(best_of([x(1), x(2)]), 1)
        products = algebra.multiply(first, x(3)), algebra.multiply(second, x(3))
        for inside, expected in ((number(0), True), (ONE, False), (first, False)):
            assert same_written_out(*products, inside, Session(), Steps(1000)) is expected


def test_steps_end_it() -> None:
    with Session().on() as session:
        windows = Windows(4, 1, 1)
        pair = windows.added(3, apart=False), windows.added(3, apart=True)
        assert not same_written_out(*pair, ONE, session, Steps(20))
        assert "written_out_elements" in session.spent().limits


def test_products_of_sums_have_an_end() -> None:
    """Nine sums of seven elements each: written out, their product is 40 million."""
    with Session().on():
        v = expr.fresh("f", SIZE)
        each = [tensor("argument", f"x{n}", "f32", (SIZE,)) for n in range(9)]
        factors = [sums.reduce_sum([v], algebra.read(x, [expr.of_var(v)])) for x in each]
        whole = factors[0]
        for factor in factors[1:]:
            whole = algebra.multiply(whole, factor)
        assert not same(whole, algebra.multiply(whole, whole))


def test_powers_of_sums_have_an_end() -> None:
    """How many products they have is a number of 2**40 bits."""
    with Session().on():
        v = expr.fresh("f", SIZE)
        whole = sums.reduce_sum([v], algebra.read(X, [expr.of_var(v)]))
        with pytest.raises(SpentError):
            Writing(Steps(10_000)).poly(algebra.power_of(whole, 1 << 40))


def test_extrema_of_choices_have_an_end() -> None:
    """The greatest of twelve sizes of integers: taken apart by their signs, it is one of half a million."""
    with Session().on():
        v = expr.fresh("f", 12)
        a = algebra.read(tensor("argument", "a", "i8", (12,)), [expr.of_var(v)])
        sign = algebra.as_index(a, -128, 127)
        up, down = guards.interval(sign, 1, None), guards.interval(sign, None, -1)
        size = algebra.add(
            algebra.multiply(up, apply(wrap("i8"), (a,))),
            algebra.multiply(down, apply(wrap("i8"), (algebra.scale(a, -1),))),
        )
        whole = extrema.reduce_extremum("max", [v], size)
        assert not same(whole, number(1))
