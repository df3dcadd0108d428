"""Functions of real numbers in other spellings: what is proved of them, and what is not."""

from __future__ import annotations

import random
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.nn import log_sigmoid, relu, sigmoid, softplus
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality.effort import Effort
from hlo_verify.equality.scalars import is_zero
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import ABS, LOG, real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import number, tensor
from tests.support.lowering import Placed

MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
Function = Callable[[jax.Array, jax.Array], jax.Array]


def verdict(reference: Function, local: Function, dtype: str = "float32") -> Verdict:
    shapes = [jax.ShapeDtypeStruct((8, 3), dtype)] * 2
    placed = Placed(MESH, (P("x"), P("x")), P("x"), shapes)
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


def slope(f: Callable[[jax.Array], jax.Array]) -> Callable[[jax.Array], jax.Array]:
    return jax.grad(lambda x: jnp.sum(f(x)))


def cross_entropy(x: jax.Array, y: jax.Array) -> jax.Array:
    return -(y * log_sigmoid(x) + (1 - y) * log_sigmoid(-x))


def shifted(x: jax.Array, y: jax.Array) -> jax.Array:
    most = jnp.maximum(x, y)
    return most + jnp.log(jnp.exp(x - most) + jnp.exp(y - most))


def cross_entropy_of_probability(x: jax.Array, y: jax.Array) -> jax.Array:
    p = sigmoid(x)
    return -(y * jnp.log(p) + (1 - y) * jnp.log(1 - p))


HALF = np.float32(np.sqrt(0.5))

