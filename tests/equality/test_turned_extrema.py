"""The greatest of what a mask leaves is the least of the opposites, turned round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

MESH = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
Body = Callable[[Any, Any], Any]


def verdict(whole: Body, local: Body) -> Verdict:
    shapes = [jax.ShapeDtypeStruct((8,), jnp.float32), jax.ShapeDtypeStruct((8,), jnp.bool_)]
    pair = Placed(MESH, (P("x"), P("x")), P(), shapes).pair(whole, local)
    return hlo_verify.verify(*pair, refute=False).verdict


def greatest(x: Any, m: Any) -> Any:
    return jnp.max(jnp.where(m, x, -jnp.inf))


def least(x: Any, m: Any) -> Any:
    return jnp.min(jnp.where(m, x, jnp.inf))


def of_devices(sign: int = 1, none: float = jnp.inf, is_out: bool = False, factor: float = 1.0) -> Body:
    """The least of the opposites of all devices, turned round."""

    def local(x: Any, m: Any) -> Any:
        own = jnp.where(~m if is_out else m, -sign * factor * x, none)
        return -lax.pmin(jnp.min(own), "x")

    return local


@pytest.mark.parametrize(
    ("whole", "local", "expected"),
    [
        (greatest, of_devices(), Verdict.PROVED),
        (least, lambda x, m: -lax.pmax(jnp.max(jnp.where(m, -x, -jnp.inf)), "x"), Verdict.PROVED),
        (lambda x, m: jnp.exp(greatest(x, m)), lambda x, m: jnp.exp(of_devices()(x, m)), Verdict.PROVED),
        (greatest, of_devices(sign=-1), Verdict.UNKNOWN),
        (greatest, of_devices(none=-jnp.inf), Verdict.UNKNOWN),
        (greatest, of_devices(none=0.0), Verdict.UNKNOWN),
        (greatest, of_devices(is_out=True), Verdict.UNKNOWN),
        (greatest, of_devices(factor=2.0), Verdict.UNKNOWN),
        (greatest, lambda x, m: lax.pmin(jnp.min(jnp.where(m, x, jnp.inf)), "x"), Verdict.UNKNOWN),
        (greatest, lambda x, m: -jnp.min(jnp.where(m, -x, jnp.inf)), Verdict.UNKNOWN),
        (least, of_devices(), Verdict.UNKNOWN),
    ],
    ids=lambda each: "",
)
def test_extrema_of_what_is_left(whole: Body, local: Body, expected: Verdict) -> None:
    assert verdict(whole, local) is expected
