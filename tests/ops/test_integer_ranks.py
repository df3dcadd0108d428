"""Ranks of integers, as counting sorts find them: how many are less, and how many of the equal ones come before."""

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

SIZE, MINE, KINDS, DEVICES = 4, 2, 3, 2
MESH = AbstractMesh((DEVICES,), ("x",), axis_types=(AxisType.Auto,))
Counted = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], jax.Array]


def total(*conditions: jax.Array) -> jax.Array:
    return sum((c.astype(jnp.int32).sum(1) for c in conditions), jnp.zeros(SIZE, jnp.int32))


FORMS: dict[str, Counted] = {
    "less, and equal before": lambda k, t, v, w: total(k < t, (k == t) & (v < w)),
    "at most, less equal, and equal up to": lambda k, t, v, w: (
        total(k <= t) - total(k == t) + total((k == t) & (v <= w)) - 1
    ),
    "greater, and equal before": lambda k, t, v, w: total(k > t, (k == t) & (v < w)),
    "at least, less equal, and equal before": lambda k, t, v, w: (
        total(k >= t) - total(k == t) + total((k == t) & (v < w))
    ),
    "less, and equal up to": lambda k, t, v, w: total(k < t, (k == t) & (v <= w)),
    "less, and equal up to, without two": lambda k, t, v, w: total(k < t, (k == t) & (v <= w)) - 2,
    "at most, and equal before": lambda k, t, v, w: total(k <= t, (k == t) & (v < w)),
    "less by two, and equal before": lambda k, t, v, w: total(k < t - 1, (k == t) & (v < w)),
    "less, and equal after": lambda k, t, v, w: total(k < t, (k == t) & (v > w)),
    "less, and nearly equal before": lambda k, t, v, w: total(k < t, (k >= t) & (k <= t + 1) & (v < w)),
    "less twice": lambda k, t, v, w: total(k < t, k < t, (k == t) & (v < w)),
    "where positive": lambda k, t, v, w: jnp.where(t[:, 0] >= 1, total(k < t), 0) + total((k == t) & (v < w)),
}


def count(form: str, k: jax.Array) -> jax.Array:
    places = jnp.arange(SIZE)
    return FORMS[form](k[None], k[:, None], places[None], places[:, None])


def test_counts_are_what_they_are_as_ranks() -> None:
    """By numbers, many of which are equal, some of them negative."""
    function = jax.jit(lambda k: [count(form, k) for form in FORMS])
    text = function.lower(jax.ShapeDtypeStruct((SIZE,), jnp.int32)).as_text()
    for seed in range(4):
        k = np.random.default_rng(seed).integers(-2, 1 + seed, SIZE).astype("i")
        for found, expected in zip(ours(text, [k]).results, function(k), strict=True):
            assert_same(found, np.asarray(expected))


def is_proved(form: str, *, downwards: bool) -> bool:
    def whole(k: jax.Array) -> jax.Array:
        return jnp.argsort(jnp.argsort(-1 - k if downwards else k))

    def local(k: jax.Array) -> jax.Array:
        ranks = count(form, lax.all_gather(k, "x", tiled=True))
        return lax.dynamic_slice_in_dim(ranks, MINE * lax.axis_index("x"), MINE)

    shapes = [jax.ShapeDtypeStruct((SIZE,), jnp.int32)]
    return verdict(whole, local, shapes, P("x"), refute=False) is Verdict.PROVED


UPWARDS = ("less, and equal before", "at most, less equal, and equal up to")
DOWNWARDS = ("greater, and equal before", "at least, less equal, and equal before")


@pytest.mark.parametrize("form", [*UPWARDS, *DOWNWARDS])
def test_counts_that_are_ranks(form: str) -> None:
    assert is_proved(form, downwards=form in DOWNWARDS)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("form", [form for form in FORMS if form not in (*UPWARDS, *DOWNWARDS)])
def test_other_counts_are_none(form: str) -> None:
    assert not is_proved(form, downwards=False)


def verdict(whole: Any, local: Any, shapes: list[Any], out: Any, **options: Any) -> Verdict:
    mapped = jax.shard_map(local, mesh=MESH, in_specs=P("x"), out_specs=out, check_vma=False)
    return hlo_verify.verify(*(jax.jit(f).trace(*shapes) for f in (whole, mapped)), devices=DEVICES, **options).verdict


def place(k: jax.Array, form: str) -> jax.Array:
    """Where each device puts its own: behind all of lesser kinds, those of its kind ahead, and its own before."""
    kinds = (k[:, None] == jnp.arange(KINDS)).astype(jnp.int32)
    sizes = lax.all_gather(kinds.sum(0), "x")
    ends = jnp.cumsum(sizes.sum(0))
    starts = ends - sizes.sum(0) if form != "shifted" else jnp.concatenate([jnp.zeros(1, jnp.int32), ends[:-1]])
    on_its_way = (
        jnp.arange(DEVICES) <= lax.axis_index("x") if form == "too far" else jnp.arange(DEVICES) < lax.axis_index("x")
    )
    ahead = jnp.where(on_its_way[:, None], sizes, 0).sum(0)
    before = jnp.take_along_axis(jnp.cumsum(kinds, 0), k[:, None], 1)[:, 0]
    return (starts + ahead)[k] + before - (0 if form == "one too far" else 1)


@pytest.mark.drawn(1, each=lambda form, expected: expected)
@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("plain", Verdict.PROVED),
        ("shifted", Verdict.PROVED),
        ("too far", Verdict.REFUTED),
        ("one too far", Verdict.REFUTED),
    ],
)
def test_rows_that_devices_sort_by_counting(form: str, expected: Verdict) -> None:
    shapes = [jax.ShapeDtypeStruct((SIZE,), jnp.float32), jax.ShapeDtypeStruct((SIZE,), jnp.int32)]

    def put(x: jax.Array, k: jax.Array) -> jax.Array:
        return lax.psum(jnp.zeros(SIZE).at[place(k, form)].add(x), "x")

    assume = {"k": (0, KINDS)}
    assert verdict(lambda x, k: x[jnp.argsort(k)], put, shapes, P(), assume=assume) is expected
