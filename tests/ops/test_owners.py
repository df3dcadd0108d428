"""What is split is written by the device that owns the place, as a cache that is split over its sequence."""

from __future__ import annotations

from collections.abc import Callable
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

Program = Callable[..., Any]
PLACE = jax.ShapeDtypeStruct((), jnp.int32)


def verdict(devices: int, program: Program, local: Program, size: int = 8) -> Verdict:
    """Of a cache of so many columns that are split, what is written to it, and where."""
    split = P(None, "x")
    placed = Placed(AbstractMesh((devices,), ("x",)), (split, P(), P()), split, [*floats((2, size), (2,)), PLACE])
    return hlo_verify.verify(*placed.pair(program, local), refute=False).verdict


def written(cache: jax.Array, new: jax.Array, place: Any) -> jax.Array:
    return jnp.where(jnp.arange(8) == place, new[:, None], cache)


def own(place: Any, size: int = 2) -> Any:
    return place - size * lax.axis_index("x")


def is_own(k: Any, size: int = 2) -> Any:
    return (k >= 0) & (k < size)


def update(cache: jax.Array, new: jax.Array, k: Any) -> jax.Array:
    return lax.dynamic_update_slice(cache, new[:, None], (0, k))


def guarded(cache: jax.Array, new: jax.Array, place: Any) -> jax.Array:
    k = own(place)
    return jnp.where(is_own(k), update(cache, new, k), cache)


def by_branch(cache: jax.Array, new: jax.Array, place: Any) -> jax.Array:
    k = own(place)
    return lax.cond(is_own(k), lambda c: update(c, new, k), lambda c: c, cache)


def clipped(cache: jax.Array, new: jax.Array, place: Any) -> jax.Array:
    k = own(place)
    return jnp.where(is_own(k), update(cache, new, jnp.clip(k, 0, 1)), cache)


def by_quotient(cache: jax.Array, new: jax.Array, place: Any) -> jax.Array:
    return jnp.where(place // 2 == lax.axis_index("x"), update(cache, new, place % 2), cache)


@pytest.mark.parametrize("local", [guarded, by_branch, clipped, by_quotient])
def test_the_owner_writes(local: Program) -> None:
    assert verdict(4, written, local) is Verdict.PROVED


@pytest.mark.parametrize("inside", [lambda p: jnp.clip(p, 0, 7), lambda p: p % 8], ids=["clipped", "in a ring"])
def test_a_place_that_is_inside_is_written_by_its_owner(inside: Program) -> None:
    whole = lambda cache, new, place: update(cache, new, inside(place))  # noqa: E731
    local = lambda cache, new, place: guarded(cache, new, inside(place))  # noqa: E731
    assert verdict(4, whole, local) is Verdict.PROVED


@pytest.mark.parametrize("devices", [2, 8])
def test_of_other_parts(devices: int) -> None:
    def local(cache: jax.Array, new: jax.Array, place: Any) -> jax.Array:
        k = own(place, 8 // devices)
        return jnp.where(is_own(k, 8 // devices), update(cache, new, k), cache)

    assert verdict(devices, written, local) is Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "wrong",
    [
        lambda cache, new, place: guarded(cache, new, place + 1),
        lambda cache, new, place: update(cache, new, own(place)),
        lambda cache, new, place: jnp.where(own(place) >= 0, update(cache, new, own(place)), cache),
        lambda cache, new, place: jnp.where(is_own(own(place), 3), update(cache, new, own(place)), cache),
        lambda cache, new, place: jnp.where(is_own(own(place) - 1), update(cache, new, own(place)), cache),
    ],
    ids=["one further", "all write", "all after write", "the next one too", "another condition"],
)
def test_others_do_not(wrong: Program) -> None:
    assert verdict(4, written, wrong) is Verdict.UNKNOWN


def test_a_place_outside_is_clamped_into_the_whole_and_nobodys() -> None:
    """`dynamic_update_slice` writes the last place where its offset is beyond; no device owns such a place."""
    assert verdict(4, update, guarded) is Verdict.UNKNOWN


def attended(q: jax.Array, keys: jax.Array, values: jax.Array, new: jax.Array, place: Any) -> jax.Array:
    keys, values = (jnp.where((jnp.arange(16) == place)[:, None], new, each) for each in (keys, values))
    return jax.nn.softmax(jnp.where(jnp.arange(16) <= place, keys @ q, -jnp.inf)) @ values


@pytest.mark.parametrize(("later", "wanted"), [(0, Verdict.PROVED), (1, Verdict.UNKNOWN)])
def test_attention_to_a_cache_that_is_split_over_its_sequence(later: int, wanted: Verdict) -> None:
    def local(q: jax.Array, keys: jax.Array, values: jax.Array, new: jax.Array, place: Any) -> jax.Array:
        k = own(place, 4)
        update_rows = lambda each: lax.dynamic_update_slice(each, new[None], (k, 0))  # noqa: E731
        keys, values = (jnp.where(is_own(k, 4), update_rows(each), each) for each in (keys, values))
        visible = jnp.arange(4) + 4 * lax.axis_index("x") <= place + later
        scores = jnp.where(visible, keys @ q, -jnp.inf)
        weights = jnp.exp(scores - lax.pmax(scores.max(), "x"))
        return lax.psum(weights @ values, "x") / lax.psum(weights.sum(), "x")

    arguments = [*floats((3,), (16, 3), (16, 3), (3,)), PLACE]
    placed = Placed(AbstractMesh((4,), ("x",)), (P(), P("x"), P("x"), P(), P()), P(), arguments)
    assert hlo_verify.verify(*placed.pair(attended, local), refute=False).verdict is wanted
