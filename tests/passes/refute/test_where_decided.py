"""Wrong programs that look up what floats have to decide: XLA shows that they differ."""

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

SIZE, DEVICES, BUCKETS = 8, 2, 6
PLACES = SIZE // DEVICES
MESH = AbstractMesh((DEVICES,), ("x",), axis_types=(AxisType.Auto,))


def bucket(distance: jax.Array) -> jax.Array:
    """Of a relative position, as T5 has it: 4 is in bucket 4, or in bucket 3."""
    small = jnp.maximum(distance, 1).astype(jnp.float32)
    return jnp.where(distance < 2, distance, (jnp.log(small) / jnp.log(2.0) * 2).astype(jnp.int32))


def plain(x: jax.Array, table: jax.Array) -> jax.Array:
    places = jnp.arange(SIZE)
    return table[bucket(abs(places[:, None] - places))] @ x


def of_device(first: Callable[[jax.Array], jax.Array]) -> Callable[..., jax.Array]:
    """The same, with what comes first on a device."""

    def shard(x: jax.Array, table: jax.Array) -> jax.Array:
        own = first(lax.axis_index("x")) + jnp.arange(PLACES)
        return table[bucket(abs(own[:, None] - jnp.arange(SIZE)))] @ lax.all_gather(x, "x", tiled=True)

    return jax.shard_map(shard, mesh=MESH, in_specs=(P("x"), P()), out_specs=P("x"), check_vma=False)


@pytest.mark.parametrize(
    ("first", "verdict"),
    [
        (lambda d: d * PLACES, Verdict.PROVED),
        (lambda d: 0 * d, Verdict.REFUTED),
    ],
    ids=["right", "the first device's"],
)
def test_buckets_of_relative_positions(first: Callable[[jax.Array], jax.Array], verdict: Verdict) -> None:
    x, table = jax.ShapeDtypeStruct((SIZE, 2), jnp.float32), jax.ShapeDtypeStruct((BUCKETS,), jnp.float32)
    found = hlo_verify.check(plain, of_device(first), x, table)
    assert found.verdict is verdict
    if verdict is Verdict.REFUTED:
        witness = found.results[0].witness
        assert witness is not None
        assert "by XLA" in witness.replayed


def test_what_floats_decide_is_no_difference() -> None:
    """Buckets as XLA has them, in a table; and as real numbers have them."""
    as_floats = np.asarray(jax.jit(lambda: bucket(jnp.arange(SIZE)))())
    as_numbers = np.array([0, 1, *(int(2 * np.log2(n) + 1e-9) for n in range(2, SIZE))], np.int32)
    for held in (as_floats, as_numbers):

        def shard(x: jax.Array, table: jax.Array, held: np.ndarray = held) -> jax.Array:
            return x + table[jnp.asarray(held)[lax.axis_index("x") * PLACES + jnp.arange(PLACES)]]

        mapped = jax.shard_map(shard, mesh=MESH, in_specs=(P("x"), P()), out_specs=P("x"), check_vma=False)
        x, table = jax.ShapeDtypeStruct((SIZE,), jnp.float32), jax.ShapeDtypeStruct((BUCKETS,), jnp.float32)
        found = hlo_verify.check(lambda x, table: x + table[bucket(jnp.arange(SIZE))], mapped, x, table)
        assert found.verdict is Verdict.UNKNOWN
