"""Signs of products are products of signs, and what is whole is taken out of what is rounded down."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

Program = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]

SPELLINGS: dict[str, tuple[Program, Program, Program]] = {
    "sign of a product": (
        lambda x, y, k: jnp.sign(-2 * x * y),
        lambda x, y, k: -jnp.sign(x) * jnp.sign(y),
        lambda x, y, k: jnp.sign(x) * jnp.sign(y),
    ),
    "a positive factor": (
        lambda x, y, k: jnp.sign(x * jnp.exp(y)),
        lambda x, y, k: jnp.sign(x),
        lambda x, y, k: jnp.sign(x * y),
    ),
    "a factor that may be 0": (
        lambda x, y, k: jnp.sign(x * y * y),
        lambda x, y, k: jnp.sign(x) * jnp.sign(y * y),
        lambda x, y, k: jnp.sign(x),
    ),
    "a factor that may be infinite": (
        lambda x, y, k: jnp.sign(x / y),
        lambda x, y, k: jnp.sign(x / y) + 0 * x,
        lambda x, y, k: jnp.sign(x) * (y > 0),
    ),
    "whole number": (
        lambda x, y, k: jnp.floor(x + k - 2),
        lambda x, y, k: jnp.floor(x) + (k.astype(x.dtype) - 2),
        lambda x, y, k: jnp.floor(x) + jnp.floor(k * 0.5) - 2,
    ),
    "rounded number": (
        lambda x, y, k: jnp.ceil(x + jnp.floor(y)),
        lambda x, y, k: jnp.ceil(x) + jnp.floor(y),
        lambda x, y, k: jnp.ceil(x + y),
    ),
    "half of one": (
        lambda x, y, k: jnp.floor(x + k / 2),
        lambda x, y, k: jnp.floor(k * 0.5 + x),
        lambda x, y, k: jnp.floor(x) + k / 2,
    ),
    "powers of -1": (
        lambda x, y, k: x * (-1.0) ** jnp.arange(8),
        lambda x, y, k: x * (1 - 2 * (jnp.arange(8) % 2))[: x.shape[0]],
        lambda x, y, k: x * (2 * (jnp.arange(8) % 2) - 1)[: x.shape[0]],
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name: str) -> None:
    whole, right, wrong = SPELLINGS[name]
    floats, integers = jax.ShapeDtypeStruct((8,), "float32"), jax.ShapeDtypeStruct((8,), "int32")
    placed = Placed(AbstractMesh((2,), ("x",)), (P("x"),) * 3, P("x"), [floats, floats, integers])
    found, other = (hlo_verify.verify(*placed.pair(whole, local)).verdict for local in (right, wrong))
    assert found is Verdict.PROVED
    assert other is not Verdict.PROVED
