"""Intervals of floats hold what balls of Arb hold: every function, sums, products of matrices, and whole programs."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from hlo_verify.evaluate import Blocks, balls, enclosures, evaluate, intervals, of_dense, unary
from hlo_verify.evaluate import interval_functions as functions
from hlo_verify.evaluate.balls import BALLS, UNDEFINED, is_unknown, precision
from hlo_verify.evaluate.functions import COMPARISONS
from hlo_verify.evaluate.intervals import INTERVALS, interval
from hlo_verify.evaluate.maps import Array
from hlo_verify.passes.load.load import load

GENERATOR = np.random.default_rng(7)
EXTREMES = [0.0, 5e-324, 1e-310, 1e-200, 1e-17, 0.1, 0.5, 1 - 1e-16, 1.0, 1 + 2e-16, 1.5, 3.0, 709.0, 745.0, 1e6, 1e300]
POINTS = np.concatenate(
    [
        EXTREMES,
        np.negative(EXTREMES),
        GENERATOR.normal(size=400),
        1 + 1e-9 * GENERATOR.normal(size=50),
        GENERATOR.choice([-1, 1], 400) * np.exp(GENERATOR.uniform(-40, 8, 400)),
        GENERATOR.choice([-1, 1], 200) * np.exp(GENERATOR.uniform(-700, 700, 200)),
        np.linspace(-20, 20, 161),
    ]
)
UNARY = sorted(functions.REAL.keys() & unary.REAL.keys())
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "power"]
SPECIAL = np.array([np.inf, -np.inf, np.nan, *EXTREMES, *np.negative(EXTREMES)])


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """As in an evaluation, what is no number is no warning."""
    with np.errstate(all="ignore"):
        yield


def holds(found: Any, wanted: Any) -> bool:
    """Whether an interval holds a ball, as far as either is known."""
    low, high = (float(found[side]) for side in ("low", "high"))
    if np.isnan(low) or np.isnan(high) or is_unknown(wanted):
        return True
    if not wanted.is_finite():
        return isinstance(wanted, arb) and low == high and bool(wanted == arb(low))
    # A ball of radius 2^-300 may lie around the interval's very end.
    return low <= high and not (wanted < arb(low) or wanted > arb(high))


def hold(found: Array, wanted: Array) -> bool:
    return all(holds(a, b) for a, b in zip(found.reshape(-1), wanted.reshape(-1), strict=True))


def known(found: Array) -> float:
    """The share of intervals of which something is known."""
    return 1 - float(np.isnan(found["low"]).mean())


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_numbers_holds_what_arb_finds(name: str) -> None:
    found = functions.REAL[name](intervals.exact(POINTS))
    with precision(300):
        assert hold(found, enclosures.REAL[name](balls.exact(POINTS)))
    assert known(found) > 0.4


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_intervals_holds_what_it_is_at_points_within(name: str) -> None:
    width = np.abs(POINTS) * GENERATOR.choice([1e-15, 1e-3, 2.0], POINTS.size)
    low, high = POINTS - width, POINTS + width
    found = functions.REAL[name](interval(low, high))
    with precision(300):
        for share in (0.0, 0.3, 1.0):
            at = np.clip(low + share * (high - low), low, high)
            assert hold(found, enclosures.REAL[name](balls.exact(at)))


@pytest.mark.parametrize("name", BINARY)
def test_a_function_of_two_holds_what_arb_finds(name: str) -> None:
    a, b = np.meshgrid(SPECIAL, SPECIAL)
    more = GENERATOR.choice(POINTS, (2, 2000))
    x, y = np.concatenate([a.reshape(-1), more[0]]), np.concatenate([b.reshape(-1), more[1]])
    found = functions.REAL[name](intervals.exact(x), intervals.exact(y))
    with precision(300):
        assert hold(found, enclosures.REAL[name](balls.exact(x), balls.exact(y)))
    assert known(found) > 0.3


@pytest.mark.parametrize("points", [POINTS, np.abs(POINTS)], ids=["any", "none negative"])
@pytest.mark.parametrize("name", BINARY)
def test_a_function_of_two_intervals_holds_what_it_is_at_points_within(name: str, points: Array) -> None:
    bounds = []
    for _ in range(2):
        ends = GENERATOR.choice(points, (2, 3000))
        near = ends[0] + np.abs(ends[0]) * GENERATOR.choice([0.0, 1e-15, 1e-3], 3000)
        ends[1] = np.where(GENERATOR.random(3000) < 0.5, near, ends[1])
        bounds.append((ends.min(axis=0), ends.max(axis=0)))
    found = functions.REAL[name](*(interval(*each) for each in bounds))
    with precision(300):
        for _ in range(4):
            a, b = (np.where(GENERATOR.random(3000) < 0.5, low, high) for low, high in bounds)
            assert hold(found, enclosures.REAL[name](balls.exact(a), balls.exact(b)))


def test_what_is_exact_stays_exact() -> None:
    """Masks and counts: comparisons rest on them."""
    x = intervals.exact(np.array([0.0, 1.0, -3.0, 7.5]))
    one = intervals.exact(np.array(1.0))
    for found in (functions.REAL["add"](x, one), functions.REAL["multiply"](x, x), functions.REAL["subtract"](x, x)):
        assert intervals.is_point(found).all()
    counts = intervals.exact(GENERATOR.integers(0, 9, (3, 40)))
    assert intervals.is_point(intervals.weighted_sum(counts, np.arange(40))).all()
    assert intervals.is_point(intervals.matrix_product(counts[None], counts.T[None])).all()
    assert functions.REAL["exponential"](intervals.exact(np.array([-np.inf])))["high"] == 0


def test_a_product_with_zero_is_zero_where_the_other_factor_is_a_number() -> None:
    """Of numbers that are not negative too, and where the whole product is left out."""
    zero, any_ = interval([0.0], [0.0]), interval([0.0, 1.0, 5e-324, 1e300], [0.0, 2.0, 1e-310, 1e300])
    assert np.array_equal(functions.REAL["multiply"](zero, any_), interval(np.zeros(4), np.zeros(4)))
    module = load("""module @lost { func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
      %r = stablehlo.multiply %x, %y : tensor<8xf32>
      return %r : tensor<8xf32> }}""")
    for real in (np.dtype(np.float64), INTERVALS):
        for worst, is_lost in ((3.0, True), (np.inf, False), (np.nan, False)):
            factors = np.append(np.arange(7.0), worst)
            given = [of_dense(np.zeros(8)), of_dense(factors)]
            given = [Blocks(b.classes, intervals.exact(b.values)) if real == INTERVALS else b for b in given]
            (found,) = evaluate(module, given, 1, real=real).results
            assert found is not None and (found.values.size == 1) is is_lost
            ends = found.values["low"] if real == INTERVALS else found.values
            assert np.isnan(ends).sum() == (not is_lost)


def test_squares_are_not_negative_where_products_may_be() -> None:
    """A number times itself is known by its name in the program: equal bounds are no equal numbers."""
    body = "%y = stablehlo.multiply %a, %a : KIND"
    (found,) = run(body, INTERVALS, intervals.exact(np.zeros(2)), around=1.0)
    assert (found["low"] == 0).all()
    body = "%r = stablehlo.reverse %a, dims = [0] : KIND\n %y = stablehlo.multiply %a, %r : KIND"
    (found,) = run(body, INTERVALS, intervals.exact(np.zeros(2)), around=1.0)
    assert (found["low"] <= -1).all()


def run(body: str, real: np.dtype, values: Array, around: float = 0.0) -> tuple[Array]:
    kind = f"tensor<{values.size}xf64>"
    text = f"func.func @main(%a: {kind}) -> {kind} {{\n{body}\n return %y : {kind}\n}}".replace("KIND", kind)
    held = interval(values["low"] - around, values["high"] + around) if around else values
    (found,) = evaluate(load(text), [of_dense(held)], 1, real=real).results
    assert found is not None
    return (found.values,)


# Sums and products


def rational(x: float) -> Fraction:
    return Fraction(float(x))


@pytest.mark.parametrize("scale", [1.0, 1e-160, 1e150])
@pytest.mark.parametrize("shape", [(3, 5, 7), (2, 40, 3), (1, 3, 300)])
def test_products_of_matrices_hold_the_exact_ones(shape: tuple[int, int, int], scale: float) -> None:
    rows, terms, columns = shape
    x, y = (
        scale * np.exp(GENERATOR.uniform(-9, 9, each)) * GENERATOR.choice([-1, 0, 1], each)
        for each in ((1, rows, terms), (1, terms, columns))
    )
    off = np.abs(x) * 1e-12
    found = intervals.matrix_product(interval(x - off, x + off), intervals.exact(y))[0]
    for sign in (-1, 0, 1):
        moved = (x + sign * off)[0]
        for i in range(rows):
            for j in range(0, columns, 11):
                wanted = sum(rational(moved[i, k]) * rational(y[0, k, j]) for k in range(terms))
                assert rational(found[i, j]["low"]) <= wanted <= rational(found[i, j]["high"])


@pytest.mark.parametrize("size", [1, 7, 3000])
def test_sums_hold_the_exact_ones(size: int) -> None:
    x = np.exp(GENERATOR.uniform(-9, 9, (2, size))) * GENERATOR.choice([-1, 1], (2, size))
    weights = GENERATOR.integers(0, 1000, size)
    sums = intervals.weighted_sum(intervals.exact(x), weights)
    running = intervals.running_sum(intervals.exact(x), 1)
    landed = intervals.exact(np.zeros((2, 2)))
    intervals.add_at(landed, (np.array([0, 1])[:, None], np.zeros((2, size), int)), intervals.exact(x))
    for row in range(2):
        wanted = sum(rational(v) * int(w) for v, w in zip(x[row], weights, strict=True))
        assert rational(sums[row]["low"]) <= wanted <= rational(sums[row]["high"])
        wanted = sum(map(rational, x[row]))
        for found in (running[row, -1], landed[row, 0]):
            assert rational(found["low"]) <= wanted <= rational(found["high"])
        assert landed[row, 1]["low"] == landed[row, 1]["high"] == 0


@pytest.mark.parametrize("factors", [(1,), (2, 64, 1), (3, 5, 0), (1 << 40, 7, 2048), (12_345_678_901, 1, 3)])
def test_multiples_hold_the_exact_ones(factors: tuple[int, ...]) -> None:
    values = np.concatenate([POINTS, [1.7e308, -1e308, 2.2e-308, -2.3e-308]])
    for width in (0.0, 1e-16, 0.5):
        whole = interval(values - np.abs(values) * width, values + np.abs(values) * width)
        found = intervals.scaled(whole[:, None], np.array(factors))
        with np.nditer(np.array(factors), flags=["f_index"]) as each:
            for factor in each:
                column = found[:, each.index]
                for side, holds_it in (("low", np.less_equal), ("high", np.greater_equal)):
                    wanted = [Fraction(x) * int(factor) if np.isfinite(x) else None for x in whole[side]]
                    given = [Fraction(x) if np.isfinite(x) else None for x in column[side]]
                    pairs = [(a, b) for a, b in zip(given, wanted, strict=True) if a is not None and b is not None]
                    assert len(pairs) > len(values) - 70
                    assert all(holds_it(a, b) for a, b in pairs)
    infinite = intervals.scaled(intervals.exact(np.array([np.inf, -np.inf, np.nan])), np.array([3, 3, 3]))
    assert infinite["low"].tolist()[:2] == infinite["high"].tolist()[:2] == [np.inf, -np.inf]
    assert np.isnan(infinite["low"][2])
    assert np.isnan(intervals.scaled(intervals.exact(np.array([np.inf])), np.array([0]))["low"]).all()


def test_what_overflows_is_not_known() -> None:
    """An infinity is one only where it was one before."""
    huge = intervals.exact(np.full((1, 1, 1), 1e160))
    for name in ("add", "multiply", "square", "exponential"):
        a = huge if name != "add" else intervals.exact(np.full((1, 1, 1), 1.7e308))
        operands = [a] * (2 if name in BINARY else 1)
        assert np.isnan(functions.REAL[name](*operands)["high"]).all()
    sums = intervals.weighted_sum(intervals.exact(np.full(3, 1e308)), np.ones(3))
    row = intervals.exact(np.array([[[1e160, 0.5]]]))
    for found in (intervals.matrix_product(row, np.swapaxes(row, 1, 2)), sums):
        assert np.isnan(found["low"]).all() and np.isnan(found["high"]).all()


# Decisions


@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
def test_comparisons_are_certain_or_open(direction: str) -> None:
    ends = np.sort(GENERATOR.integers(-3, 4, (2, 2, 500)).astype(float), axis=1)
    (a, b), (c, d) = ends
    found = functions.compared(direction, interval(a, b), interval(c, d))
    decide = COMPARISONS[direction]
    cases = np.array([decide(x, y) for x in (a, (a + b) / 2, b) for y in (c, (c + d) / 2, d)])
    for n, each in enumerate(found):
        assert each is UNDEFINED or (cases[:, n] == each).all()
        assert each is not UNDEFINED or not (cases[:, n].all() or not cases[:, n].any()) or direction in ("EQ", "NE")
    unknown = intervals.exact(np.full(1, np.nan))
    assert functions.compared(direction, unknown, unknown)[0] is UNDEFINED


def test_open_choices_hold_both() -> None:
    condition = np.array([True, False, UNDEFINED], object)
    found = functions.chosen(condition, intervals.exact(np.full(3, 1.0)), intervals.exact(np.full(3, 4.0)))
    assert found["low"].tolist() == [1, 4, 1] and found["high"].tolist() == [1, 4, 4]
    endless = functions.chosen(condition, intervals.exact(np.full(3, -np.inf)), intervals.exact(np.full(3, 4.0)))
    assert np.isnan(endless["low"][2])


# Programs

PROGRAMS = {
    "softmax": """
      %s = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
      %m = stablehlo.reduce(%a init: %s) applies stablehlo.maximum across dimensions = [1] : (KIND, tensor<f64>) -> ROW
      %n = stablehlo.broadcast_in_dim %m, dims = [0] : (ROW) -> KIND
      %d = stablehlo.subtract %a, %n : KIND
      %e = stablehlo.exponential %d : KIND
      %z = stablehlo.constant dense<0.0> : tensor<f64>
      %t = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1] : (KIND, tensor<f64>) -> ROW
      %u = stablehlo.broadcast_in_dim %t, dims = [0] : (ROW) -> KIND
      %y = stablehlo.divide %e, %u : KIND""",
    "masked products": """
      %i = stablehlo.iota dim = 0 : tensor<6x6xi32>
      %j = stablehlo.iota dim = 1 : tensor<6x6xi32>
      %p = stablehlo.compare GE, %i, %j : (tensor<6x6xi32>, tensor<6x6xi32>) -> tensor<6x6xi1>
      %x = stablehlo.constant dense<-0x1.0p1023> : KIND
      %b = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (KIND, KIND) -> KIND
      %y = stablehlo.select %p, %b, %x : tensor<6x6xi1>, KIND""".replace("-0x1.0p1023", "-1.0e300"),
    "normed rows": """
      %z = stablehlo.constant dense<0.0> : tensor<f64>
      %o = stablehlo.constant dense<1.0> : tensor<f64>
      %q = stablehlo.multiply %a, %a : KIND
      %t = stablehlo.reduce(%q init: %o) applies stablehlo.add across dimensions = [1] : (KIND, tensor<f64>) -> ROW
      %r = stablehlo.rsqrt %t : ROW
      %u = stablehlo.broadcast_in_dim %r, dims = [0] : (ROW) -> KIND
      %y = stablehlo.multiply %a, %u : KIND""",
    "sorted": """
      %y = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
        ^bb0(%l: tensor<f64>, %r: tensor<f64>):
          %c = stablehlo.compare GT, %l, %r : (tensor<f64>, tensor<f64>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }) : (KIND) -> KIND""",
    "running sums": """
      %z = stablehlo.constant dense<0.0> : tensor<f64>
      %y = "stablehlo.reduce_window"(%a, %z) <{padding = dense<[[0, 0], [5, 0]]> : tensor<2x2xi64>,
          window_dimensions = array<i64: 1, 6>, window_strides = array<i64: 1, 1>}> ({
        ^bb0(%l: tensor<f64>, %r: tensor<f64>):
          %c = stablehlo.add %l, %r : tensor<f64>
          stablehlo.return %c : tensor<f64>
      }) : (KIND, tensor<f64>) -> KIND""",
    "scattered": """
      %i = stablehlo.constant dense<[[1], [4], [1]]> : tensor<3x1xi32>
      %u = stablehlo.slice %a [0:3, 0:6] : (KIND) -> tensor<3x6xf64>
      %y = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
        ^bb0(%l: tensor<f64>, %r: tensor<f64>):
          %c = stablehlo.add %l, %r : tensor<f64>
          stablehlo.return %c : tensor<f64>
      }) : (KIND, tensor<3x1xi32>, tensor<3x6xf64>) -> KIND""",
    "products": """
      %o = stablehlo.constant dense<1.0> : tensor<f64>
      %t = stablehlo.reduce(%a init: %o) applies stablehlo.multiply across dimensions = [1] : (KIND, tensor<f64>) -> ROW
      %y = stablehlo.broadcast_in_dim %t, dims = [0] : (ROW) -> KIND""",
    "whole numbers": """
      %i = stablehlo.convert %a : (KIND) -> tensor<6x6xi32>
      %f = stablehlo.convert %i : (tensor<6x6xi32>) -> KIND
      %y = stablehlo.subtract %a, %f : KIND""",
    "a loop": """
      %z = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.while(%n = %z, %v = %a) : tensor<i32>, KIND
        cond {
          %l = stablehlo.constant dense<3> : tensor<i32>
          %c = stablehlo.compare LT, %n, %l : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        } do {
          %o = stablehlo.constant dense<1> : tensor<i32>
          %m = stablehlo.add %n, %o : tensor<i32>
          %w = stablehlo.tanh %v : KIND
          %x = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (KIND, KIND) -> KIND
          stablehlo.return %m, %x : tensor<i32>, KIND
        }
      %y = stablehlo.add %r#1, %a : KIND""",
}