SAME: dict[str, tuple[Function, Function]] = {
    "distribution of a normal number": (
        lambda x, y: jax.scipy.stats.norm.cdf(x),
        lambda x, y: 0.5 * (1 + lax.erf(x * HALF)),
    ),
    "normal density by the root of 2": (
        lambda x, y: jax.scipy.stats.norm.logpdf(x),
        lambda x, y: -0.5 * x**2 - 0.5 * np.log(2 * np.pi),
    ),
    "power of a number by an exponential": (
        lambda x, y: y / (10000.0**x),
        lambda x, y: y * jnp.exp(-np.log(10000.0) * x),
    ),
    "power of two": (lambda x, y: jnp.exp2(x), lambda x, y: 2.0**x),
    "decay in turn": (lambda x, y: y + 0.9 * (0.9 * (0.9 * x)), lambda x, y: y + 0.9**3 * x),
    "weights that add up to one": (lambda x, y: 0.9 * (x + y) + 0.1 * x, lambda x, y: x + 0.9 * y),
    "decay in one": (lambda x, y: x - 0.01 * (y + 0.1 * x), lambda x, y: x * (1 - 0.01 * 0.1) - 0.01 * y),
    "odd function by cases": (
        lambda x, y: jnp.where(x > 0, jnp.arctan(jnp.abs(x)), -jnp.arctan(jnp.abs(x))),
        lambda x, y: jnp.arctan(x),
    ),
    "logarithm of the opposite of a logistic": (lambda x, y: jnp.log(1 - sigmoid(x)), lambda x, y: -softplus(x)),
    "cross entropy of a probability": (cross_entropy, cross_entropy_of_probability),
    "slope of cross entropy of a probability": (
        lambda x, y: slope(lambda x: cross_entropy_of_probability(x, y))(x),
        lambda x, y: sigmoid(x) - y,
    ),
    "logarithm of the slope of tanh": (
        lambda x, y: jnp.log(1 - jnp.tanh(x) ** 2),
        lambda x, y: 2 * (jnp.log(2.0) - x - softplus(-2 * x)),
    ),
    "slope of a shifted logaddexp": (lambda x, y: slope(lambda x: shifted(x, y))(x), lambda x, y: sigmoid(x - y)),
    "absolute value by its sign": (lambda x, y: jnp.abs(x - y), lambda x, y: jnp.sign(x - y) * (x - y)),
    "opposite of a logistic": (lambda x, y: 1 - sigmoid(x), lambda x, y: sigmoid(-x)),
    "logistic by tanh": (lambda x, y: sigmoid(x), lambda x, y: 0.5 * (1 + jnp.tanh(x / 2))),
    "tanh by a logistic": (lambda x, y: jnp.tanh(x), lambda x, y: 2 * sigmoid(2 * x) - 1),
    "tanh by exponentials": (
        lambda x, y: jnp.tanh(x),
        lambda x, y: (jnp.exp(x) - jnp.exp(-x)) / (jnp.exp(x) + jnp.exp(-x)),
    ),
    "slope of a logistic": (lambda x, y: slope(sigmoid)(x), lambda x, y: sigmoid(x) * sigmoid(-x)),
    "slope of silu": (lambda x, y: slope(jax.nn.silu)(x), lambda x, y: sigmoid(x) * (1 + x * sigmoid(-x))),
    "softplus": (lambda x, y: softplus(x), lambda x, y: jnp.log1p(jnp.exp(x))),
    "stable softplus": (lambda x, y: softplus(x), lambda x, y: relu(x) + jnp.log1p(jnp.exp(-jnp.abs(x)))),
    "softplus both ways": (lambda x, y: softplus(x) - softplus(-x), lambda x, y: x),
    "slope of softplus": (lambda x, y: slope(softplus)(x), lambda x, y: sigmoid(x)),
    "logarithm of a logistic": (lambda x, y: log_sigmoid(x), lambda x, y: jnp.log(sigmoid(x))),
    "logaddexp": (lambda x, y: jnp.logaddexp(x, y), lambda x, y: jnp.log(jnp.exp(x) + jnp.exp(y))),
    "logaddexp, shifted": (lambda x, y: jnp.logaddexp(x, y), shifted),
    "logaddexp by softplus": (lambda x, y: jnp.logaddexp(x, y), lambda x, y: x + softplus(y - x)),
    "cross entropy": (
        cross_entropy,
        lambda x, y: jnp.maximum(x, 0) - x * y + jnp.log1p(jnp.exp(-jnp.abs(x))),
    ),
    "slope of cross entropy": (
        lambda x, y: slope(lambda x: cross_entropy(x, y))(x),
        lambda x, y: sigmoid(x) - y,
    ),
    "softmax of two": (lambda x, y: jax.nn.softmax(jnp.stack([x, y]), 0)[0], lambda x, y: sigmoid(x - y)),
    "greater and less": (lambda x, y: x + y, lambda x, y: jnp.maximum(x, y) + jnp.minimum(x, y)),
    "product of greater and less": (lambda x, y: x * y, lambda x, y: jnp.maximum(x, y) * jnp.minimum(x, y)),
    "distance": (lambda x, y: jnp.abs(x - y), lambda x, y: jnp.maximum(x, y) - jnp.minimum(x, y)),
    "greater by distance": (lambda x, y: jnp.maximum(x, y), lambda x, y: (x + y + jnp.abs(x - y)) / 2),
    "greater by relu": (lambda x, y: jnp.maximum(x, y), lambda x, y: x + relu(y - x)),
    "bounds in any order": (lambda x, y: jnp.clip(x, -1, 1), lambda x, y: jnp.maximum(jnp.minimum(x, 1), -1)),
    "bounds by relu": (lambda x, y: jnp.clip(x, -1, 1), lambda x, y: relu(x + 1) - relu(x - 1) - 1),
    "root of a maximum": (
        lambda x, y: x / jnp.maximum(jnp.sqrt(y * y), 0.5),
        lambda x, y: x * jax.lax.rsqrt(jnp.maximum(y * y, 0.25)),
    ),
    "root of a minimum": (
        lambda x, y: x * jnp.minimum(jnp.abs(y), 3),
        lambda x, y: x * jnp.sqrt(jnp.minimum(y * y, 9)),
    ),
    "median of few": (
        lambda x, y: jnp.median(jnp.stack([x, y, x + y]), 0),
        lambda x, y: jnp.sort(jnp.stack([x, y, x + y]), 0)[1],
    ),
    "bounds by choice": (lambda x, y: jnp.clip(x, -1, 1), lambda x, y: jax.nn.hard_tanh(x)),
}


