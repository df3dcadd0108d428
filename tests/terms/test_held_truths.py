"""Places that a mask chooses, where the mask is a factor too: rows of padded bags, tokens of other devices."""

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

Spelling = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], jax.Array]
ROWS, BAGS, LENGTH = 8, 4, 3
SHAPES = (
    jax.ShapeDtypeStruct((ROWS, 2), jnp.float32),
    jax.ShapeDtypeStruct((BAGS, LENGTH), jnp.int32),
    jax.ShapeDtypeStruct((BAGS, LENGTH), jnp.bool_),
    jax.ShapeDtypeStruct((BAGS, LENGTH), jnp.float32),
)
IN_RANGE = {"n": (0, ROWS)}


def rows(table: jax.Array, n: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
    return jnp.where(m[..., None], table[n], 0)


def positive_rows(table: jax.Array, n: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
    return jnp.where((s > 0)[..., None], jnp.tanh(table[n]), 0)


SAME: dict[str, tuple[Spelling, Spelling]] = {
    "chosen": (rows, lambda table, n, m, s: jnp.where(m[..., None], table[jnp.where(m, n, 0)], 0)),
    "multiplied": (rows, lambda table, n, m, s: m[..., None] * table[jnp.where(m, n, 5)]),
    "both": (
        lambda table, n, m, s: jnp.where((m & (n < 6))[..., None], table[n], 0),
        lambda table, n, m, s: jnp.where((m & (n < 6))[..., None], table[jnp.where(m & (n < 6), n, 0)], 0),
    ),
    "one of two": (
        lambda table, n, m, s: jnp.where((m & (n < 6))[..., None], table[n], 0),
        lambda table, n, m, s: jnp.where((m & (n < 6))[..., None], table[jnp.where(m, n, 0)], 0),
    ),
    "of floats": (
        positive_rows,
        lambda table, n, m, s: jnp.where((s > 0)[..., None], jnp.tanh(table[jnp.where(s > 0, n, 0)]), 0),
    ),
}
OTHER: dict[str, tuple[Spelling, Spelling]] = {
    "no factor": (lambda table, n, m, s: table[n], lambda table, n, m, s: table[jnp.where(m, n, 0)]),
    "the opposite": (rows, lambda table, n, m, s: jnp.where(m[..., None], table[jnp.where(m, 0, n)], 0)),
    "another element": (
        rows,
        lambda table, n, m, s: jnp.where(m[..., None], table[jnp.where(jnp.roll(m, 1, 1), n, 0)], 0),
    ),
    "a weaker one": (
        rows,
        lambda table, n, m, s: jnp.where(m[..., None], table[jnp.where(m & (n < 6), n, 0)], 0),
    ),
    "one of two that hold": (
        lambda table, n, m, s: jnp.where((m | (s > 0))[..., None], table[n], 0),
        lambda table, n, m, s: jnp.where((m | (s > 0))[..., None], table[jnp.where(m, n, 0)], 0),
    ),
    "another number": (
        positive_rows,
        lambda table, n, m, s: jnp.where((s > 0)[..., None], jnp.tanh(table[jnp.where(s > 1, n, 0)]), 0),
    ),
}


def report(pair: tuple[Spelling, Spelling], **options: bool) -> hlo_verify.Report:
    mesh = AbstractMesh((2,), ("d",), axis_types=(AxisType.Auto,))
    split = jax.shard_map(pair[1], mesh=mesh, in_specs=(P(), P("d"), P("d"), P("d")), out_specs=P("d"))
    return hlo_verify.check(pair[0], split, *SHAPES, assume=IN_RANGE, **options)


def values(seed: int) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(seed)
    table, n = random.standard_normal((ROWS, 2)), random.integers(0, ROWS, (BAGS, LENGTH))
    return table, n, random.random((BAGS, LENGTH)) < 0.5, random.standard_normal((BAGS, LENGTH))


@pytest.mark.parametrize("name", SAME)
def test_a_place_that_a_factor_decides(name: str) -> None:
    assert all(np.array_equal(*(f(*map(jnp.asarray, values(seed))) for f in SAME[name])) for seed in range(3))
    assert report(SAME[name], refute=False).verdict is Verdict.PROVED


@pytest.mark.parametrize("name", OTHER)
def test_a_place_that_it_does_not_decide(name: str) -> None:
    assert not all(np.array_equal(*(f(*map(jnp.asarray, values(seed))) for f in OTHER[name])) for seed in range(3))
    assert report(OTHER[name], refute=False).verdict is not Verdict.PROVED


def test_a_second_check_agrees() -> None:
    assert report(SAME["both"], refute=False, recheck=True).verdict is Verdict.PROVED


@pytest.mark.parametrize(("dropped", "verdict"), [("nothing", Verdict.PROVED), ("mask", Verdict.REFUTED)])
def test_bags_of_rows_that_are_split(dropped: str, verdict: Verdict) -> None:
    """A bag's padding is left out by the same mask as rows of other devices."""

    def whole(table: jax.Array, n: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
        return jnp.einsum("bl,bld->bd", m.astype(jnp.float32), table[n])

    def body(table: jax.Array, n: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
        own = n - lax.axis_index("d") * len(table)
        is_here = (own >= 0) & (own < len(table)) & (m | (dropped == "mask"))
        found = jnp.take(table, jnp.where(is_here, own, 0), axis=0) * is_here[..., None]
        return lax.psum(found.sum(1), "d")

    mesh = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))
    split = jax.shard_map(body, mesh=mesh, in_specs=(P("d"), P(), P(), P()), out_specs=P())
    assert hlo_verify.check(whole, split, *SHAPES, assume=IN_RANGE).verdict is verdict
