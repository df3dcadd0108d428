"""Rows that lie sorted by their group, and groups told apart by offsets: tokens by their expert, without capacities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict, check

Function = Callable[..., Any]
ROWS, GROUPS = 6, 3
X = jax.ShapeDtypeStruct((ROWS, 2), jnp.float32)
E = jax.ShapeDtypeStruct((ROWS,), jnp.int32)
W = jax.ShapeDtypeStruct((GROUPS, 2, 4), jnp.float32)
MESH = jax.sharding.AbstractMesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))


def verdict(reference: Function, local: Function, *, w: bool = True) -> Verdict:
    specs = (P(), P(), P(None, None, "d")) if w else (P(), P())
    device = jax.shard_map(local, mesh=MESH, in_specs=specs, out_specs=P(None, "d") if w else P(), check_vma=False)
    return check(reference, device, *((X, E, W) if w else (X, E)), assume={"e": (0, GROUPS)}).verdict


def of_own_group(x: jax.Array, e: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.einsum("td,tdf->tf", x, w[e])


def sizes(e: jax.Array) -> jax.Array:
    return jnp.bincount(e, length=GROUPS).astype(jnp.int32)


def grouped(
    back: Callable[[jax.Array, jax.Array], jax.Array], *, by: Function = lambda e: e, size: Function = sizes
) -> Function:
    def local(x: jax.Array, e: jax.Array, w: jax.Array) -> jax.Array:
        order = jnp.argsort(by(e))
        return back(lax.ragged_dot(x[order], w, size(e)), order)

    return local


BACK: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "by the inverse": lambda y, order: y[jnp.argsort(order)],
    "scattered": lambda y, order: jnp.zeros_like(y).at[order].set(y),
    "added": lambda y, order: jnp.zeros_like(y).at[order].add(y),
}
WRONG: dict[str, Function] = {
    "not put back": grouped(lambda y, order: y),
    "by the order once more": grouped(lambda y, order: y[order]),
    "the greatest group first": grouped(BACK["by the inverse"], by=lambda e: -e),
    "sizes of groups turned": grouped(BACK["by the inverse"], size=lambda e: sizes(e)[::-1]),
    "one row less": grouped(BACK["by the inverse"], size=lambda e: sizes(e).at[0].add(-1)),
}


@pytest.mark.parametrize("name", BACK)
def test_rows_by_their_group(name: str) -> None:
    assert verdict(of_own_group, grouped(BACK[name])) is Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", WRONG)
def test_other_rows_or_groups(name: str) -> None:
    assert verdict(of_own_group, WRONG[name]) is Verdict.REFUTED


GATES = jax.ShapeDtypeStruct((ROWS, 2), jnp.float32)
CHOSEN = jax.ShapeDtypeStruct((ROWS, 2), jnp.int32)
OUT = jax.ShapeDtypeStruct((GROUPS, 4, 2), jnp.float32)


def of_two_groups(x: jax.Array, e: jax.Array, g: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.einsum("tk,tkf->tf", g, jnp.einsum("td,tkdf->tkf", x, w[e]))


def sorted_choices(wrong: bool) -> Function:
    """Each row is there twice, for either of its groups, and both are weighted and added up."""

    def local(x: jax.Array, e: jax.Array, g: jax.Array, w: jax.Array) -> jax.Array:
        order = jnp.argsort(e.reshape(-1))
        y = lax.ragged_dot(x[order // 2], w, sizes(e.reshape(-1)))
        y = y * g.reshape(-1)[jnp.arange(2 * ROWS) if wrong else order][:, None]
        return jnp.zeros((ROWS, y.shape[1])).at[order // 2].add(y)

    return local


@pytest.mark.parametrize("wrong", [False, True])
def test_two_groups_of_a_row(wrong: bool) -> None:
    specs = (P(), P(), P(), P(None, None, "d"))
    device = jax.shard_map(sorted_choices(wrong), mesh=MESH, in_specs=specs, out_specs=P(None, "d"), check_vma=False)
    found = check(of_two_groups, device, X, CHOSEN, GATES, W, assume={"e": (0, GROUPS)}).verdict
    assert found is (Verdict.REFUTED if wrong else Verdict.PROVED)


def gated(x: jax.Array, e: jax.Array, w: jax.Array, u: jax.Array, out: jax.Array) -> jax.Array:
    return jnp.einsum("tf,tfd->td", jax.nn.silu(of_own_group(x, e, w)) * of_own_group(x, e, u), out[e])


def sorted_gated(wrong: bool) -> Function:
    def local(x: jax.Array, e: jax.Array, w: jax.Array, u: jax.Array, out: jax.Array) -> jax.Array:
        order, size = jnp.argsort(e), sizes(e)
        hidden = jax.nn.silu(lax.ragged_dot(x[order], w, size)) * lax.ragged_dot(x[order], u, size)
        y = lax.ragged_dot(hidden, out, size)
        return jnp.zeros_like(y).at[order].set(y if wrong else lax.psum(y, "d"))

    return local


@pytest.mark.parametrize("wrong", [False, True])
def test_a_gated_layer(wrong: bool) -> None:
    hidden = P(None, None, "d")
    specs = (P(), P(), hidden, hidden, P(None, "d"))
    device = jax.shard_map(sorted_gated(wrong), mesh=MESH, in_specs=specs, out_specs=P(), check_vma=False)
    found = check(gated, device, X, E, W, W, OUT, assume={"e": (0, GROUPS)}).verdict
    assert found is (Verdict.REFUTED if wrong else Verdict.PROVED)


def ends(e: jax.Array) -> jax.Array:
    return jnp.cumsum(sizes(e))


PLACES = jnp.arange(ROWS)
GROUP_OF_PLACE: dict[str, Function] = {
    "counted": lambda e: jnp.sum(PLACES[:, None] >= ends(e), -1),
    "by those behind": lambda e: GROUPS - jnp.sum(PLACES[:, None] < ends(e), -1),
    "searched": lambda e: jnp.searchsorted(ends(e), PLACES, side="right", method="compare_all"),
    "repeated": lambda e: jnp.repeat(jnp.arange(GROUPS), sizes(e), total_repeat_length=ROWS),
}
OTHER_PLACE: dict[str, Function] = {
    "a place early": lambda e: jnp.sum(PLACES[:, None] > ends(e), -1),
    "ends of others": lambda e: jnp.sum(PLACES[:, None] >= ends(e) - sizes(e), -1),
    "the left side": lambda e: jnp.searchsorted(ends(e), PLACES, side="left", method="compare_all"),
}


@pytest.mark.parametrize("name", GROUP_OF_PLACE)
@pytest.mark.parametrize("reference", [jnp.sort, lambda e: e[jnp.argsort(e)]], ids=["sort", "argsort"])
def test_the_group_of_a_place(name: str, reference: Function) -> None:
    given = GROUP_OF_PLACE[name]
    assert verdict(lambda x, e: reference(e) * x[:, 0], lambda x, e: given(e) * x[:, 0], w=False) is Verdict.PROVED


@pytest.mark.parametrize("name", OTHER_PLACE)
def test_the_group_of_another_place(name: str) -> None:
    given = OTHER_PLACE[name]
    assert verdict(lambda x, e: jnp.sort(e) * x[:, 0], lambda x, e: given(e) * x[:, 0], w=False) is Verdict.REFUTED