def slope_of_stable_softplus(x: jax.Array, y: jax.Array) -> jax.Array:
    """It is not that of softplus at 0, where an absolute value has another slope."""
    return slope(lambda x: relu(x) + jnp.log1p(jnp.exp(-jnp.abs(x))))(x)


OTHER: dict[str, tuple[Function, Function]] = {
    "distribution of a wider number": (
        lambda x, y: jax.scipy.stats.norm.cdf(x),
        lambda x, y: 0.5 * (1 + lax.erf(x * 0.7071)),
    ),
    "power of another number": (
        lambda x, y: y / (10000.0**x),
        lambda x, y: y * jnp.exp(-np.log(10001.0) * x),
    ),
    "one turn less": (lambda x, y: y + 0.9 * (0.9 * (0.9 * x)), lambda x, y: y + 0.9**2 * x),
    "weights that add up to less": (lambda x, y: 0.9 * (x + y) + 0.09 * x, lambda x, y: x + 0.9 * y),
    "nothing but a rounding": (lambda x, y: y + 1e9 * (0.9 * x + 0.1 * x - x), lambda x, y: y),
    "another decay": (lambda x, y: x - 0.01 * (y + 0.1 * x), lambda x, y: x * (1 - 0.01 * 0.01) - 0.01 * y),
    "even function by cases": (
        lambda x, y: jnp.where(x > 0, jnp.arctan(jnp.abs(x)), jnp.arctan(jnp.abs(x))),
        lambda x, y: jnp.arctan(x),
    ),
    "logistic of the opposite": (lambda x, y: 1 - sigmoid(x), lambda x, y: sigmoid(x)),
    "logistic by tanh of all": (lambda x, y: sigmoid(x), lambda x, y: 0.5 * (1 + jnp.tanh(x))),
    "half of tanh": (lambda x, y: jnp.tanh(x), lambda x, y: (jnp.exp(x) - 1) / (jnp.exp(x) + 1)),
    "slope": (lambda x, y: slope(sigmoid)(x), lambda x, y: sigmoid(x) * (1 + sigmoid(x))),
    "softplus of the opposite": (lambda x, y: softplus(x), lambda x, y: jnp.log1p(jnp.exp(-x))),
    "softplus of a distance": (lambda x, y: softplus(x), lambda x, y: relu(x) + jnp.log1p(jnp.exp(jnp.abs(x)))),
    "softplus without its greater": (lambda x, y: softplus(x), lambda x, y: jnp.log1p(jnp.exp(-jnp.abs(x)))),
    "logaddexp of one": (lambda x, y: jnp.logaddexp(x, y), lambda x, y: y + softplus(y - x)),
    "entropy of the other label": (cross_entropy, lambda x, y: cross_entropy(x, 1 - y)),
    "half a logarithm": (lambda x, y: softplus(x), lambda x, y: jnp.log1p(jnp.exp(2 * x)) / 2),
    "greater twice": (lambda x, y: x + y, lambda x, y: jnp.maximum(x, y) + jnp.maximum(x, y)),
    "difference": (lambda x, y: jnp.abs(x - y), lambda x, y: x - y),
    "other bounds": (lambda x, y: jnp.clip(x, -1, 1), lambda x, y: jnp.maximum(jnp.minimum(x, 1), 0)),
    "bounds by relu, shifted": (lambda x, y: jnp.clip(x, -1, 1), lambda x, y: relu(x + 1) - relu(x - 1)),
    "equal at one point alone": (lambda x, y: jnp.maximum(x, y), lambda x, y: jnp.where(x == y, x, x + y)),
    "logarithm of the other probability": (lambda x, y: jnp.log(1 - sigmoid(x)), lambda x, y: -softplus(-x)),
    "slope but for 0": (slope_of_stable_softplus, lambda x, y: sigmoid(x)),
    "sign but for 0": (lambda x, y: jnp.sign(x) ** 2 * y, lambda x, y: y),
    "zero at 0 alone": (lambda x, y: jnp.where(x == 0, y, x), lambda x, y: x),
    "slope of tanh, half": (
        lambda x, y: jnp.log(1 - jnp.tanh(x) ** 2),
        lambda x, y: jnp.log(2.0) - 2 * x - 2 * softplus(-2 * x),
    ),
    "root of a maximum with another": (
        lambda x, y: x / jnp.maximum(jnp.sqrt(y * y), 0.5),
        lambda x, y: x * jax.lax.rsqrt(jnp.maximum(y * y, 0.5)),
    ),
    "root of the lesser": (
        lambda x, y: x / jnp.minimum(1 + jnp.abs(y), 2),
        lambda x, y: x * jax.lax.rsqrt(jnp.maximum((1 + jnp.abs(y)) ** 2, 4)),
    ),
    "a small part": (lambda x, y: jnp.tanh(x), lambda x, y: 2 * sigmoid(2 * x) - 1 + 1e-7 * y),
}