def both(body: str, values: Array) -> list[Blocks]:
    text = f"func.func @main(%a: KIND) -> KIND {{\n{body}\n return %y : KIND\n}}"
    module = load(text.replace("KIND", "tensor<6x6xf64>").replace("ROW", "tensor<6xf64>"))
    with precision(300):
        results = [evaluate(module, [of_dense(values)], 1, real=real).results[0] for real in (INTERVALS, BALLS)]
    assert all(result is not None for result in results)
    return [result for result in results if result is not None]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_programs_on_intervals_hold_what_they_are_on_balls(name: str, scale: float) -> None:
    from_intervals, from_balls = both(PROGRAMS[name], GENERATOR.normal(size=(6, 6)) * scale)
    index = tuple(np.indices((1, 6, 6)))
    found, wanted = (
        each.values[tuple(c[i] for c, i in zip(each.classes, index, strict=True))]
        for each in (from_intervals, from_balls)
    )
    assert hold(found, wanted) and known(found) == 1
    assert intervals.radius(found) <= 1e-9 * float(np.abs(found["low"]).max()) + 1e-300


RANDOM = [*BINARY, *"tanh exponential logistic negate abs floor sine log rsqrt".split()]


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_on_intervals_hold_what_they_are_on_balls(seed: int) -> None:
    generator = np.random.default_rng(seed)
    names, lines = ["%a"], []
    for n in range(12):
        name, operand = str(generator.choice(RANDOM)), lambda: str(generator.choice(names))
        operands = f"{operand()}, {operand()}" if name in BINARY else operand()
        lines.append(f"%v{n} = stablehlo.{name} {operands} : KIND")
        names.append(f"%v{n}")
    lines.append("%y = stablehlo.add %v11, %v10 : KIND")
    found, wanted = (each.values for each in both("\n".join(lines), generator.normal(size=(6, 6))))
    shape = np.broadcast_shapes(found.shape, wanted.shape)
    assert hold(np.broadcast_to(found, shape), np.broadcast_to(wanted, shape))
