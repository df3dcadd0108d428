"""Variances in one pass and in two are equal within functions, clipped at 0 or not; what is like them is not."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

Function = Callable[[jax.Array], jax.Array]

MESH = AbstractMesh((4,), ("x",))
SHAPE = (8, 5)
"""The root of 1/5 is no rational number."""


def mean(x: jax.Array) -> jax.Array:
    return x.mean(-1, keepdims=True)


def two_pass(x: jax.Array) -> jax.Array:
    return mean((x - mean(x)) ** 2)


def one_pass(x: jax.Array) -> jax.Array:
    return mean(x * x) - mean(x) ** 2


def clipped(x: jax.Array) -> jax.Array:
    return jnp.maximum(one_pass(x), 0)


def skewed(x: jax.Array) -> jax.Array:
    """No variance: the mean is that of the first elements."""
    return mean(x * x) - mean(x[:, :4]) ** 2


def doubled(x: jax.Array) -> jax.Array:
    """No variance, and negative for numbers that are alike."""
    return mean(x * x) - 2 * mean(x) ** 2


WITHIN: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "itself": lambda x, v: v,
    "logarithm": lambda x, v: x * jnp.log(v + 1e-3),
    "logarithm of a multiple": lambda x, v: jnp.log(6 * v + 0.5) - x,
    "root": lambda x, v: jnp.sqrt(v),
    "beside a root": lambda x, v: x / (jnp.sqrt(v) + 1e-3),
    "divided by a root": lambda x, v: (x - mean(x)) / jnp.sqrt(v),
    "inverse root": lambda x, v: (x - mean(x)) * lax.rsqrt(v + 1e-5),
    "product of roots": lambda x, v: jnp.sqrt(3.0) * jnp.sqrt(v) + jnp.tanh(jnp.sqrt(7 * v)),
}


def verdict(reference: Function, local: Function, dtype: str = "float32") -> Verdict:
    placed = Placed(MESH, (P("x"),), P("x"), [jax.ShapeDtypeStruct(SHAPE, dtype)])
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


def values(f: Function) -> np.ndarray:
    return np.asarray(f(jnp.asarray(np.random.default_rng(0).standard_normal(SHAPE) / 2 + 0.2, jnp.float32)))


@pytest.mark.parametrize("name", WITHIN)
@pytest.mark.parametrize("variance", [one_pass, clipped])
def test_one_pass_is_two(name: str, variance: Function) -> None:
    reference, local = (lambda x, v=v: WITHIN[name](x, v(x)) for v in (two_pass, variance))
    np.testing.assert_allclose(values(reference), values(local), rtol=1e-3, atol=1e-4)
    assert verdict(reference, local) is Verdict.PROVED


@pytest.mark.parametrize("name", WITHIN)
@pytest.mark.parametrize("other", [skewed, doubled])
def test_another_difference_is_none(name: str, other: Function) -> None:
    reference, local = (lambda x, v=v: WITHIN[name](x, v(x)) for v in (two_pass, other))
    with np.errstate(invalid="ignore"):
        assert not np.allclose(values(reference), values(local), rtol=1e-3)
    assert verdict(reference, local) is not Verdict.PROVED


CLIPS: dict[str, tuple[Function, Function]] = {
    "exponential": (lambda x: jnp.maximum(jnp.exp(x), 0), jnp.exp),
    "below a bound": (lambda x: jnp.minimum(jnp.tanh(x), 2.0), jnp.tanh),
    "only the bound": (lambda x: 0 * x + jnp.maximum(-jnp.exp(x), 0.0), lambda x: 0 * x),
    "other: skewed": (lambda x: jnp.maximum(skewed(x), 0), skewed),
    "other: doubled": (lambda x: jnp.maximum(doubled(x), 0), doubled),
    "other: shifted": (lambda x: jnp.maximum(jnp.exp(x) - 0.5, 0), lambda x: jnp.exp(x) - 0.5),
    "other: within": (lambda x: jnp.minimum(jnp.tanh(x), 0.5), jnp.tanh),
    "other: the wrong side": (lambda x: jnp.minimum(jnp.exp(x), 0.0), jnp.exp),
}


@pytest.mark.parametrize("name", CLIPS)
def test_what_has_a_sign_is_not_clipped(name: str) -> None:
    assert (verdict(*CLIPS[name]) is Verdict.PROVED) is not name.startswith("other")


@pytest.mark.parametrize("clip", [lambda p: jnp.maximum(p, 0), lambda p: jnp.maximum(p, p * p)])
def test_squares_of_integers_wrap(clip: Function) -> None:
    """46341 * 46341 is negative in 32 bits."""
    assert verdict(lambda x: clip(x * x), lambda x: x * x, "int32") is not Verdict.PROVED
    assert verdict(lambda x: clip((x * x).sum(-1)), lambda x: (x * x).sum(-1), "int32") is not Verdict.PROVED


def test_a_root_may_be_no_number() -> None:
    assert verdict(lambda x: 0 * x, lambda x: jnp.minimum(jnp.maximum(-jnp.sqrt(x), 0), 0)) is not Verdict.PROVED
