"""Sums of what is chosen, beside what does not hang on their variable: both are one sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed, floats

Body = Callable[..., Any]
PLACED = Placed(AbstractMesh((2,), ("d",)), (P("d"), P("d")), P("d"), floats((4, 3), (4, 3)))


def apart(q: jax.Array, t: jax.Array) -> jax.Array:
    return t[:, None, :] - q[:, :, None]


def huber(u: jax.Array) -> jax.Array:
    return jnp.where(jnp.abs(u) <= 1, 0.5 * u * u, jnp.abs(u) - 0.5)


def quantiles() -> jax.Array:
    return (jnp.arange(3) + 0.5) / 3


def weighted(u: jax.Array) -> jax.Array:
    return jnp.abs(quantiles()[:, None] - (u < 0)) * huber(u)


def weights(u: jax.Array, less: float = 0.0) -> jax.Array:
    tau = quantiles()[:, None] - less
    return jnp.where(u < 0, 1 - tau, tau)


def gradient(loss: Body) -> Body:
    return jax.grad(lambda q, t: loss(apart(q, t)).mean(-1).sum())


CASES: dict[str, tuple[Body, Body, Body]] = {
    "a mean of losses": (
        lambda q, t: huber(apart(q, t)).mean(-1),
        lambda q, t: jnp.mean(jnp.clip(apart(q, t), -1, 1) * (apart(q, t) - jnp.clip(apart(q, t), -1, 1) / 2), -1),
        lambda q, t: jnp.mean(jnp.clip(apart(q, t), -1, 1) * (apart(q, t) - jnp.clip(apart(q, t), -1, 1)), -1),
    ),
    "its gradient": (
        gradient(huber),
        lambda q, t: -jnp.clip(apart(q, t), -1, 1).mean(-1),
        lambda q, t: -jnp.clip(apart(q, t), -1, 2).mean(-1),
    ),
    "a gradient with quantiles": (
        gradient(weighted),
        lambda q, t: -(weights(apart(q, t)) * jnp.clip(apart(q, t), -1, 1)).mean(-1),
        lambda q, t: -(weights(apart(q, t), 1 / 6) * jnp.clip(apart(q, t), -1, 1)).mean(-1),
    ),
    "a mean outside": (
        lambda q, t: jnp.maximum(apart(q, t), 0).mean(-1),
        lambda q, t: t.mean(-1)[:, None] - q + jnp.maximum(-apart(q, t), 0).mean(-1),
        lambda q, t: t.mean(-1)[:, None] - q / 3 + jnp.maximum(-apart(q, t), 0).mean(-1),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_outside_of_a_sum_is_part_of_it(name: str) -> None:
    whole, right, wrong = CASES[name]
    assert hlo_verify.verify(*PLACED.pair(whole, right), refute=False).verdict is Verdict.PROVED
    assert hlo_verify.verify(*PLACED.pair(whole, wrong), refute=False).verdict is Verdict.UNKNOWN
