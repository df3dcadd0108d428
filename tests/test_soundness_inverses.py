"""The inverse of an inverse is undefined where that is: that of 1/0 is 0, and NaN, which cancelling leaves, has none.

A device computes `q + q - q`, with q the inverse of something that may be 0: NaN there, where the reference, which
divides by nothing, gives a number.
"""

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

pytestmark = pytest.mark.usefixtures("prover_alone")

Function = Callable[[jax.Array], jax.Array]
VALUES = jax.ShapeDtypeStruct((8,), jnp.float32)
MESH = AbstractMesh((2,), ("d",), axis_types=(AxisType.Auto,))


def inverse(a: jax.Array) -> jax.Array:
    return cancelled(1 / a)


def inverse_root(a: jax.Array) -> jax.Array:
    return cancelled(lax.rsqrt(a))


def cancelled(q: jax.Array) -> jax.Array:
    return q + q - q


PAIRS: dict[str, tuple[Function, Function]] = {
    "inverse": (lambda a: a, lambda a: 1 / inverse(a)),
    "quotient": (lambda a: 3 * a, lambda a: 3 / inverse(a)),
    "cube": (lambda a: a**3, lambda a: 1 / inverse(a) ** 3),
    "root": (jnp.sqrt, lambda a: 1 / inverse_root(a)),
    "root of an inverse": (jnp.sqrt, lambda a: lax.rsqrt(inverse(a))),
    "squared root": (lambda a: a, lambda a: lax.rsqrt(inverse(a)) ** 2),
    "inverse of a square": (lambda a: a, lambda a: 1 / inverse_root(a) ** 2),
    "negative power": (jnp.sqrt, lambda a: inverse(a) ** -0.5),
    "in a sum": (lambda a: jnp.log(a + 1), lambda a: jnp.log(1 / inverse(a) + 1)),
    "share": (lambda a: a / (a + 1), lambda a: 1 - 1 / (1 / inverse(a) + 1)),
}
"""What a reference makes of some value, and a device."""


def verdict(pair: tuple[Function, Function], of: Function) -> Verdict:
    whole, local = (lambda x: pair[0](of(x))), (lambda x: pair[1](of(x)))
    mapped = jax.shard_map(local, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    return hlo_verify.check(whole, mapped, VALUES, refute=False).verdict


@pytest.mark.parametrize("name", PAIRS)
def test_of_what_may_be_0(name: str) -> None:
    whole, local = (np.asarray(f(jnp.zeros(1))) for f in PAIRS[name])
    assert np.isfinite(whole).all() and np.isnan(local).all()
    assert verdict(PAIRS[name], jnp.abs) is not Verdict.PROVED


@pytest.mark.parametrize("name", PAIRS)
def test_of_what_is_positive(name: str) -> None:
    assert verdict(PAIRS[name], lambda x: x * x + 1) is Verdict.PROVED