def values(f: Function) -> np.ndarray:
    x, y = np.random.default_rng(0).standard_normal((2, 8, 3))
    y[0], x[1] = x[0], 0
    with jax.enable_x64(True):
        return np.asarray(f(jnp.asarray(x), jnp.asarray(y)))


@pytest.mark.drawn(15)
@pytest.mark.parametrize("name", SAME)
def test_another_spelling_is_proved(name: str) -> None:
    reference, local = SAME[name]
    np.testing.assert_allclose(values(reference), values(local), atol=1e-6)
    assert verdict(reference, local) is Verdict.PROVED


@pytest.mark.drawn(12)
@pytest.mark.parametrize("name", OTHER)
def test_another_function_is_not(name: str) -> None:
    reference, local = OTHER[name]
    assert np.abs(values(reference) - values(local)).max() > 1e-9
    assert verdict(reference, local) is not Verdict.PROVED


INTEGERS: dict[str, tuple[Function, Function]] = {
    "greater": (lambda x, y: jnp.maximum(x, y), lambda x, y: jnp.where(x > y, x, y)),
    "less": (lambda x, y: jnp.minimum(x, y), lambda x, y: jnp.where(x < y, x, y)),
    "less, or equal": (lambda x, y: jnp.minimum(x, y), lambda x, y: jnp.where(x <= y, x, y)),
    "greater and less": (lambda x, y: x + y, lambda x, y: jnp.maximum(x, y) + jnp.minimum(x, y)),
    "other": (lambda x, y: jnp.maximum(x, y), lambda x, y: jnp.where(x < y, x, y)),
    "other, next to it": (lambda x, y: jnp.maximum(x, y), lambda x, y: jnp.where(x > y + 1, x, y)),
    "other by a sign that wraps": (lambda x, y: jnp.maximum(x, y), lambda x, y: jnp.where(x - y > 0, x, y)),
    "other by a distance that wraps": (lambda x, y: jnp.abs(x - y), lambda x, y: jnp.maximum(x, y) - jnp.minimum(x, y)),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    assert (verdict(*INTEGERS[name], dtype="int32") is Verdict.PROVED) is not name.startswith("other")


def norm(x: jax.Array) -> jax.Array:
    return jnp.sqrt(jnp.sum(x**2, -1, keepdims=True))


SELECTED: dict[str, tuple[Function, Function]] = {
    "clipped by a norm": (
        lambda x, y: jnp.where(norm(x) < 2, x, x / norm(x) * 2),
        lambda x, y: 2 * x / jnp.maximum(2, norm(x)),
    ),
    "a factor that is chosen": (
        lambda x, y: jnp.where(norm(x) < 2, x, x / norm(x) * 2),
        lambda x, y: x * jnp.where(norm(x) < 2, 1, 2 / norm(x)),
    ),
    "ratio of norms": (
        lambda x, y: jnp.where(norm(x) > 0, jnp.where(norm(y) > 0, norm(x) / norm(y), 1.0), 1.0),
        lambda x, y: jnp.where((norm(x) > 0) & (norm(y) > 0), norm(x) / jnp.where(norm(y) > 0, norm(y), 1.0), 1.0),
    ),
    "quotient beside its guard": (
        lambda x, y: jnp.where(x > 1, y / x, x),
        lambda x, y: jnp.where(x > 1, y / jnp.where(x > 1, x, 1.0), x),
    ),
    "other: nothing beside a quotient that is chosen": (
        lambda x, y: jnp.where(x > 0, (1 / x) * (x * y), y),
        lambda x, y: jnp.where(x > 0, (1 / x) * (x * y), y) + (1 / x - 1 / x),
    ),
    "other: quotients under other conditions": (
        lambda x, y: jnp.where(x != 0, x / x, x * y),
        lambda x, y: jnp.where(x >= 0, x / x, 1.0),
    ),
    "other: quotient of nothing": (lambda x, y: y, lambda x, y: jnp.where(x >= 0, y * x / x, y)),
    "other: quotient at a place within": (lambda x, y: y, lambda x, y: jnp.where(x > 0, y * (x - 1) / (x - 1), y)),
    "other: quotient that is computed anyway": (lambda x, y: y, lambda x, y: jnp.where(x > 0, y, y * x / x)),
    "other: nothing of a quotient": (lambda x, y: y, lambda x, y: jnp.where(x > 0, y, y + (1 / x - 1 / x))),
    "other: nothing of two quotients": (
        lambda x, y: y,
        lambda x, y: (
            jnp.where(x < 1, 1 / x, y) - jnp.where(x < 2, 1 / x, 0.0) + jnp.where((x >= 1) & (x < 2), 1 / x, 0)
        ),
    ),
    "other: the norm is divided by anyway": (
        lambda x, y: jnp.where(norm(x) < 2, x, x / norm(x) * 2),
        lambda x, y: jnp.where(norm(x) < 2, x * norm(x) / norm(x), x / norm(x) * 2),
    ),
    "other: clipped elsewhere": (
        lambda x, y: jnp.where(norm(x) < 2, x, x / norm(x) * 2),
        lambda x, y: x / jnp.maximum(2, norm(x)),
    ),
}


@pytest.mark.parametrize("name", SELECTED)
def test_what_a_condition_keeps_from_being_none(name: str) -> None:
    assert (verdict(*SELECTED[name]) is Verdict.PROVED) is not name.startswith("other")


NUMBERS = (0.0, 1.0, -1.5, 0.3, 2.5)
BRANCHES: dict[str, Function] = {
    "y": lambda x, y: y,
    "y*x/x": lambda x, y: y * x / x,
    "(1/x)*(x*y)": lambda x, y: (1 / x) * (x * y),
    "y + (1/x - 1/x)": lambda x, y: y + (1 / x - 1 / x),
    "sqrt(x)**2": lambda x, y: jnp.sqrt(x) ** 2 * y / jnp.maximum(x, 1e-3),
    "guarded": lambda x, y: y * x / jnp.where(x > 0, x, 1.0) / jnp.where(x > 0, 1.0, x),
    "of x - 1": lambda x, y: y * (x - 1) / (x - 1),
    "clipped": lambda x, y: jnp.minimum(x, 2) / x,
    "clipped by cases": lambda x, y: jnp.where(x > 2, 2 / x, 1.0),
}
TESTS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "x > 0": lambda x: x > 0,
    "x >= 0": lambda x: x >= 0,
    "x > 1": lambda x: x > 1,
    "x != 0": lambda x: x != 0,
    "x < 0": lambda x: x < 0,
}


