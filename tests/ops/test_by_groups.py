"""What rows take from their group (a mean, a scale, a maximum), as a reference looks it up and as devices add it up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.ops import segment_max, segment_sum
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed, floats

MESH = AbstractMesh((4,), ("d",))
Way = Callable[[Any, Any], Any]


def by(values: Any, groups: Any) -> Any:
    return segment_sum(values, groups, 3)


def whole(values: Any, groups: Any) -> Any:
    return lax.psum(by(values, groups), "d")


def many(groups: Any) -> Any:
    return jnp.maximum(by(jnp.ones(groups.shape), groups), 1)


def variances(x: Any, g: Any) -> Any:
    mean = by(x, g) / many(g)
    return by((x - mean[g]) ** 2, g) / many(g)


def by_squares(x: Any, g: Any) -> Any:
    n, s, q = jnp.maximum(whole(jnp.ones(x.shape), g), 1), whole(x, g), whole(x * x, g)
    return q / n - (s / n) ** 2


def softmax(x: Any, g: Any) -> Any:
    e = jnp.exp(x - segment_max(x, g, 3)[g])
    return e / by(e, g)[g]


def among_equals(x: Any, g: Any) -> Any:
    return jnp.diagonal(jax.nn.softmax(jnp.where(g[:, None] == g, x, -jnp.inf), -1))


def by_the_greatest(x: Any, g: Any) -> Any:
    e = jnp.exp(x - lax.pmax(x.max(), "d"))
    return e / whole(e, g)[g]


Pair = tuple[Way, Way, P]
RIGHT: dict[str, Pair] = {
    "variances": (variances, by_squares, P()),
    "squares that are left": (
        lambda x, g: by((x - (by(x, g) / many(g))[g]) ** 2, g),
        lambda x, g: whole(x * x, g) - whole(x, g) ** 2 / jnp.maximum(whole(jnp.ones(x.shape), g), 1),
        P(),
    ),
    "times a total": (lambda x, g: by(x * by(x, g)[g], g), lambda x, g: whole(x, g) ** 2, P()),
    "in an exponential": (
        lambda x, g: by(jnp.exp(x - by(x, g)[g]), g),
        lambda x, g: jnp.exp(-whole(x, g)) * whole(jnp.exp(x), g),
        P(),
    ),
    "a function of the group": (
        lambda x, g: by(x * jnp.tanh(g.astype(jnp.float32)), g),
        lambda x, g: whole(x, g) * jnp.tanh(jnp.arange(3.0)),
        P(),
    ),
    "softmax": (softmax, by_the_greatest, P("d")),
    "softmax among equals": (among_equals, by_the_greatest, P("d")),
}
WRONG: dict[str, Pair] = {
    "variances of nearly as many": (
        variances,
        lambda x, g: by_squares(x, g) * (1 + 1 / jnp.maximum(whole(jnp.ones(x.shape), g), 1)),
        P(),
    ),
    "as many as elsewhere": (
        lambda x, g: by(x, g) * many(g),
        lambda x, g: whole(x, g) * jnp.maximum(jnp.roll(whole(jnp.ones(x.shape), g), 1), 1),
        P(),
    ),
    "times another total": (lambda x, g: by(x * by(x, g)[2 - g], g), lambda x, g: whole(x, g) ** 2, P()),
    "what a device has": (softmax, lambda x, g: jnp.exp(x) / by(jnp.exp(x), g)[g], P("d")),
    "also of others": (softmax, lambda x, g: jnp.exp(x) / lax.psum(jnp.exp(x).sum(), "d"), P("d")),
    "a mean of nothing": (  # which the reference looks up for no row
        lambda x, g: by(x - (by(x, g) / by(jnp.ones(x.shape), g))[g], g),
        lambda x, g: whole(x, g) - whole(x, g) / whole(jnp.ones(x.shape), g) * whole(jnp.ones(x.shape), g),
        P(),
    ),
    "among others alone": (  # of whom there may be none
        lambda x, g: jnp.diagonal(jax.nn.softmax(jnp.where(g[:, None] == g, x, -1e3), -1)),
        lambda x, g: jnp.exp(x) / (whole(jnp.exp(x), g)[g] - jnp.exp(x)),
        P("d"),
    ),
}


def verdict(reference: Way, local: Way, out: P, *, refute: bool = False) -> Verdict:
    """Of rows that are split, each of one of three groups."""
    arguments = [*floats((8,)), jax.ShapeDtypeStruct((8,), jnp.int32)]
    pair = Placed(MESH, P("d"), out, arguments).pair(reference, local)
    return hlo_verify.verify(*pair, assume=["g in [0, 3)"], refute=refute).verdict


@pytest.mark.parametrize("name", RIGHT)
def test_rows_take_what_their_group_has(name: str) -> None:
    assert verdict(*RIGHT[name]) is Verdict.PROVED


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_rows_that_take_something_else_are_not_proved(name: str) -> None:
    assert verdict(*WRONG[name]) is not Verdict.PROVED


@pytest.mark.parametrize("name", ["as many as elsewhere", "what a device has"])
def test_rows_that_take_something_else_are_refuted(name: str) -> None:
    assert verdict(*WRONG[name], refute=True) is Verdict.REFUTED
