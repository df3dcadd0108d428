"""Running products of exponentials beside exponentials of running sums, as transmittances and decays are computed."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed, floats

Body = Callable[[jax.Array], jax.Array]
ROWS = Placed(AbstractMesh((2,), ("d",)), (P("d"),), P("d"), floats((4, 6)))
COLUMNS = Placed(AbstractMesh((2,), ("d",)), (P(None, "d"),), P(None, "d"), floats((4, 6)))


def behind(x: jax.Array, first: float) -> jax.Array:
    """The elements of rows one place on, with another in front."""
    return jnp.concatenate([jnp.full((len(x), 1), first), x[:, :-1]], -1)


def earlier(x: jax.Array, own: int = 0) -> jax.Array:
    """The sum of what is before a place, on earlier devices and on this one."""
    total = lax.all_gather(x.sum(-1), "d")
    known = jnp.sum(jnp.where(jnp.arange(2)[:, None] < lax.axis_index("d") + own, total, 0.0), 0)
    return known[:, None] + jnp.cumsum(x, -1) - x


def passed(x: jax.Array) -> jax.Array:
    return jnp.cumprod(jnp.exp(-x), -1)


RIGHT: dict[str, tuple[Placed, Body, Body]] = {
    "a product": (ROWS, lambda x: jnp.prod(jnp.exp(-x), -1), lambda x: jnp.exp(-x.sum(-1))),
    "a running product": (ROWS, passed, lambda x: jnp.exp(-jnp.cumsum(x, -1))),
    "what is absorbed": (ROWS, lambda x: jnp.cumprod(1 - (1 - jnp.exp(-x)), -1), lambda x: jnp.exp(-jnp.cumsum(x, -1))),
    "beside factors": (
        ROWS,
        lambda x: jnp.prod(x * jnp.exp(-x), -1),
        lambda x: jnp.exp(-x.sum(-1)) * jnp.prod(x, -1),
    ),
    "what comes before": (ROWS, lambda x: behind(passed(x), 1), lambda x: jnp.exp(x - jnp.cumsum(x, -1))),
    "on earlier devices": (
        COLUMNS,
        lambda x: behind(jnp.exp(-jnp.cumsum(x, -1)), 1),
        lambda x: jnp.exp(-earlier(x)),
    ),
}

WRONG: dict[str, tuple[Placed, Body, Body]] = {
    "another sign": (ROWS, passed, lambda x: jnp.exp(jnp.cumsum(x, -1))),
    "with its own": (ROWS, lambda x: behind(passed(x), 1), lambda x: jnp.exp(-jnp.cumsum(x, -1))),
    "two before": (ROWS, lambda x: behind(passed(x), 1), lambda x: jnp.exp(x + behind(x, 0) - jnp.cumsum(x, -1))),
    "a sum of exponentials": (ROWS, lambda x: jnp.prod(jnp.exp(x) + 1, -1), lambda x: jnp.exp(x.sum(-1)) + 1),
    "a negative factor": (ROWS, lambda x: jnp.prod(-jnp.exp(x[:, :3]), -1), lambda x: jnp.exp(x[:, :3].sum(-1))),
    "of this device too": (
        COLUMNS,
        lambda x: behind(jnp.exp(-jnp.cumsum(x, -1)), 1),
        lambda x: jnp.exp(-earlier(x, 1)),
    ),
    "an infinity that goes": (
        ROWS,
        lambda x: jnp.cumsum(jnp.log(x[:, :-1]), -1),
        lambda x: (jnp.cumsum(jnp.log(x), -1) - jnp.log(x))[:, 1:],
    ),
}


def verdict(case: tuple[Placed, Body, Body]) -> Verdict:
    placed, whole, part = case
    return hlo_verify.verify(*placed.pair(whole, part), devices=2, refute=False).verdict


@pytest.mark.parametrize("name", RIGHT)
def test_exponentials_of_running_sums(name: str) -> None:
    assert verdict(RIGHT[name]) is Verdict.PROVED


@pytest.mark.parametrize("name", WRONG)
def test_other_exponentials(name: str) -> None:
    assert verdict(WRONG[name]) is Verdict.UNKNOWN