@pytest.mark.drawn(10)
@pytest.mark.parametrize("seed", range(24))
def test_no_case_hides_what_is_no_number(seed: int) -> None:
    """Of two choices that are equal almost everywhere, the second is none where the first is a number: not PROVED."""
    way = random.Random(seed)

    def chosen(depth: int) -> Function:
        if not depth:
            return BRANCHES[way.choice(list(BRANCHES))]
        test, here, there = TESTS[way.choice(list(TESTS))], chosen(depth - 1), chosen(depth - 1)
        return lambda x, y: jnp.where(test(x), here(x, y), there(x, y))

    x, y = (each.ravel() for each in np.meshgrid(np.float32(NUMBERS), np.float32((-0.7, 0.0, 1.2))))
    for _ in range(3):
        reference, local = chosen(way.randrange(2)), chosen(way.randrange(1, 3))
        expected, found = (np.asarray(f(jnp.asarray(x), jnp.asarray(y))) for f in (reference, local))
        known = np.isfinite(expected)
        if verdict(reference, local) is Verdict.PROVED:
            np.testing.assert_allclose(found[known], expected[known], atol=1e-5)


def test_what_may_be_no_number_is_left_alone() -> None:
    """`1/x - 1/x` over a common denominator is 0, and no number for 0."""
    assert verdict(lambda x, y: y + relu(x), lambda x, y: y + relu(x) + (1 / x - 1 / x)) is not Verdict.PROVED
    found = verdict(lambda x, y: relu(x), lambda x, y: relu(x) * ((1 / x + 1 / y) * x * y - x - y + 1))
    assert found is not Verdict.PROVED


