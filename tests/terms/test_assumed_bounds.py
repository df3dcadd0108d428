"""What is known of sums of floats of which the user says where they lie, against numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from hlo_verify.index import expr
from hlo_verify.program.allowed_values import Values
from hlo_verify.session import Session
from hlo_verify.terms import algebra, assumed_bounds, signs
from hlo_verify.terms.assumed_bounds import are_never_above
from hlo_verify.terms.functions import MAXIMUM, MINIMUM, real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, Poly, make_ix, number, of_atom, tensor

RANGES = [
    Values(0, None, (True, False)),
    Values(0),
    Values(None, -1),
    Values(Fraction(-1, 2), 1, (False, True)),
    Values(0, 1, (True, False)),
]
FAR = 7


def _samples(values: Values) -> list[Fraction]:
    steps = [Fraction(n, 8) for n in range(-8 * FAR, 8 * FAR + 1)]
    return [x for x in steps if values.admits(float(x), float(x))]


def _read(values: Values | None) -> Poly:
    return algebra.read(tensor("argument", "x", "f32", (), assumed=values), ())


@pytest.mark.drawn(30)
@pytest.mark.parametrize(("one", "other"), [*product(RANGES, RANGES)])
@pytest.mark.parametrize(("a", "b", "c"), [(1, 1, 0), (2, -3, 1), (-1, Fraction(1, 2), Fraction(-1, 2))])
def test_all_sums_lie_within(one: Values, other: Values, a: int, b: int | Fraction, c: int | Fraction) -> None:
    with Session().on():
        p = algebra.add(algebra.scale(_read(one), a), algebra.scale(_read(other), b), number(c))
        known = assumed_bounds.of_sum(p)
        found = {a * x + b * y + c for x in _samples(one) for y in _samples(other)}
        assert known is not None
        assert all(known.admits(float(n), float(n)) for n in found)
        some = {(n > 0) - (n < 0) for n in found}
        said = signs.of(p)
        assert all(said & {-1: signs.NEGATIVE, 0: signs.ZERO, 1: signs.POSITIVE}[sign] for sign in some)


def test_nothing_is_known_of_others() -> None:
    with Session().on():
        x = _read(Values(0))
        assert assumed_bounds.of_sum(_read(None)) is None
        assert assumed_bounds.of_sum(algebra.multiply(x, x)) is None
        assert assumed_bounds.of_sum(algebra.add(x, _read(None))) is None


@pytest.mark.parametrize(("one", "other"), [*product(RANGES, RANGES)])
def test_the_greater_of_two(one: Values, other: Values) -> None:
    """An extremum leaves out what is never beyond the other, and nothing else."""
    with Session().on():
        x, y = _read(one), _read(other)
        below = max(_samples(one)) <= min(_samples(other)) and other.least is not None and one.greatest is not None
        above = max(_samples(other)) <= min(_samples(one)) and one.least is not None and other.greatest is not None
        assert (apply(MAXIMUM, (x, y)) in (x, y)) == (below or above)
        assert (apply(MINIMUM, (x, y)) is x) == below
        assert are_never_above(one, other) == below


@pytest.mark.parametrize("base", [Fraction(19, 20), Fraction(999, 1000), Fraction(21, 20), Fraction(1)])
@pytest.mark.parametrize(("least", "greatest"), [(1, 100), (0, 100), (-1, 100), (-9, -1), (None, 5)])
@pytest.mark.parametrize("beside", [1, Fraction(1, 2), 2])
def test_what_corrects_a_bias_has_the_sign_that_its_steps_say(
    base: Fraction, least: int | None, greatest: int, beside: int | Fraction
) -> None:
    """`1 - 0.95**t` is positive for steps from 1, and 0 at 0; of `2 - 0.95**t` and `1/2 - 0.95**t` less is known."""
    with Session().on():
        t = _read(Values(least, greatest))
        power = ONE if base == 1 else apply(real("power"), (number(base), t))
        p = algebra.subtract(number(beside), power)
        values = {beside - float(base) ** float(x) for x in _samples(Values(least, greatest))}
        some = {(x > 0) - (x < 0) for x in values}
        said = signs.of(p)
        assert all(said & {-1: signs.NEGATIVE, 0: signs.ZERO, 1: signs.POSITIVE}[sign] for sign in some)
        if beside == 1 and base < 1 and least in (0, 1):
            assert said == (signs.POSITIVE if least == 1 else signs.POSITIVE | signs.ZERO)


@pytest.mark.parametrize(("c", "added"), [(1, 0), (1, Fraction(1, 2)), (-1, 3), (-1, 4), (2, -1)])
def test_sums_of_places_have_the_signs_that_their_ranges_say(c: int, added: int | Fraction) -> None:
    with Session().on():
        place = of_atom(make_ix(expr.of_var(expr.var("i", 0, 4))))
        p = algebra.add(algebra.scale(place, c), number(added))
        some = {(x > 0) - (x < 0) for x in (c * i + added for i in range(4))}
        said = signs.of(p)
        assert all(said & {-1: signs.NEGATIVE, 0: signs.ZERO, 1: signs.POSITIVE}[sign] for sign in some)
        assert (1 in some and -1 in some) or bool(said & signs.NEGATIVE) + bool(said & signs.POSITIVE) < 2
