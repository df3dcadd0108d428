"""What case distinction shows to be equal is equal at every point."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.equality import cases
from hlo_verify.equality.effort import Effort
from hlo_verify.index import expr
from hlo_verify.limits import Limits
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.functions import POSITIVE, Function
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, tensor
from tests.support import recipes
from tests.support.expressions import many
from tests.support.recipes import Builder, Draw, Recipe, computed


def check(one: Recipe, other: Recipe, sizes: list[int], seed: int, inside: Recipe = ("number", 1)) -> tuple[bool, bool]:
    """Whether two functions are found equal where a condition holds, and whether they are."""
    builder, way = Builder(), random.Random(seed)
    variables = tuple(expr.of_var(expr.var("x", n, size)) for n, size in enumerate(sizes))
    left, right, where = (builder.build(r, variables, way) for r in (one, other, inside))
    found = cases.equal(left, right, where)
    points = [p for p in np.ndindex(*sizes) if computed(inside, p)]
    return found, all(computed(one, p) == computed(other, p) for p in points)


def compare(draw: Draw, one: Recipe, other: Recipe, sizes: list[int], guarded: bool) -> tuple[bool, bool]:
    inside: Recipe = recipes.condition(draw, len(sizes)) if guarded else ("number", 1)
    return check(one, other, sizes, draw(st.integers(0, 2**16)), inside)


def draw_sizes(draw: Draw) -> list[int]:
    return list(draw(st.lists(st.sampled_from((1, 2, 3, 4, 6)), min_size=1, max_size=2)))


@many
@given(data=st.data())
def test_what_is_found_equal_is_equal(data: st.DataObject) -> None:
    """A function, and one that differs in a number, a name or the order of operands."""
    sizes = draw_sizes(data.draw)
    one = recipes.recipe(data.draw, len(sizes), data.draw(st.integers(1, 3)))
    other = recipes.mutated(data.draw, one)
    found, true = compare(data.draw, one, other, sizes, data.draw(st.booleans()))
    assert true or not found, (one, other, sizes)


@many
@given(data=st.data())
def test_unlike_functions(data: st.DataObject) -> None:
    sizes = draw_sizes(data.draw)
    one, other = (recipes.recipe(data.draw, len(sizes), data.draw(st.integers(0, 2))) for _ in range(2))
    found, true = compare(data.draw, one, other, sizes, data.draw(st.booleans()))
    assert true or not found, (one, other, sizes)


V = ("affine", 0, ((0, 1),))
A, B = ("read", "a", V), ("read", "b", V)


def shifted(by: int) -> Recipe:
    return ("affine", by, ((0, 1),))


def halves(cut: int) -> Recipe:
    """`v < cut ? a[v] : b[v]`"""
    return ("select", ("within", V, 0, cut - 1), A, B)


def padded(size: int, kind: str = "sum") -> Recipe:
    """The sum of `a[v]` where v is inside."""
    inside = ("within", ("affine", 0, ((1, 1),)), 0, size - 1)
    return (kind, 7, ("select", inside, ("read", "a", ("affine", 0, ((1, 1),))), ("number", 0)))


def row(by: int, *more: tuple[int, int]) -> Recipe:
    """A function, without algebra, of `c[v][by + w]` for the bound variable w, and of more variables."""
    return ("apply", "unknown", ("read", "c", V, ("affine", by, ((1, 1), *more))))


def turns(*starts: int, size: int = 2) -> Recipe:
    """The sums over a few rows each, one after the other."""
    first, *others = (("sum", size, row(start)) for start in starts)
    total: Recipe = first
    for other in others:
        total = ("add", total, other)
    return total


def every_other(*starts: int) -> Recipe:
    """Turns that each take two of six rows from two devices: row `6*d + 2*m + w` in turn m."""
    first, *others = (("sum", 2, ("sum", 2, row(start, (2, 6)))) for start in starts)
    total: Recipe = first
    for other in others:
        total = ("add", total, other)
    return total


def windows(most: int, past: int) -> tuple[Recipe, Recipe]:
    """Where `v <= most`, the greatest of `a[v + w]` for `w < 2`: one reads `a[0]` from `past` on."""
    reach: Recipe = ("affine", 0, ((0, 1), (1, 1)))
    here: Recipe = ("within", V, 0, most)
    one = ("max", 2, ("select", ("within", reach, 0, past - 1), ("read", "a", reach), ("read", "a", ("affine", 0, ()))))
    return ("select", here, one, B), ("select", here, ("max", 2, ("read", "a", reach)), B)


PAIRS = {
    "windows that end before what differs": (*windows(2, 4), True),
    "windows that reach what differs": (*windows(3, 4), False),
    "windows far from what differs": (*windows(1, 5), True),
    "turn by turn": (("sum", 6, row(0)), turns(0, 2, 4), True),
    "turn by turn, times a number": (
        ("multiply", ("number", 3), ("sum", 6, row(0))),
        ("multiply", ("number", 3), turns(4, 0, 2)),
        True,
    ),
    "turns of every device": (("sum", 12, row(0)), every_other(0, 2, 4), True),
    "a turn too few": (("sum", 6, row(0)), turns(0, 2), False),
    "a turn twice": (("sum", 6, row(0)), turns(0, 2, 2), False),
    "a turn too many": (("sum", 6, row(0)), turns(0, 2, 4, 6), False),
    "a turn shifted": (("sum", 6, row(0)), turns(0, 2, 5), False),
    "a turn with a factor": (
        ("sum", 6, row(0)),
        ("add", turns(0, 2), ("multiply", ("number", 2), ("sum", 2, row(4)))),
        False,
    ),
    "turns that overlap": (("sum", 12, row(0)), every_other(0, 2, 3), False),
    "cases": (halves(3), ("select", ("within", V, 3, 9), B, A), True),
    "cases, one off": (halves(3), ("select", ("within", V, 2, 9), B, A), False),
    "clamp where nothing is cut": (
        ("select", ("within", V, 0, 3), ("read", "a", ("clamp", V, 0, 3)), B),
        ("select", ("within", V, 0, 3), A, B),
        True,
    ),
    "clamp where something is": (
        ("select", ("within", V, 0, 4), ("read", "a", ("clamp", V, 0, 3)), B),
        ("select", ("within", V, 0, 4), A, B),
        False,
    ),
    "wrapped around": (
        ("read", "a", ("mod", shifted(1), 6)),
        ("select", ("within", V, 5, 5), ("read", "a", ("affine", 0, ())), ("read", "a", shifted(1))),
        True,
    ),
    "not wrapped around": (("read", "a", ("mod", shifted(1), 6)), ("read", "a", shifted(1)), False),
    "masked sums": (padded(4), ("sum", 4, ("read", "a", ("affine", 0, ((1, 1),)))), True),
    "masked sums, one off": (padded(4), ("sum", 5, ("read", "a", ("affine", 0, ((1, 1),)))), False),
    "masked maxima": (padded(4, "max"), ("max", 4, ("read", "a", ("affine", 0, ((1, 1),)))), False),
    "repeated": (
        ("sum", 4, ("read", "a", ("mod", ("affine", 0, ((1, 1),)), 2))),
        ("sum", 2, ("read", "a", ("affine", 0, ((1, 1),)))),
        False,
    ),
    "counted": (
        ("sum", 4, ("read", "a", ("mod", ("affine", 0, ((1, 1),)), 2))),
        ("multiply", ("number", 2), ("sum", 2, ("read", "a", ("affine", 0, ((1, 1),))))),
        True,
    ),
}


@pytest.mark.drawn(12)
@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str) -> None:
    """Here it is known what should be found, too."""
    one, other, wanted = PAIRS[name]
    for seed in range(8):
        found, true = check(one, other, [6], seed)
        assert found is wanted and (true or not found), seed


def test_only_inside() -> None:
    builder, way = Builder(), random.Random(0)
    x = (expr.of_var(expr.var("x", 0, 6)),)
    terms = [builder.build(r, x, way) for r in (halves(3), A, ("within", V, 0, 2), ("within", V, 0, 3))]
    assert cases.equal(terms[0], terms[1], terms[2])
    assert not cases.equal(terms[0], terms[1], terms[3])
    assert cases.vanishes(algebra.multiply(terms[2], algebra.subtract(terms[0], terms[1])), Effort(100))


def test_without_effort_nothing_is_found() -> None:
    builder, way = Builder(), random.Random(0)
    x = (expr.of_var(expr.var("x", 0, 6)),)
    one, other, _ = PAIRS["cases"]
    terms = [builder.build(r, x, way) for r in (("apply", "unknown", one), ("apply", "unknown", other))]
    difference = algebra.subtract(*terms)
    assert difference is algebra.ZERO or not cases.vanishes(difference, Effort(1))
    total = Effort(3)
    assert terms[0] is terms[1] or not cases.equal(*terms, total=Effort(0))
    cases.equal(builder.build(PAIRS["masked maxima"][0], x, way), builder.build(halves(2), x, way), total=total)
    assert total.left >= -1


def layers(factor: int) -> Poly:
    """Each of three maxima of every layer is made of all three of the layer below."""
    v, a = expr.var("x", 9, 8), tensor("argument", "a", "f32", (8,))
    x = algebra.read(a, [expr.of_var(v)])

    def greatest(*terms: Poly) -> Poly:
        return reduce_extremum("max", [v], apply(Function("unknown"), (algebra.add(x, *terms),)))

    below = [greatest(algebra.scale(x, factor + n)) for n in range(3)]
    for _ in range(4):
        below = [greatest(*(algebra.scale(y, 3 * n + k) for k, y in enumerate(below, 1))) for n in range(3)]
    return algebra.add(*below)


def test_the_same_question_is_not_asked_again() -> None:
    """What was refused once is refused wherever it comes up, or the work would grow with every layer."""
    total = Effort(1000)
    assert not cases.equal(layers(2), layers(7), total=total)
    assert total.left > 900


@pytest.mark.parametrize(("changed", "equal"), [(None, True), (0, False), (5, False), (7, False)])
def test_irregular_tables_are_compared_value_by_value(changed: int | None, equal: bool) -> None:
    values = (3, 1, 4, 1, 5, 9, 2, 6)
    d = expr.of_var(expr.var("d", "", 8))
    x = tensor("argument", "x", "f32", (10,))
    looked_up = algebra.read(x, [expr.table(values, d)])
    spelled = algebra.ZERO
    for n, value in enumerate(values):
        at = expr.constant(value if n != changed else value + 1)
        spelled = algebra.add(spelled, algebra.multiply(guards.interval(d, n, n), algebra.read(x, [at])))
    assert cases.equal(looked_up, spelled) is equal


def test_guards_that_come_back_are_not_decided_again() -> None:
    """On three forms of one variable: where one is decided, the sum of the others is a step function that has it."""
    x = expr.of_var(expr.var("x", 0, 6))
    halves, thirds = expr.floor_div(x, 3), expr.floor_div(x, 2)
    number = algebra.as_index(algebra.read(tensor("argument", "n", "i32", (6,)), (x,)), -(1 << 31), (1 << 31) - 1)
    large = guards.interval(number, 3, None)  # the first that is decided
    steps = algebra.add(
        algebra.scale(guards.interval(halves, 1, None), -1),
        algebra.scale(guards.interval(x, 2, 2), -851),
        algebra.scale(guards.interval(thirds, None, 0), -96),
    )
    asked = Effort(Limits().comparison_steps)
    assert not cases.equal(large, apply(POSITIVE, (steps,)), total=asked)
    assert Limits().comparison_steps - asked.left < 100
