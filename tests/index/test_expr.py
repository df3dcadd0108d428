"""Index expressions stand for the numbers that they were built from, for every value of their variables."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from tests.support.evaluate import Evaluator
from tests.support.expressions import Space, affine, assert_equal, evaluated, index, many, renaming, space


@many
@given(data=st.data())
def test_values(data: st.DataObject) -> None:
    where = space(data.draw)
    e = index(data.draw, where, 3)
    assert_equal(evaluated(e.it, where), e.values, e.it)


@many
@given(data=st.data())
def test_range_holds_every_value(data: st.DataObject) -> None:
    where = space(data.draw)
    e = index(data.draw, where)
    assert all(e.it.lo <= x <= e.it.hi for x in e.values.flat)


@many
@given(data=st.data())
def test_quotient_and_remainder(data: st.DataObject) -> None:
    where = space(data.draw)
    e, m = index(data.draw, where), data.draw(st.integers(1, 24))
    q, r = expr.floor_divmod(e.it, m)
    assert_equal(evaluated(q, where), e.values // m, (e.it, m))
    assert_equal(evaluated(r, where), e.values % m, (e.it, m))
    assert expr.add(expr.scale(q, m), r) is e.it or evaluated(expr.add(expr.scale(q, m), r), where).tolist() == (
        e.values.tolist()
    )


@many
@given(data=st.data())
def test_equal_affine_expressions_are_one_object(data: st.DataObject) -> None:
    """Where all breakpoints divide one another."""
    variables = tuple(expr.var("x", n, data.draw(st.sampled_from((2, 4, 8, 16)))) for n in range(2))
    where = Space(variables)
    parts = []
    for v in variables:
        for low in (1, 2, 4, 8):
            if low < v.size:
                parts.append((v, low, data.draw(st.integers(-3, 3))))
    bits = expr.build(0, [i for v, low, c in parts for i in scaled(expr.digit_of(expr.of_var(v), low, 2), c)])
    # The same function, put together the other way round and with digits joined at random.
    other = expr.constant(0)
    for v, low, c in data.draw(st.permutations(parts)):
        other = expr.add(other, expr.scale(expr.modulo(expr.floor_div(expr.of_var(v), low), 2), c))
    assert other is bits
    assert_equal(evaluated(bits, where), sum(c * (where.grid[v] // low % 2) for v, low, c in parts) + where.spread(0))


def scaled(e: expr.Index, c: int) -> list[tuple[expr.Atom, int]]:
    return [(a, k * c) for a, k in e.items]


@many
@given(data=st.data())
def test_digits_join_to_the_variable(data: st.DataObject) -> None:
    v = expr.var("x", "joined", data.draw(st.sampled_from((6, 8, 12, 24, 30))))
    low = data.draw(st.sampled_from([n for n in range(1, v.size + 1) if v.size % n == 0]))
    whole = expr.of_var(v)
    assert expr.add(expr.scale(expr.floor_div(whole, low), low), expr.modulo(whole, low)) is whole


@many
@given(data=st.data())
def test_remainders_of_a_split_variable_are_its_own(data: st.DataObject) -> None:
    """Modulo m, what a digit is multiplied with may be what it takes to continue the digit below."""
    n, h, m = (data.draw(st.sampled_from(each)) for each in ((2, 3, 6, 9, 12), (2, 3, 4), (2, 4, 6, 8)))
    v, c, turns = expr.var("x", "spliced", n * h), data.draw(st.integers(1, 3)), data.draw(st.integers(-2, 2))
    off = data.draw(st.sampled_from((0, 0, 1)))
    whole, factor = expr.of_var(v), c * n + turns * m + off
    high, low = expr.floor_divmod(whole, n)
    found = expr.modulo(expr.add(expr.scale(low, c), expr.scale(high, factor)), m)
    where = Space((v,))
    assert_equal(evaluated(found, where), (c * (where.grid[v] % n) + factor * (where.grid[v] // n)) % m)
    if not off and m % c == 0:
        assert found is expr.modulo(expr.scale(whole, c), m)


@many
@given(data=st.data())
def test_substitution(data: st.DataObject) -> None:
    inner, outer = space(data.draw, kind="y"), space(data.draw)
    e = index(data.draw, outer)
    mapping, places = renaming(data.draw, outer, inner)
    found = expr.substitute(e.it, mapping)
    assert_equal(evaluated(found, inner), e.values[places], (e.it, mapping))


@many
@given(data=st.data())
def test_substitution_outside_of_a_variables_range_is_a_function(data: st.DataObject) -> None:
    """Whatever an expression means there, it is one function: substituting in steps gives the same."""
    inner = space(data.draw, kind="y", most=1)
    v = expr.var("x", "outside", data.draw(st.sampled_from((4, 6, 12))))
    middle = expr.var("z", "outside", 24)
    e = expr.add(expr.of_var(v), expr.constant(data.draw(st.integers(-3, 3))))
    step = expr.shift(expr.of_var(middle), -6)
    place = affine(data.draw, inner)
    inside = expr.modulo(place.it, 24)
    at_once = expr.substitute(e, {v: expr.substitute(step, {middle: inside})})
    in_steps = expr.substitute(expr.substitute(e, {v: step}), {middle: inside})
    assert evaluated(at_once, inner).tolist() == evaluated(in_steps, inner).tolist()


def test_unbounded_parameters_take_negative_values() -> None:
    v = expr.var("s", "test", expr.UNBOUNDED)
    e = expr.floor_div(expr.shift(expr.of_var(v), -3), 4)
    for x in range(-9, 9):
        assert Evaluator({}).index(e, {v: x})[()] == (x - 3) // 4
        assert expr.substitute(e, {v: expr.constant(x)}) is expr.constant((x - 3) // 4)


def test_functions_of_a_digit_with_two_values() -> None:
    """`1 - a` is a remainder, whichever sign a has there."""
    a, b = (expr.floor_div(expr.of_var(expr.var("x", n, 7)), 4) for n in range(2))
    other = expr.subtract(expr.constant(1), a)
    assert expr.modulo(expr.shift(a, 1), 2) is other
    assert expr.floor_divmod(expr.add(expr.scale(b, 2), other), 2) == (b, other)


def test_a_quotient_shows_where_parts_of_digits_are_taken_away() -> None:
    """Of which device a permutation reads: 64*h + a - 32*b + 32, of a below 32 and b below 2, has h in 64."""
    v = expr.var("d", "", 512)
    d = expr.of_var(v)
    high, low, middle = expr.floor_div(d, 64), expr.modulo(d, 32), expr.modulo(expr.floor_div(d, 32), 2)
    e = expr.shift(expr.add(expr.scale(high, 64), low, expr.scale(middle, -32)), 32)
    for factor in (1, 4):
        assert expr.floor_div(expr.scale(e, factor), 64 * factor) is high
    for n in range(512):
        at = {v: expr.constant(n)}
        whole, rest = (expr.substitute(part, at).const for part in expr.floor_divmod(e, 64))
        assert (whole, rest) == divmod(expr.substitute(e, at).const, 64)


def test_parts_of_what_is_looked_up_are_put_together() -> None:
    """Of a number that only a table knows, or one that may be negative."""
    v = expr.var("x", "", 9)
    for numbers in ((5, 3, 17, 40, 31, 2, 63, 8, 11), (-5, 3, -17, 40, -31, 2, 63, -8, 0)):
        e = expr.table(numbers, expr.of_var(v))
        half, quarter = expr.floor_div(e, 2), expr.floor_div(e, 4)
        middle = expr.modulo(half, 4)
        assert expr.add(expr.scale(middle, 2), expr.modulo(e, 2)) is expr.modulo(e, 8)
        assert expr.floor_div(half, 2) is quarter
        for other in (expr.add(middle, expr.modulo(e, 2)), expr.add(expr.scale(middle, 2), expr.modulo(e, 4))):
            assert other is not expr.modulo(e, 8)
        digits = expr.add(expr.scale(middle, 6), expr.scale(expr.modulo(e, 2), 3))
        for n, number in enumerate(numbers):
            assert Evaluator({}).index(expr.floor_div(half, 3), {v: n})[()] == number // 6
            assert Evaluator({}).index(digits, {v: n})[()] == 3 * (number % 8)
