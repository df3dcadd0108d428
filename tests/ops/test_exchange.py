"""An exchange whose extent is data is a function of what all devices send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import Array, lax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict

DEVICES = 4
MESH = AbstractMesh((DEVICES,), ("x",))


def exchanged(x: Array, out: Array, sizes: Array, offsets: Array) -> Array:
    return lax.ragged_all_to_all(x, out, offsets, sizes, offsets, sizes, axis_name="x")


def on_one_device(x: Array, out: Array, sizes: Array, offsets: Array) -> Array:
    """The same, but for what one device sends: of all that the others get something."""
    other = jnp.where(lax.axis_index("x") == 2, 2 * x, x)
    return exchanged(other, out, sizes, offsets)


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        (exchanged, Verdict.PROVED),
        (on_one_device, Verdict.UNKNOWN),
        (lambda x, out, sizes, offsets: exchanged(x, out, offsets, sizes), Verdict.UNKNOWN),
        (lambda x, out, sizes, offsets: exchanged(x, 2 * out, sizes, offsets), Verdict.UNKNOWN),
        (
            lambda x, out, sizes, offsets: lax.ppermute(exchanged(x, out, sizes, offsets), "x", [(0, 1), (1, 0)]),
            Verdict.UNKNOWN,
        ),
    ],
    ids=["right", "one device sends something else", "other sizes", "other output", "to another device"],
)
def test_depends_on_all_devices(local: Callable[..., Any], expected: Verdict) -> None:
    shapes = [((8 * DEVICES, 3), jnp.float32)] * 2 + [((DEVICES * DEVICES,), jnp.int32)] * 2
    arguments = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    sharding = NamedSharding(MESH, P("x"))

    def text(function: Callable[..., Any]) -> str:
        mapped = jax.shard_map(function, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False)
        jitted: Any = jax.jit(mapped, in_shardings=sharding, out_shardings=sharding)
        return str(jitted.trace(*arguments).lower(lowering_platforms=("tpu",)).as_text())

    assert hlo_verify.verify(text(exchanged), text(local), refute=False).verdict is expected
