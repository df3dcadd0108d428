"""Contrastive losses leave each example's score with itself out by a number, or by minus infinity, and choose among the
logarithms of the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Report, Verdict

Function = Callable[..., Any]
N = 8
Z, Y = jax.ShapeDtypeStruct((N, 3), jnp.float32), jax.ShapeDtypeStruct((N,), jnp.int32)
MESH = jax.sharding.AbstractMesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
INFINITE = -float("inf")
PAIRS = np.roll(np.eye(N, dtype=bool), N // 2, 1)


def by_pairs(fill: float) -> Function:
    """Each example's other view is half of the batch away (NT-Xent)."""

    def loss(z: jax.Array) -> jax.Array:
        s = jnp.where(jnp.eye(N, dtype=bool), fill, z @ z.T / 0.5)
        logs = jax.nn.log_softmax(s, -1)
        return -jnp.mean(jnp.sum(jnp.where(PAIRS, logs, 0), -1))

    return loss


def by_pairs_on_devices(fill: float, *, away: int = N // 2) -> Function:
    def local(z: jax.Array) -> jax.Array:
        i = lax.axis_index("d") * 2 + jnp.arange(2)
        s = jnp.einsum("id,jd->ij", z, lax.all_gather(z, "d", tiled=True)) * 2
        s = jnp.where(i[:, None] == jnp.arange(N), fill, s)
        other = jnp.sum(jnp.where((i[:, None] - jnp.arange(N)) % N == away, s, 0), -1)
        return lax.pmean(jnp.mean(jax.nn.logsumexp(s, -1) - other), "d")

    return jax.shard_map(local, mesh=MESH, in_specs=P("d"), out_specs=P(), check_vma=False)


def by_labels(fill: float) -> Function:
    """Examples of one label belong together (SupCon)."""

    def loss(z: jax.Array, y: jax.Array) -> jax.Array:
        own = jnp.eye(N, dtype=bool)
        s = jnp.where(own, fill, z @ z.T / 0.125)
        alike = (y[:, None] == y[None]) & ~own
        logs = s - jax.nn.logsumexp(s, -1, keepdims=True)
        return -jnp.mean(jnp.where(alike, logs, 0).sum(-1) / jnp.maximum(alike.sum(-1), 1))

    return loss


def by_labels_on_devices(fill: float) -> Function:
    def local(z: jax.Array, y: jax.Array) -> jax.Array:
        own = (lax.axis_index("d") * 2 + jnp.arange(2))[:, None] == jnp.arange(N)
        s = jnp.where(own, fill, z @ lax.all_gather(z, "d", tiled=True).T * 8)
        alike = (y[:, None] == lax.all_gather(y, "d", tiled=True)) & ~own
        logs = s - jax.nn.logsumexp(s, -1)[:, None]
        count = alike.astype(jnp.float32).sum(-1)
        return lax.psum(-jnp.sum(jnp.where(alike, logs, 0).sum(-1) / jnp.maximum(count, 1)), "d") / N

    return jax.shard_map(local, mesh=MESH, in_specs=(P("d"), P("d")), out_specs=P(), check_vma=False)


def found(whole: Function, local: Function, *given: jax.ShapeDtypeStruct) -> Report:
    return hlo_verify.check(whole, local, *given, refute=False)


FILLS = [(-1e9, INFINITE), (INFINITE, -1e9)]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("fills", FILLS, ids=str)
def test_what_leaves_itself_out(fills: tuple[float, float]) -> None:
    one, other = fills
    for report in (
        found(by_pairs(one), by_pairs_on_devices(other), Z),
        found(by_labels(one), by_labels_on_devices(other), Z, Y),
    ):
        assert report.verdict is Verdict.PROVED, report
        (said,) = [said for said in report.assumptions if "masks scores" in said]
        assert "not all of them" not in said


@pytest.mark.drawn(1)
@pytest.mark.parametrize("fills", FILLS, ids=str)
def test_another_pair(fills: tuple[float, float]) -> None:
    local = by_pairs_on_devices(fills[1], away=0)
    assert found(by_pairs(fills[0]), local, Z).verdict is not Verdict.PROVED
