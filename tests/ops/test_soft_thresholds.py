"""Soft thresholds, as of ISTA and ADMM, in the spellings that people have for them, one after another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

Threshold = Callable[[jax.Array, float], jax.Array]

MESH = AbstractMesh((4,), ("x",))
SOFT: dict[str, Threshold] = {
    "by its sign": lambda v, t: jnp.sign(v) * jnp.maximum(jnp.abs(v) - t, 0),
    "opposite": lambda v, t: -jnp.maximum(jnp.abs(-v) - t, 0) * jnp.sign(-v),
    "by cases": lambda v, t: jnp.where(v > t, v - t, jnp.where(v < -t, v + t, 0)),
    "less what is clipped": lambda v, t: v - jnp.clip(v, -t, t),
    "by both sides": lambda v, t: jax.nn.relu(v - t) - jax.nn.relu(-v - t),
}
OTHER: dict[str, Threshold] = {
    "hard": lambda v, t: jnp.where(jnp.abs(v) > t, v, 0),
    "one side": lambda v, t: jax.nn.relu(v - t),
    "without sign": lambda v, t: jnp.maximum(jnp.abs(v) - t, 0),
    "another threshold": lambda v, t: jnp.sign(v) * jnp.maximum(jnp.abs(v) - 2 * t, 0),
    "another sign": lambda v, t: jnp.sign(v - t) * jnp.maximum(jnp.abs(v) - t, 0),
    "added": lambda v, t: jnp.sign(v) * jnp.maximum(jnp.abs(v) + t, 0),
}


def twice(soft: Threshold, x: jax.Array) -> jax.Array:
    return soft(jnp.sin(x) - 2 * soft(x - 0.5, 0.1), 0.1)


def verdict(reference: Callable[[jax.Array], jax.Array], local: Callable[[jax.Array], jax.Array]) -> Verdict:
    placed = Placed(MESH, (P("x"),), P("x"), [jax.ShapeDtypeStruct((8,), "float32")])
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


@pytest.mark.parametrize("name", SOFT)
def test_in_another_spelling(name: str) -> None:
    for other in ("by its sign", "by cases", "by both sides"):
        assert verdict(partial(twice, SOFT[other]), partial(twice, SOFT[name])) is Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", OTHER)
def test_others_are_not(name: str) -> None:
    assert verdict(partial(twice, SOFT["by both sides"]), partial(twice, OTHER[name])) is not Verdict.PROVED


def test_less_than_nothing_is_no_threshold() -> None:
    """With -t for t, `sign(v) * (|v| + t)` jumps at 0, and the difference of two sides does not."""
    for one, other in (("by its sign", "by both sides"), ("by both sides", "by its sign")):
        reference, local = (lambda x, soft=SOFT[name]: soft(x, -0.1) for name in (one, other))
        assert verdict(reference, local) is not Verdict.PROVED
