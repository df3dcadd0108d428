"""Signs that no rounding changes, those beside them that one does, and `logsumexp`, which asks for a sign."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.passes.chain.test_amplified import KIND, Program, both, judged, three_thirds
from tests.support.lowering import Placed

MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
Build = Callable[[Program, str], None]
Numbers = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def exponential(p: Program, c: str) -> str:
    return p.apply("exponential", three_thirds(p, c))


def total(p: Program, elements: str) -> None:
    zero, kind = p.constant(0.0, "tensor<f32>"), f"({KIND}, tensor<f32>) -> tensor<f32>"
    found = p.add(f"reduce({elements} init: {zero}) applies stablehlo.add across dimensions = [0] : {kind}")
    p.add(f"sign {found} : tensor<f32>")


def of_exponentials(p: Program, c: str) -> None:
    p.apply("sign", p.apply("add", exponential(p, c), p.apply("exponential", "%y")))


def of_a_total(p: Program, c: str) -> None:
    total(p, exponential(p, c))


def of_what_may_be_zero(p: Program, c: str) -> None:
    p.apply("sign", p.apply("multiply", p.apply("multiply", p.apply("abs", "%y"), c), exponential(p, c)))


STEADY: list[tuple[Build, Numbers]] = [
    (of_exponentials, lambda x, y, c: np.exp(3 * c * x) + np.exp(y)),
    (of_a_total, lambda x, y, c: np.sum(np.exp(3 * c * x), keepdims=True)),
    (of_what_may_be_zero, lambda x, y, c: np.abs(y) * c * np.exp(3 * c * x)),
]


@pytest.mark.parametrize(("build", "numbers"), STEADY)
def test_a_sign_that_no_rounding_changes_is_no_step(build: Build, numbers: Numbers) -> None:
    assert judged(*both(build)) == (True, "")
    random = np.random.default_rng(0)
    for _ in range(20):
        x, y = random.integers(-3, 4, (2, 4)).astype(float)
        exact, *moved = (np.sign(numbers(x, y, c)) for c in (1 / 3, *random.uniform(0.1, 3.0, 5)))
        assert all((exact == each).all() for each in moved)


def of_a_difference(p: Program, c: str) -> None:
    p.apply("sign", p.apply("subtract", exponential(p, c), p.apply("exponential", "%y")))


def of_a_weighted_total(p: Program, c: str) -> None:
    """sum(y * exp(x)): one product in each place, but positive in some and negative in others."""
    total(p, p.apply("multiply", "%y", exponential(p, c)))


def of_a_total_beside_another(p: Program, c: str) -> None:
    """exp(y) + tanh(x * c * 3)"""
    p.apply("sign", p.apply("add", p.apply("exponential", "%y"), p.apply("tanh", three_thirds(p, c))))


def of_the_opposite(p: Program, c: str) -> None:
    """-exp(x * c * 3) + exp(y) * y"""
    other = p.apply("multiply", p.apply("exponential", "%y"), "%y")
    p.apply("sign", p.apply("subtract", other, exponential(p, c)))


def rounds_an_exponential(p: Program, c: str) -> None:
    p.apply("floor", exponential(p, c))


@pytest.mark.parametrize(
    "build", [of_a_difference, of_a_weighted_total, of_a_total_beside_another, of_the_opposite, rounds_an_exponential]
)
def test_a_step_that_a_rounding_may_decide_is_not_covered(build: Build) -> None:
    equal, reason = judged(*both(build))
    assert equal
    assert "that rounding decides which side of a step it is on" in reason


@pytest.mark.parametrize("factor", [10.0, 9.0])
def test_a_temperature_divides_what_logsumexp_adds_up_or_its_inverse_multiplies_it(factor: float) -> None:
    placed = Placed(MESH, (P("x"),), P("x"), (jax.ShapeDtypeStruct((8, 3), jnp.float32),))
    pair = placed.pair(lambda x: jax.nn.logsumexp(x / 0.1, axis=1), lambda x: jax.nn.logsumexp(x * factor, axis=1))
    assert (hlo_verify.verify(*pair, refute=False).verdict is Verdict.PROVED) == (factor == 10.0)
