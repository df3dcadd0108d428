"""Rings whose turns are written out in Python, with a window of the result to write in each, on many devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed, floats

ROWS = 2


def gathered(n: int, wrong: str = "", start: float = 0.0) -> Callable[..., jax.Array]:
    """All rows times a device's columns: each turn has the rows of one device, which then go on to the next."""

    def local(x: jax.Array, w: jax.Array) -> jax.Array:
        i, result = lax.axis_index("i"), jnp.full((n * ROWS, w.shape[1]), start)
        for t in range(n - 1 if wrong == "one short" else n):
            source = (i + t if wrong == "other way" else i - t) % n
            at = source * ROWS + (1 if wrong == "a row on" else 0)
            result = lax.dynamic_update_slice(result, x @ w, (at, 0))
            x = lax.ppermute(x, "i", [(k, (k + 1) % n) for k in range(n)])
        return result

    return local


def placed(n: int) -> Placed:
    return Placed(AbstractMesh((n,), ("i",)), (P("i"), P(None, "i")), P(None, "i"), floats((n * ROWS, 3), (3, n)))


def verdict(n: int, *options: Any) -> Verdict:
    return hlo_verify.verify(*placed(n).pair(jnp.matmul, gathered(n, *options)), refute=False).verdict


def verdict_of_gradient(n: int, *options: Any) -> Verdict:
    """Of a loss by both arguments: what a device clears in each turn is what it wrote in that turn."""
    given = placed(n)

    def gradient(product: Callable[..., jax.Array]) -> Callable[..., Any]:
        return jax.grad(lambda x, w: jnp.sum(jnp.arange(n * ROWS) @ jnp.tanh(product(x, w))), (0, 1))

    lowered = replace(given, wanted=given.given).lowered
    both = lowered(gradient(jnp.matmul)), lowered(gradient(given.mapped(gathered(n, *options))))
    return hlo_verify.verify(*both, refute=False).verdict


@pytest.mark.parametrize("n", [4, 64])
def test_windows_written_round_a_ring_are_the_whole(n: int) -> None:
    assert verdict(n) is Verdict.PROVED


@pytest.mark.parametrize("wrong", ["one short", "other way", "a row on"])
def test_windows_written_otherwise_are_not(wrong: str) -> None:
    assert verdict(4, wrong) is Verdict.UNKNOWN


@pytest.mark.parametrize("n", [4, 32])
def test_gradients_of_windows_written_round_a_ring(n: int) -> None:
    assert verdict_of_gradient(n) is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("wrong", ["one short", "other way", "a row on"])
def test_gradients_of_windows_written_otherwise(wrong: str) -> None:
    assert verdict_of_gradient(3, wrong) is Verdict.UNKNOWN
