"""Queries, keys and values from one product: devices have equal parts of all three together, which begin where none of
the three does."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.prove import prove_at_once
from tests.passes.prove.each_device.programs import on

HEADS, SIZE = 4, 32
EACH = HEADS * SIZE
"""Of the 384 columns, device 0 has those of the first part and half of the second."""


def gradients(scale: jax.Array, x: jax.Array) -> jax.Array:
    """The columns of the three parts, as what a product of all three at once goes back through."""
    parts = [jnp.sin(x) * scale[0][:, None], jnp.tanh(x) * scale[1][:, None], x * scale[2][:, None]]
    padded = (jnp.pad(part[None], ((n, 2 - n), (0, 0), (0, 0))) for n, part in enumerate(parts))
    return sum(padded).reshape(3 * EACH)


def whole(scale: jax.Array, x: jax.Array, w: jax.Array) -> jax.Array:
    return gradients(scale, x) @ w


@pytest.mark.parametrize(("step", "turn", "is_right"), [(192, 0, True), (128, 0, False), (192, 32, False)])
def test_a_sum_over_parts_that_no_device_has_whole(step: int, turn: int, is_right: bool) -> None:
    def local(scale: jax.Array, x: jax.Array, w: jax.Array) -> jax.Array:
        columns = jnp.roll(gradients(scale, x), turn)
        return lax.psum(lax.dynamic_slice(columns, (step * lax.axis_index("i"),), (192,)) @ w, "i")

    placed = on({"i": 2}, (P(), P(), P("i")), P(), (3, HEADS), (HEADS, SIZE), (3 * EACH, 2))
    logical, partitioned = placed.pair(whole, local)
    found = prove_at_once(load(logical), load(partitioned))
    assert (found.verdict is Verdict.PROVED) is is_right
