"""How many elements of all devices are less than others is counted round a ring of them, inside of functions too."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.conftest import SEED

Loss = Callable[[jax.Array, jax.Array], jax.Array]

GIVEN = jax.ShapeDtypeStruct((8,), jnp.float32), jax.ShapeDtypeStruct((8,), jnp.int32)


def loss(scores: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean of what pairs in the wrong order cost."""
    is_before = (labels[:, None] > labels[None]).astype(jnp.float32)
    costs = jax.nn.softplus(scores[None] - scores[:, None])
    return jnp.sum(is_before * costs) / jnp.maximum(is_before.sum(), 1.0)


def round_a_ring(n: int, wrong: str = "") -> Loss:
    ring = [(i, (i + 1) % n) for i in range(n)]

    def local(scores: jax.Array, labels: jax.Array) -> jax.Array:
        def turn(carry: tuple[jax.Array, ...], _: None) -> tuple[tuple[jax.Array, ...], None]:
            others, theirs, cost, count = carry
            is_before = labels[:, None] >= theirs[None] if wrong == "pairs of one label" else labels[:, None] > theirs
            cost += jnp.where(labels[:, None] > theirs, jnp.log1p(jnp.exp(others - scores[:, None])), 0.0).sum()
            count += is_before.sum()
            others = lax.ppermute(others, "d", ring)
            theirs = theirs if wrong == "its own labels" else lax.ppermute(theirs, "d", ring)
            return (others, theirs, cost, count), None

        start = scores, labels, jnp.float32(0), jnp.int32(0)
        (*_, cost, count), _ = lax.scan(turn, start, None, length=n - 1 if wrong == "a turn less" else n)
        count = count if wrong == "a count of its own" else lax.psum(count, "d")
        return lax.psum(cost, "d") / jnp.maximum(count, 1)

    mesh = AbstractMesh((n,), ("d",), axis_types=(AxisType.Auto,))
    return jax.shard_map(local, mesh=mesh, in_specs=(P("d"), P("d")), out_specs=P(), check_vma=False)


@pytest.mark.parametrize("n", [2, 4])
def test_a_mean_of_pairs_and_its_gradient(n: int) -> None:
    for whole, ring in ((loss, round_a_ring(n)), (jax.grad(loss), jax.grad(round_a_ring(n)))):
        found = hlo_verify.check(whole, ring, *GIVEN, refute=False)
        assert found.verdict is Verdict.PROVED, found


@pytest.mark.parametrize("wrong", ["pairs of one label", "its own labels", "a turn less", "a count of its own"])
def test_what_is_wrong_stays_so(wrong: str) -> None:
    found = hlo_verify.check(loss, round_a_ring(2, wrong), *GIVEN)
    assert found.verdict is Verdict.REFUTED, found


def test_a_count_in_a_function() -> None:
    def whole(labels: jax.Array) -> jax.Array:
        return jnp.exp(-(labels[:, None] > labels[None]).sum().astype(jnp.float32))

    def local(labels: jax.Array) -> jax.Array:
        other = lax.ppermute(labels, "d", [(0, 1), (1, 0)])
        count = (labels[:, None] > labels).sum() + (labels[:, None] > other).sum()
        return jnp.exp(-lax.psum(count, "d").astype(jnp.float32))

    mesh = AbstractMesh((2,), ("d",), axis_types=(AxisType.Auto,))
    ring = jax.shard_map(local, mesh=mesh, in_specs=P("d"), out_specs=P())
    assert hlo_verify.check(whole, ring, GIVEN[1], refute=False).verdict is Verdict.PROVED


def test_the_loss_is_what_it_says() -> None:
    rng = np.random.default_rng(SEED)
    scores, labels = rng.standard_normal(8).astype(np.float32), rng.integers(0, 4, 8)
    pairs = [(i, j) for i in range(8) for j in range(8) if labels[i] > labels[j]]
    wanted = sum(np.log1p(np.exp(scores[j] - scores[i])) for i, j in pairs) / max(len(pairs), 1)
    np.testing.assert_allclose(loss(jnp.asarray(scores), jnp.asarray(labels)), wanted, rtol=1e-4)