MAY_BE_NONE: dict[str, Callable[[jax.Array], jax.Array]] = {
    "logarithm": jnp.log,
    "root": jnp.sqrt,
    "inverse root": jax.lax.rsqrt,
    "difference of logarithms": lambda x: jnp.log(x) - jnp.log(x + 1),
}

DECIDED: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "above 0 or below 1": lambda t, y: (t > 0) | (t < 1),
    "above y or below more": lambda t, y: (t > y) | (t < y + 1),
    "a distance and more": lambda t, y: jnp.abs(t) + 1 > 0,
}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", MAY_BE_NONE)
@pytest.mark.parametrize("decided", DECIDED)
def test_a_comparison_of_what_may_be_no_number_is_not_told_by_cases(name: str, decided: str) -> None:
    """Each of these holds for all numbers, and for no NaN."""

    def local(of: Callable[[jax.Array], jax.Array]) -> Function:
        return lambda x, y: jnp.where(DECIDED[decided](of(x), y), y, -y)

    assert verdict(lambda x, y: y, local(MAY_BE_NONE[name])) is not Verdict.PROVED
    assert verdict(lambda x, y: y, local(lambda x: x)) is Verdict.PROVED


def test_terms_that_share_their_parts_are_looked_at_once() -> None:
    """Each turn has the one before twice in it: written out, that is 2**60 of them."""
    tanh = real("tanh")
    with Session().on() as session:
        deep = [algebra.read(tensor("argument", name, "f32", ()), ()) for name in "xy"]
        for _ in range(60):
            deep = [algebra.multiply(apply(tanh, (p,)), apply(ABS, (p,))) for p in deep]
        assert not is_zero(algebra.subtract(*deep), Effort(1000, session=session))


def test_powers_that_logarithms_would_be_of_have_an_end() -> None:
    """`1e8*log(3 + x*x) - 1e8*log(3)`: of 3 to the 1e8 the digits alone would take minutes."""
    with Session().on() as session:
        x = algebra.read(tensor("argument", "x", "f32", ()), ())
        of = (algebra.add(number(3), algebra.multiply(x, x)), number(3))
        logarithms = [algebra.scale(apply(LOG, (p,)), 10**8) for p in of]
        assert not is_zero(algebra.subtract(*logarithms), Effort(1000, session=session))
