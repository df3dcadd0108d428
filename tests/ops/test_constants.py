"""Constants: floats that count positions are these, and all others stay tensors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict
from hlo_verify.memory import Memory
from hlo_verify.ops.constants import constant_term
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.prove import prove_at_once
from hlo_verify.terms.term import Read, atoms
from tests.passes.prove.each_device.programs import on

COUNTED = [
    np.array([0, 16, 32, 48], np.float32),
    np.array([3.0, 1.0, -1.0]),
    np.array([[0, 1], [10, 11], [20, 21]], np.float32),
    np.array([0, 0, 4, 4, 0, 0, 4, 4], jnp.bfloat16),
    np.array([2.0**53, 0.0]),
]
OTHERS = [
    np.array([0, 16, 32, 49], np.float32),
    np.array([0, 0.5, 1.0], np.float32),
    np.array([0, 1e-30, 0, 1e-30]),
    np.array([0.0, 2.0**54]),
    np.array([1, 0, 0, 0], np.float32),
]


def reads(array: Any, dtype: str) -> bool:
    with Memory().on():
        return any(isinstance(atom, Read) for atom in atoms(constant_term(array, dtype, array.shape)))


@pytest.mark.parametrize("array", COUNTED, ids=str)
def test_floats_that_count(array: Any) -> None:
    assert not reads(array, "f64")


@pytest.mark.parametrize("array", OTHERS, ids=str)
def test_other_floats(array: Any) -> None:
    assert reads(array, "f64")


@pytest.mark.parametrize(
    ("begins", "is_right"), [((0, 64, 128, 192), True), ((0, 64, 128, 193), False), ((0, 64, 192, 128), False)]
)
def test_positions_in_floats_from_a_table_of_devices(begins: tuple[int, ...], is_right: bool) -> None:
    """As XLA has them of an iota of floats: rotary positions where a sequence is split."""

    def whole(x: jax.Array) -> jax.Array:
        return jnp.tanh(jnp.cos(jnp.arange(256.0) * 0.3) @ x)

    def local(x: jax.Array) -> jax.Array:
        begin = lax.dynamic_slice(jnp.array(begins, jnp.float32), (lax.axis_index("i"),), (1,))
        return jnp.tanh(lax.psum(jnp.cos((jnp.arange(64.0) + begin) * 0.3) @ x, "i"))

    logical, partitioned = on({"i": 4}, (P("i"),), P(), (256, 512)).pair(whole, local)
    found = prove_at_once(load(logical), load(partitioned))
    assert (found.verdict is Verdict.PROVED) is is_right


@pytest.mark.parametrize(
    ("begins", "is_right"), [((1, 1, 1, 0), True), ((1, 1, 0, 0), False), ((1, 1, 0, 1), False), ((1, 1, 1, 1), False)]
)
def test_rows_that_a_table_of_devices_leaves_out(begins: tuple[int, ...], is_right: bool) -> None:
    """As XLA has what is put in the last row of a buffer that is split: a pipeline's last stage, backwards."""

    def whole(x: jax.Array) -> jax.Array:
        return jnp.where(jnp.arange(4)[:, None] == 3, jnp.tanh(x), 0)

    def local(x: jax.Array) -> jax.Array:
        begin = lax.dynamic_slice(jnp.array(begins), (lax.axis_index("i"),), (1,))
        return jnp.where(jnp.arange(1)[:, None] >= begin, jnp.tanh(x), 0)

    logical, partitioned = on({"i": 4}, (P("i"),), P("i"), (4, 512)).pair(whole, local)
    found = prove_at_once(load(logical), load(partitioned))
    assert (found.verdict is Verdict.PROVED) is is_right
