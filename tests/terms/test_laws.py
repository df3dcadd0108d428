"""Every law of a function holds for numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.session import Session
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import define
from hlo_verify.terms.functions import EXPONENTIAL, INFINITY, INVERSE, LOG, MAXIMUM, MINIMUM, typed
from hlo_verify.terms.laws import LAWS, apply, divide, greater
from hlo_verify.terms.products import MULTIPLY
from hlo_verify.terms.term import ONE, ZERO, Guard, Ix, Poly, number, reads, tensor
from tests.support.expressions import (
    Data,
    Draw,
    Numbered,
    Space,
    assert_equal,
    data,
    each,
    evaluated,
    index,
    many,
    poly,
    read,
    space,
)
from tests.support.functions import call, function


def positive(draw: Draw, where: Space, known: Data, depth: int = 2) -> Numbered:
    """A term whose values are all positive: sums, products, quotients and exponentials of such."""
    if depth == 0:
        source = read(draw, where, known, "positive")
        return Numbered(algebra.add(source.it, number(1)), source.values + 1)
    kind = draw(st.sampled_from(("leaf", "add", "multiply", "scale", "exp", "inverse", "exp of a sum")))
    if kind == "leaf":
        return positive(draw, where, known, 0)
    a, b = positive(draw, where, known, depth - 1), positive(draw, where, known, depth - 1)
    if kind == "add":
        return Numbered(algebra.add(a.it, b.it), a.values + b.values)
    if kind == "multiply":
        return Numbered(algebra.multiply(a.it, b.it), a.values * b.values)
    if kind == "inverse":
        return Numbered(apply(INVERSE, (a.it,)), each(lambda x: call("inverse", (x,)), a.values))
    c = Fraction(draw(st.integers(1, 4)), draw(st.integers(1, 3)))
    if kind == "scale":
        return Numbered(algebra.scale(a.it, c), a.values * c)
    p = read(draw, where, known)
    exponent, values = algebra.scale(p.it, c / 4), p.values * (c / 4)
    if kind == "exp of a sum":
        q = read(draw, where, known)
        exponent, values = algebra.subtract(exponent, q.it), values - q.values
    return Numbered(apply(EXPONENTIAL, (exponent,)), each(lambda x: call("exponential", (x,)), values))


def integer(draw: Draw, where: Space, known: Data) -> Numbered:
    """A sum of multiples of indices and of integers that tensors hold."""
    e = index(draw, where)
    total, values = algebra.of_index(e.it), e.values
    for _ in range(draw(st.integers(0, 2))):
        part, c = read(draw, where, known, "i8"), draw(st.integers(-3, 3))
        total, values = algebra.add(total, algebra.scale(part.it, c)), values + c * part.values
    return Numbered(total, values)


def arguments(draw: Draw, name: str, where: Space, known: Data) -> list[Numbered]:
    plain = name.partition(":")[0]
    if plain in ("inverse", "log", "sqrt", "rsqrt", "log_plus_one", "lgamma", "digamma"):
        return [positive(draw, where, known)]
    if plain == "acosh":
        above = positive(draw, where, known)
        return [Numbered(algebra.add(above.it, number(1)), above.values + 1)]
    if name in ("power", "power:real->real"):
        exponent = draw(st.integers(-3, 3))
        is_named = name == "power"
        base = positive(draw, where, known) if is_named or exponent < 0 else poly(draw, where, known, 1)
        sign = draw(st.sampled_from((1,) if is_named else (1, -1)))
        base = Numbered(algebra.scale(base.it, sign), base.values * sign)
        return [base, Numbered(number(exponent), where.spread(exponent))]
    if plain in ("acos", "asin", "atanh", "erf_inv"):  # between -1 and 1
        bottom, sign = positive(draw, where, known), draw(st.sampled_from((1, -1)))
        values = each(lambda x: sign / (1 + x), bottom.values)
        return [Numbered(algebra.scale(apply(INVERSE, (algebra.add(bottom.it, number(1)),)), sign), values)]
    if name in ("exponential", "logistic:real->real"):  # exponents whose powers are floats
        parts = [read(draw, where, known) for _ in range(draw(st.integers(1, 3)))]
        total, values = algebra.ZERO, where.spread(0)
        for p in parts:
            c = Fraction(draw(st.integers(-3, 3)), 2)
            total, values = algebra.add(total, algebra.scale(p.it, c)), values + c * p.values
        return [Numbered(total, values)]
    if name.startswith("wrap:"):
        return [integer(draw, where, known)]
    count = 2 if plain in ("maximum", "minimum", "equal", "less", "less_or_equal", MULTIPLY.name) else 1
    args = [poly(draw, where, known, 1) for _ in range(count)]
    return args if draw(st.integers(0, 4)) else [args[0]] * count


@pytest.mark.drawn(20)
@pytest.mark.parametrize("name", sorted(map(str, LAWS)))
@many
@given(draws=st.data())
def test_law(name: str, draws: st.DataObject) -> None:
    where, known = space(draws.draw, 2), data(draws.draw)
    args = arguments(draws.draw, name, where, known)
    found = apply(function(name), tuple(a.it for a in args))
    wanted = each(lambda *xs: call(name, xs), *(a.values for a in args))
    assert_equal(evaluated(found, where, known.evaluator), wanted, (name, [a.it for a in args], found))


@many
@given(draws=st.data())
def test_nested_laws(draws: st.DataObject) -> None:
    where, known = space(draws.draw, 2), data(draws.draw)
    p = positive(draws.draw, where, known, 3)
    assert_equal(evaluated(p.it, where, known.evaluator), p.values, p.it)
    logarithm = apply(LOG, (p.it,))
    assert_equal(evaluated(logarithm, where, known.evaluator), each(lambda x: call("log", (x,)), p.values), logarithm)


@many
@given(draws=st.data())
def test_quotients_and_comparisons(draws: st.DataObject) -> None:
    where, known = space(draws.draw, 2), data(draws.draw)
    a, b = poly(draws.draw, where, known, 1), positive(draws.draw, where, known)
    quotient = each(lambda x, y: x / y, a.values, b.values)
    assert_equal(evaluated(divide(a.it, b.it), where, known.evaluator), quotient, (a.it, b.it))
    c = poly(draws.draw, where, known, 1)
    wanted = each(lambda x, y: int(x > y), a.values, c.values)
    assert_equal(evaluated(greater(a.it, c.it), where, known.evaluator), wanted, (a.it, c.it))


@many
@given(draws=st.data())
def test_extrema_are_associative_commutative_and_idempotent(draws: st.DataObject) -> None:
    where, known = space(draws.draw, 1), data(draws.draw)
    name = draws.draw(st.sampled_from(("maximum", "minimum")))
    a, b, c = (poly(draws.draw, where, known, 0) for _ in range(3))
    once = apply(function(name), (a.it, apply(function(name), (b.it, c.it))))
    again = apply(function(name), (apply(function(name), (c.it, a.it)), apply(function(name), (b.it, a.it))))
    worst = algebra.scale(apply(INFINITY, ()), -1 if name == "maximum" else 1)
    wanted = each(lambda *xs: call(name, xs), a.values, b.values, c.values)
    for found in (once, again, apply(function(name), (worst, once))):
        assert_equal(evaluated(found, where, known.evaluator), wanted, (name, a.it, b.it, c.it, found))
    # Step functions and integers are taken apart in an order that depends on the nesting; other terms are one object.
    if not any(isinstance(atom, Guard | Ix) for p in (a, b, c) for mono, _ in p.it.items for atom, _ in mono):
        assert again is once
        assert apply(function(name), (worst, once)) is once


def test_extrema_leave_out_what_is_never_beyond_another_term() -> None:
    """A truth value t is at least 0 and at most 1: found in any order, with the constants or after them."""
    t = algebra.read(tensor("argument", "t", "i1", ()), ())
    low = algebra.of_index(expr.scale(expr.of_var(expr.var("x", "", 2)), -12))
    assert apply(MAXIMUM, (t, low)) is t
    assert apply(MAXIMUM, (apply(MAXIMUM, (low, number(1))), t)) is number(1)
    assert apply(MINIMUM, (t, algebra.scale(low, -1))) is not t
    assert apply(MINIMUM, (t, algebra.add(number(1), algebra.scale(low, -1)))) is t


def test_infinity_is_no_number() -> None:
    for k in (0, 5, -(2**31)):
        assert apply(MAXIMUM, (number(k), apply(INFINITY, ()))) is not number(k)


def test_a_function_of_a_step_function_ends() -> None:
    """Where `low >= 2` the rest is a step function on `form` whose first piece is `low >= 2` again."""
    x = expr.of_var(expr.var("x", "step", 12))
    low = expr.digit_of(x, 1, 3)
    form = expr.add(expr.scale(expr.digit_of(x, 4, 2), 2), expr.digit_of(x, 1, 4), expr.scale(low, -6))
    p = algebra.add(
        guards.interval(low, 2, None),
        algebra.scale(guards.interval(form, -6, 0), 41),
        algebra.scale(guards.interval(form, 1, None), 40),
    )
    where = Space((expr.var("x", "step", 12),))
    values = evaluated(p, where)
    for name in ("abs", "tanh:real->real"):
        wanted = each(lambda v, name=name: call(name, (v,)), values)
        assert_equal(evaluated(apply(function(name), (p,)), where), wanted, name)


@pytest.mark.parametrize("is_read", [True, False])
def test_constants_bound_integers_in_any_order(is_read: bool) -> None:
    read = algebra.read(tensor("argument", "n", "i8", ()), ())
    n = algebra.as_index(read, -128, 127) if is_read else expr.shift(expr.of_var(expr.var("x", 0, 128)), -64)
    integer, real = algebra.of_index(n), algebra.read(tensor("argument", "x", "f32", ()), ())
    assert not is_read or integer is read
    low, high = number(0), number(7)
    bounded = algebra.of_index(expr.clamp(n, 0, 7))
    assert apply(MINIMUM, (high, apply(MAXIMUM, (low, integer)))) is bounded
    assert apply(MAXIMUM, (apply(MINIMUM, (integer, high)), low)) is bounded
    nested = {apply(MAXIMUM, (a, apply(MAXIMUM, (b, c)))) for a, b, c in permutations((low, integer, real))}
    assert len(nested) == 1
    assert apply(MAXIMUM, (number(Fraction(1, 2)), integer)) is not integer
    assert apply(MAXIMUM, (number(200), integer)) is number(200)
    assert apply(MAXIMUM, (number(-200), integer)) is integer


def test_constants_do_not_bound_what_is_defined() -> None:
    """Where a definition is bounded as an integer, nothing that looks for its reads would find it."""
    v = expr.var("x", 0, 4)
    body = algebra.read(tensor("argument", "n", "i32", (4,)), (expr.of_var(v),))
    at = (expr.of_var(expr.var("y", 0, 4)),)
    largest = define("sort", [v], (body,), at=at, ordered=True, dtype="i32")
    bounded = apply(MAXIMUM, (largest, number(7)))
    assert reads(bounded) == reads(largest)
    assert apply(MAXIMUM, (number(7), largest)) is bounded


def test_a_function_of_steps_on_many_forms_is_one_term() -> None:
    """Two pieces for each of them would be very many."""
    steps = [guards.interval(expr.of_var(expr.var("x", n, 4)), 2, None) for n in range(10)]
    many = algebra.add(*(algebra.scale(step, n + 2) for n, step in enumerate(steps)))
    assert len(apply(INVERSE, (many,)).items) == 1
    few = algebra.add(number(1), *(algebra.scale(step, n + 2) for n, step in enumerate(steps[:2])))
    assert len(apply(INVERSE, (few,)).items) > 1


def test_an_extremum_of_many_choices_is_not_taken_apart() -> None:
    """Of two choices it is: of three values each, by eight integers, there would be 6561 cases."""
    with Session().on() as session:
        v = expr.fresh("f", 8)
        truths = algebra.read(tensor("argument", "k", "i8", (8,)), [expr.of_var(v)])
        each_place = [algebra.substitute(truths, {v: expr.constant(n)}) for n in range(8)]
        choices = []
        for n, k in enumerate(each_place):
            key = algebra.as_index(k, -128, 127)
            above = guards.interval(key, 1, None)
            choices.append(algebra.add(algebra.scale(above, n + 1), algebra.scale(guards.interval(key, None, -1), -2)))
        whole = apply(MINIMUM, tuple(choices))
        assert len(whole.items) < 20
        assert "step_forms" in session.spent().limits
        assert len(apply(MINIMUM, tuple(choices[:2])).items) > 1


@pytest.mark.parametrize("shift", [0, 1])
def test_step_functions_of_the_same_places_are_taken_apart_together(shift: int) -> None:
    """81 places, not 81 for each argument: all that is built on the way is in the result, or nearly so."""
    with Session().on() as session:
        x = tensor("argument", "x", "i8", (4,))
        places = [expr.of_var(expr.var("i", n, 9)) for n in range(4)]

        def steps(first: int) -> Poly:
            held = (guards.interval(e, 3, 5) for e in places)
            return algebra.add(
                *(algebra.multiply(on, algebra.read(x, (expr.constant((n + first) % 4),))) for n, on in enumerate(held))
            )

        arguments = steps(0), steps(shift)
        before = len(session.memory.values["terms"])
        found = apply(typed("and", ("i8", "i8"), "i8"), arguments)
        assert len(found.items) == 81
        assert len(session.memory.values["terms"]) - before < 3 * 81


def test_a_positive_part_has_the_sign_of_what_it_is_without_a_positive_factor() -> None:
    x, y, s = (algebra.read(tensor("argument", name, "f32", ()), ()) for name in "xys")
    most = apply(EXPONENTIAL, (s,))
    for total in (algebra.add(most, ONE), define("sum", (), (algebra.add(most, ONE),))):
        p = algebra.multiply(algebra.subtract(x, y), apply(INVERSE, (total,)))
        part = apply(MAXIMUM, (ZERO, p))
        assert algebra.multiply(part, greater(x, y)) is part
        assert algebra.multiply(part, greater(p, ZERO)) is part
        assert algebra.multiply(part, greater(y, x)) is not part
        assert algebra.multiply(apply(MAXIMUM, (ZERO, algebra.scale(p, -1))), greater(x, y)) is not part


@pytest.mark.parametrize("doubtful", [False, True])
def test_a_clamp_of_what_is_clamped_is_one(doubtful: bool) -> None:
    """Compilers clamp again what they convert to 8 bits; either bound may come first."""
    x = algebra.read(tensor("argument", "x", "f32", (4,)), (expr.of_var(expr.var("p", 0, 4)),))
    given = divide(ONE, x) if doubtful else x
    low, high = number(-448), number(448)
    once = apply(MINIMUM, (high, apply(MAXIMUM, (low, given))))
    assert apply(MAXIMUM, (low, apply(MINIMUM, (high, given)))) is once
    assert apply(MAXIMUM, (low, once)) is once
    assert apply(MINIMUM, (high, once)) is once
    assert apply(MAXIMUM, (number(-400), once)) is not once
    crossed = apply(MAXIMUM, (high, apply(MINIMUM, (low, given))))
    assert crossed is not once and crossed is not apply(MINIMUM, (low, apply(MAXIMUM, (high, given))))
