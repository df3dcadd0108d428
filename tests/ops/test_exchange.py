"""An exchange whose extent is data is a function of what all devices send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import Array, lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

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
    placed = Placed(MESH, P("x"), P("x"), [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes])
    one, other = (placed.lowered(placed.mapped(function), "tpu") for function in (exchanged, local))
    assert hlo_verify.verify(one, other, refute=False).verdict is expected
