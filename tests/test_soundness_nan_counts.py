"""Among elements of which the program makes some no numbers there is no greatest one: NaN is not equal to itself."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import Array
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict

Made = Callable[[Array, Array], Array]

NAN: dict[str, Made] = {
    "logarithm": lambda x, k: x + jnp.log(0.5 - (k > 3)),
    "logarithm of places": lambda x, k: jnp.where(k > 3, jnp.log(2.0 - k), x),
    "0/0": lambda x, k: x + 0.0 / (k <= 3),
    "inf - inf": lambda x, k: x + jnp.where(k > 3, jnp.inf, 0) - jnp.where(k > 3, jnp.inf, 0),
    "inf * 0": lambda x, k: x * jnp.where(k > 3, jnp.inf, 1.0) * (k <= 3),
    "written": lambda x, k: jnp.where(k > 3, jnp.nan, x),
}
"""Elements of which those beyond the third are NaN for all arguments."""

INFINITE: dict[str, Made] = {
    "-inf": lambda x, k: jnp.where(k > 3, -jnp.inf, x),
    "inf": lambda x, k: jnp.where(k > 3, jnp.inf, x),
    "a number": lambda x, k: jnp.where(k > 3, -1e30, x),
}


def verdict(made: Made) -> Verdict:
    """Of `y` where some element is the greatest, beside `y`."""

    def local(x: Array, y: Array) -> Array:
        elements = made(x, jnp.arange(8.0)[None])
        count = (elements == elements.max(-1, keepdims=True)).astype(jnp.float32).sum(-1)
        return jnp.where(count > 0, y, 0)

    mesh = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(local, mesh=mesh, in_specs=(P("d"), P("d")), out_specs=P("d"), check_vma=False)
    shapes = jax.ShapeDtypeStruct((8, 8), jnp.float32), jax.ShapeDtypeStruct((8,), jnp.float32)
    pair = (jax.jit(function).trace(*shapes) for function in (lambda _, y: y, mapped))
    return hlo_verify.verify(*pair, refute=False).verdict


@pytest.mark.parametrize("name", NAN)
def test_none_is_the_greatest_beside_what_is_no_number(name: str) -> None:
    assert verdict(NAN[name]) is not Verdict.PROVED


@pytest.mark.parametrize("name", INFINITE)
def test_one_is_the_greatest_of_infinities(name: str) -> None:
    assert verdict(INFINITE[name]) is Verdict.PROVED
