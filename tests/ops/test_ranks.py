"""Ranks: by sorting twice, and by counting the elements that come before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.compare import assert_same
from tests.support.modules import ours

SIZE, MINE = 8, 2
MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))


def sorted_twice(x: jax.Array) -> jax.Array:
    return jnp.argsort(jnp.argsort(x))


def downwards(x: jax.Array) -> jax.Array:
    return jnp.argsort(jnp.argsort(-x))


def joined(less: jax.Array, first: jax.Array) -> jax.Array:
    return less | first


def chosen(less: jax.Array, first: jax.Array) -> jax.Array:
    return jnp.where(less, 1, jnp.where(first, 1, 0))


def added(less: jax.Array, first: jax.Array) -> jax.Array:
    return less.astype(jnp.int32) + first.astype(jnp.int32)


def before(a: Any, i: Any, b: Any, j: Any, join: Any = joined) -> jax.Array:
    """Whether each of some elements at places comes before each of others."""
    return join(a[None] < b[:, None], (a[None] == b[:, None]) & (i[None] < j[:, None]))


def own(x: jax.Array, off: int = 0) -> jax.Array:
    return MINE * lax.axis_index("x") + off + jnp.arange(x.shape[0])


def counted(join: Callable[..., jax.Array], off: int = 0) -> Callable[[jax.Array], jax.Array]:
    """How many of all elements come before those of a device."""
    every = jnp.arange(SIZE)
    return lambda x: before(lax.all_gather(x, "x", tiled=True), every, x, own(x, off), join).sum(1).astype(jnp.int32)


def apart(x: jax.Array) -> jax.Array:
    """The same, by how many are less, and how many of those before are equal."""
    every, i = lax.all_gather(x, "x", tiled=True)[None], own(x)[:, None]
    first = (every == x[:, None]) & (jnp.arange(SIZE)[None] < i)
    return (every < x[:, None]).sum(1) + first.sum(1)


def summed(x: jax.Array) -> jax.Array:
    """The same, of which each device counts its own for all."""
    ahead = before(x, own(x), lax.all_gather(x, "x", tiled=True), jnp.arange(SIZE)).sum(1)
    return lax.psum_scatter(ahead, "x", tiled=True).astype(jnp.int32)


@pytest.mark.parametrize("join", [joined, chosen, added])
def test_a_count_of_those_before_is_a_rank(join: Callable[..., jax.Array]) -> None:
    """By numbers, of which some are equal."""
    places = jnp.arange(SIZE)
    function = jax.jit(lambda x: before(x, places, x, places, join).sum(1))
    text = function.lower(jax.ShapeDtypeStruct((SIZE,), jnp.float32)).as_text()
    for seed in range(5):
        x = np.random.default_rng(seed).integers(-2, 2 + seed, SIZE).astype("f")
        (found,) = ours(text, [x]).results
        assert_same(found, np.asarray(function(x)))
        assert_same(found, np.argsort(np.argsort(x, kind="stable"), kind="stable").astype("i"))


@pytest.mark.parametrize(
    ("whole", "local", "expected"),
    [
        (sorted_twice, counted(joined), Verdict.PROVED),
        (sorted_twice, counted(chosen), Verdict.PROVED),
        (sorted_twice, counted(added), Verdict.PROVED),
        (sorted_twice, apart, Verdict.PROVED),
        (sorted_twice, summed, Verdict.PROVED),
        (downwards, lambda x: counted(joined)(-x), Verdict.PROVED),
        (lambda x: sorted_twice(jnp.exp(2 * x)), counted(joined), Verdict.PROVED),
        (sorted_twice, lambda x: counted(joined)(-x), Verdict.REFUTED),
        (sorted_twice, counted(lambda less, first: less), Verdict.REFUTED),
        (sorted_twice, counted(joined, off=1), Verdict.REFUTED),
        (jnp.argsort, counted(joined), Verdict.REFUTED),
    ],
)
def test_ranks_of_elements_that_devices_share(whole: Any, local: Any, expected: Verdict) -> None:
    shapes = jax.ShapeDtypeStruct((SIZE,), jnp.float32)
    mapped = jax.shard_map(local, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    found = hlo_verify.verify(*(jax.jit(f).trace(shapes) for f in (whole, mapped)), devices=4)
    assert found.verdict is expected
