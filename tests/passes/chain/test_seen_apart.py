"""A proof that reads a number as another is taken back where results are seen to differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.passes.prove.each_device.programs import on

PLACED = on({"i": 2}, (P("i"), P("i")), (P("i"), P("i")), (4, 3), (4, 3))
FACTORS = {"nothing": 0.0, "a_rounding": 1.0, "amplified": 1e9}


def third(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.tanh((x / 3).sum(1, keepdims=True)) + 0 * x, y


def by_factor(factor: float) -> Callable[..., Any]:
    """What is written out with a rounded third, and how far it is from what is not, some times."""

    def local(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        written = jnp.tanh(0.33333334 * (x[:, :1] + x[:, 1:2] + x[:, 2:]))
        return written + 0 * x, y + factor * (written - jnp.tanh((x / 3).sum(1, keepdims=True)))

    return local


@pytest.mark.parametrize("name", FACTORS)
def test_a_difference_that_is_only_found_to_be_none(name: str) -> None:
    """It is 0 by a comparison, not by construction, so that nothing shows by itself how roundings grow in it."""
    report = hlo_verify.verify(*PLACED.pair(third, by_factor(FACTORS[name])), refute=False)
    assert (report.verdict is Verdict.PROVED) == (name != "amplified")
