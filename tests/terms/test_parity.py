"""What even and odd functions are of a negative argument."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.index import expr
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import named
from hlo_verify.terms.functions import PROPERTIES, real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.parity import direction
from hlo_verify.terms.term import Poly, number, tensor
from tests.support.expressions import data, many, poly, space

X, Y = (tensor("argument", name, "f32", (4,)) for name in "xy")


def at(source: object, key: int) -> Poly:
    return algebra.read(source, (expr.of_var(expr.var("x", key, 4)),))  # type: ignore[arg-type]


@many
@given(draws=st.data())
def test_a_term_and_its_negative_point_in_opposite_directions(draws: st.DataObject) -> None:
    p = poly(draws.draw, space(draws.draw, 2), data(draws.draw), 2).it
    assert direction(algebra.scale(p, -1)) == -direction(p)
    assert direction(algebra.scale(p, 3)) == direction(p)


@pytest.mark.parametrize("kind", range(3))
def test_of_an_argument_and_its_negative(kind: int) -> None:
    x, y = at(X, 0), at(Y, 0)
    p = (x, algebra.add(x, at(X, 1)), algebra.add(algebra.scale(x, 2), y, number(-3)))[kind]
    negative = algebra.scale(p, -1)
    for name in (name for name, of in PROPERTIES.items() if of.even):
        assert apply(real(name), (negative,)) is apply(real(name), (p,))
    for name in (name for name, of in PROPERTIES.items() if of.odd):
        function = real(name)
        assert apply(function, (negative,)) is algebra.scale(apply(function, (p,)), -1)
        assert apply(function, (negative,)) is not apply(function, (p,))
    for n in (-2, 5, 6):
        power, of_negative = (apply(real("power"), (x, number(n))) for x in (p, negative))
        assert of_negative is algebra.scale(power, -1 if n % 2 else 1)


@pytest.mark.parametrize("name", ["exponential_minus_one", "logistic", "floor", "ceil", "rsqrt", "acos", "erfc"])
def test_functions_that_are_neither(name: str) -> None:
    function = real(name)
    value, of_negative = (apply(function, (algebra.scale(at(X, 0), c),)) for c in (1, -1))
    assert of_negative is not value
    assert of_negative is not algebra.scale(value, -1)


def test_a_difference_of_two_places_has_one_definition() -> None:
    """Which of the two was made first makes no difference."""
    one, other = (
        named(algebra.add(apply(real("sine"), (algebra.subtract(at(X, a), at(X, b)),)), at(Y, a)))
        for a, b in ((0, 1), (1, 0))
    )
    (first,), (second,) = ([a for mono, _ in p.items for a, _ in mono] for p in (one, other))
    assert first.tensor is second.tensor  # type: ignore[union-attr]
