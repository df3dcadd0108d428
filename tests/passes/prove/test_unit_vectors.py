"""Gradients through lengths of vectors, which may be 0."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict
from tests.passes.prove.test_forms_by_hand import unit, verdict


def to_teacher(w: jax.Array, e: jax.Array, x: jax.Array) -> jax.Array:
    return jax.grad(lambda w: jnp.mean(2 - 2 * jnp.sum(unit(x @ w) * unit(x @ e), -1)))(w)


def to_teacher_of_split(w: jax.Array, e: jax.Array, x: jax.Array, *, scale: float = 1) -> jax.Array:
    other = unit(x @ e)
    loss = lambda w: scale * jnp.sum((unit(x @ w) - other) ** 2) / 8  # noqa: E731
    return lax.psum(jax.grad(loss)(w), "i")


@pytest.mark.parametrize(
    ("scale", "is_right"),
    [
        # What is left of the squares of a unit vector's elements is a sum of squares that is divided by itself twice,
        # which cancels only where it is seen not to be 0.
        pytest.param(1, True, marks=pytest.mark.xfail(strict=True, reason="a norm that may be 0 does not cancel")),
        pytest.param(2, False, marks=pytest.mark.slow),
    ],
)
def test_gradients_of_how_far_unit_vectors_are_apart(scale: float, is_right: bool) -> None:
    local = partial(to_teacher_of_split, scale=scale)
    found = verdict(to_teacher, local, (P(), P(), P("i")), P(), (3, 2), (3, 2), (8, 3))
    assert (found is Verdict.PROVED) is is_right
