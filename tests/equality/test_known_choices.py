"""Choices by quotients that may be infinite or none, against extrema that compare the same."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_verify import Verdict
from tests.equality.test_scalars import Function, verdict

SAME: dict[str, tuple[Function, Function]] = {
    "the lesser of a quotient and a number": (
        lambda x, y: jnp.minimum(x / y, 5),
        lambda x, y: jnp.where(x / y < 5, x / y, 5),
    ),
    "where it is greater": (lambda x, y: jnp.minimum(x / y, 5), lambda x, y: jnp.where(x / y > 5, 5, x / y)),
    "where it is at least": (lambda x, y: jnp.minimum(x / y, 5), lambda x, y: jnp.where(x / y >= 5, 5, x / y)),
    "the greater of two quotients": (
        lambda x, y: jnp.maximum(x / y, y / x),
        lambda x, y: jnp.where(x / y > y / x, x / y, y / x),
    ),
    "a weight of diffusion losses": (
        lambda x, y: jnp.minimum(x / (1 - x), 5) / (x / (1 - x) + 1) * y,
        lambda x, y: jnp.where(x / (1 - x) < 5, x / (1 - x), 5) / (1 + x / (1 - x)) * y,
    ),
    "in a sum": (
        lambda x, y: y + jnp.sum(jnp.minimum(1 / x, 2) * y, -1, keepdims=True),
        lambda x, y: y + jnp.sum(jnp.where(1 / x < 2, 1 / x, 2) * y, -1, keepdims=True),
    ),
    "of a logarithm": (lambda x, y: jnp.minimum(jnp.log(x), 2), lambda x, y: jnp.where(jnp.log(x) < 2, jnp.log(x), 2)),
    "in a function": (
        lambda x, y: jnp.tanh(jnp.minimum(x / y, 5)),
        lambda x, y: jnp.tanh(jnp.where(x / y < 5, x / y, 5)),
    ),
}

OTHERS: dict[str, tuple[Function, Function]] = {
    "the other way round": (lambda x, y: jnp.minimum(x / y, 5), lambda x, y: jnp.where(x / y < 5, 5, x / y)),
    "at another number": (lambda x, y: jnp.minimum(x / y, 5), lambda x, y: jnp.where(x / y < 4, x / y, 5)),
    "another number": (lambda x, y: jnp.minimum(x / y, 5), lambda x, y: jnp.where(x / y < 5, x / y, 4)),
    "another quotient": (lambda x, y: jnp.minimum(x / y, 5), lambda x, y: jnp.where(y / x < 5, x / y, 5)),
    "under a condition of the reference": (
        lambda x, y: jnp.where(y != 0, jnp.minimum(x / y, 5), 1),
        lambda x, y: jnp.where(x / y < 5, jnp.where(y != 0, x / y, 1), jnp.where(y != 0, 5, 2)),
    ),
    "a pole of the device alone": (
        lambda x, y: jnp.minimum(x / y, 5),
        lambda x, y: jnp.where(x / y < 5, x / y, 5) + 0 * jnp.minimum(1 / x, 5),
    ),
    "a pole that the extremum takes": (
        lambda x, y: jnp.minimum(1 / (x * x), 5),
        lambda x, y: x / x * jnp.where(1 / (x * x) < 5, 1 / (x * x), 5),
    ),
    "a product in place of the quotient": (
        lambda x, y: jnp.minimum(x / y, 5),
        lambda x, y: jnp.where(x < 5 * y, x / y, 5),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_choice_is_proved(name: str) -> None:
    """As IEEE arithmetic has it too, at poles and infinities, wherever the reference is finite."""
    assert verdict(*SAME[name]) is Verdict.PROVED
    assert not _differ_where_the_first_is_finite(*SAME[name])


@pytest.mark.parametrize("name", OTHERS)
def test_another_choice_is_not(name: str) -> None:
    assert verdict(*OTHERS[name]) is not Verdict.PROVED
    assert _differ_where_the_first_is_finite(*OTHERS[name])


def _differ_where_the_first_is_finite(reference: Function, other: Function) -> bool:
    points = np.array(list(itertools.product((-2, -1, -0.5, -0.0, 0, 0.1, 0.22, 0.5, 1, 2, 9), repeat=2)), np.float32)
    x, y = jnp.asarray(points[:, :1]), jnp.asarray(points[:, 1:])
    want, got = (np.asarray(jax.jit(f)(x, y), np.float64) for f in (reference, other))
    return not np.allclose(got[np.isfinite(want)], want[np.isfinite(want)], 1e-5)
