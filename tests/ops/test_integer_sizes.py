"""Absolute values of integers, in the ways in which they are written."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

MESH = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
Body = Callable[[jax.Array, jax.Array], jax.Array]


def verdict(reference: Body, local: Body, dtype: str) -> Verdict:
    pair = Placed(MESH, (P("x"), P("x")), P("x"), [jax.ShapeDtypeStruct((4,), dtype)] * 2).pair(reference, local)
    return hlo_verify.verify(*pair, refute=False).verdict


def size(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.abs(x - y)


SAME: dict[str, Body] = {
    "the greater": lambda x, y: jnp.maximum(x - y, y - x),
    "less the lesser": lambda x, y: -jnp.minimum(y - x, x - y),
    "of the opposite": lambda x, y: jnp.abs(y - x),
    "chosen": lambda x, y: jnp.where(x - y < 0, y - x, x - y),
}

OTHERS: dict[str, Body] = {
    "the lesser": lambda x, y: jnp.minimum(x - y, y - x),
    "one beside": lambda x, y: jnp.maximum(x - y, y - x - 1),
    "compared before they wrap": lambda x, y: jnp.where(x > y, x - y, y - x),
    "the range of both": lambda x, y: jnp.maximum(x, y) - jnp.minimum(x, y),
}


@pytest.mark.parametrize("name", SAME)
def test_sizes_of_all_integers(name: str) -> None:
    """The reference is that the machine's integers are the same, of each two that a type of 8 bits has."""
    assert _are_the_same(SAME[name], jnp.int8)
    assert all(verdict(size, SAME[name], dtype) is Verdict.PROVED for dtype in ("int8", "int32"))


@pytest.mark.parametrize("name", OTHERS)
def test_other_integers_are_not(name: str) -> None:
    assert not _are_the_same(OTHERS[name], jnp.int8)
    assert all(verdict(size, OTHERS[name], dtype) is not Verdict.PROVED for dtype in ("int8", "int32"))


def test_what_has_no_sign_has_no_size() -> None:
    """An opposite of what is counted from 0 on is a great number."""
    for reference, local in (
        (lambda x, y: x, lambda x, y: jnp.maximum(x, -x)),
        (lambda x, y: jnp.abs(x - y), lambda x, y: jnp.abs(y - x)),
        (lambda x, y: jnp.abs(x - y), SAME["the greater"]),
    ):
        assert verdict(reference, local, "uint8") is not Verdict.PROVED


def _are_the_same(body: Body, dtype: type) -> bool:
    every = np.arange(-128, 128).astype(dtype)
    x, y = jnp.asarray(np.repeat(every, 256)), jnp.asarray(np.tile(every, 256))
    return bool((size(x, y) == body(x, y)).all())
