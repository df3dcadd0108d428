"""What is known of sums of floats of which the user says where they lie, against numbers."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
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


TABLES = [(0.9, 0.5, 0.25), (0.1, -2.0, 1.0), (1.0, 1.0, 1.0), (-0.5, -3.0, -0.125)]


@pytest.mark.parametrize(("table", "dtype"), [*product(TABLES, ["float32", "float64", "bfloat16"])])
@pytest.mark.parametrize(("c", "added"), [(-1, 1), (1, 0), (2, Fraction(1, 2)), (Fraction(-1, 3), -1)])
def test_sums_of_a_constants_elements_lie_within(
    table: tuple[float, ...], dtype: str, c: int | Fraction, added: int | Fraction
) -> None:
    """`1 - c[i]` is positive where all elements of the constant are below 1, whichever is read."""
    values = np.array(table, getattr(ml_dtypes, dtype, dtype))
    with Session().on():
        source = tensor("constant", "c", {"float32": "f32", "float64": "f64", "bfloat16": "bf16"}[dtype], (3,))
        source.values = values
        place = expr.of_var(expr.var("i", 0, 3))
        p = algebra.add(algebra.scale(algebra.read(source, (place,)), c), number(added))
        known = assumed_bounds.of_sum(p)
        found = [c * Fraction(float(x)) + added for x in values]
        assert known is not None
        assert (known.least, known.greatest) == (min(found), max(found))
        some = {(x > 0) - (x < 0) for x in found}
        said = signs.of(p)
        assert all(said & {-1: signs.NEGATIVE, 0: signs.ZERO, 1: signs.POSITIVE}[sign] for sign in some)


@pytest.mark.parametrize("odd", [float("inf"), float("-inf"), float("nan")])
def test_nothing_is_known_of_a_constant_with_what_is_no_number(odd: float) -> None:
    with Session().on():
        source = tensor("constant", "c", "f32", (2,))
        source.values = np.array([0.5, odd], np.float32)
        place = expr.of_var(expr.var("i", 0, 2))
        assert assumed_bounds.of_sum(algebra.subtract(ONE, algebra.read(source, (place,)))) is None


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


def _noise_loss(
    rows: jax.Array, noise: jax.Array, steps: jax.Array, kept: tuple[float, ...], one_hot: bool, shift: int = 0
) -> jax.Array:
    """A diffusion's loss, weighed by the ratio of what is kept of a signal at a step to what is noise there."""
    table = jnp.array(kept, jnp.float32)
    shares = jnp.take(table, (steps + shift) % len(kept) if shift else steps)
    embedded = jax.nn.one_hot(steps, len(kept)) @ rows if one_hot else rows[steps]
    return jnp.sum(shares / (1 - shares) * jnp.sum(embedded * noise, axis=1))


@pytest.mark.parametrize(
    ("kept", "shift", "expected"),
    [
        ((0.9, 0.5, 0.25, 0.125), 0, Verdict.PROVED),
        ((1.5, 2.5, 3.0, 8.0), 0, Verdict.PROVED),
        ((0.9, 0.5, 0.25, 0.125), 1, Verdict.REFUTED),
    ],
)
def test_weights_of_steps_by_a_table(kept: tuple[float, ...], shift: int, expected: Verdict) -> None:
    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))

    def reference(rows: jax.Array, noise: jax.Array, steps: jax.Array) -> jax.Array:
        return jax.grad(_noise_loss)(rows, noise, steps, kept, False)

    @partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("x"), P("x")), out_specs=P())
    def split(rows: jax.Array, noise: jax.Array, steps: jax.Array) -> jax.Array:
        return jax.grad(_noise_loss)(rows, noise, steps, kept, True, shift)

    shapes = [jax.ShapeDtypeStruct((n, 2), jnp.float32) for n in (4, 6)]
    steps = jax.ShapeDtypeStruct((6,), jnp.int32)
    found = hlo_verify.check(reference, split, *shapes, steps, assume={"steps": (0, 4)})
    assert found.verdict is expected
