"""An infinity that a sum is multiplied with is none that its elements are: `inf * (2 - 1)` is no `inf*2 - inf*1`."""

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

SIZE = 8
ELEMENTS = jax.ShapeDtypeStruct((SIZE,), jnp.float32)
INFINITY = np.float32(np.inf)

Inner = Callable[[jax.Array], jax.Array]
SUMS: dict[str, tuple[Inner, Inner]] = {
    "sum": (jnp.sum, lambda x: lax.psum(jnp.sum(x), "d")),
    "mean": (jnp.mean, lambda x: lax.pmean(jnp.mean(x), "d")),
    "loop": (
        lambda x: lax.scan(lambda c, e: (c + e, None), jnp.float32(0), x)[0],
        lambda x: lax.psum(jnp.sum(x), "d"),
    ),
    "window": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (SIZE,), (1,), "VALID")[0],
        lambda x: lax.psum(jnp.sum(x), "d"),
    ),
    "scatter": (
        lambda x: jnp.zeros(2).at[jnp.arange(SIZE) % 2].add(x),
        lambda x: lax.psum(jnp.zeros(2).at[(lax.axis_index("d") * x.size + jnp.arange(x.size)) % 2].add(x), "d"),
    ),
    "product of matrices": (
        lambda x: x @ jnp.arange(1.0, SIZE + 1),
        lambda x: lax.psum(x @ (lax.axis_index("d") * x.size + jnp.arange(1.0, x.size + 1)), "d"),
    ),
}
"""Sums of elements of one sign or two, as a whole and over devices."""

FACTORS: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "infinity": lambda x, first: x * INFINITY,
    "minus infinity": lambda x, first: x * -INFINITY,
    "divided by zero": lambda x, first: x / 0,
    "logarithm of zero": lambda x, first: x * jnp.log(0.0),
    "divided by what an infinity makes 0": lambda x, first: x / jnp.exp(-INFINITY * (1 + first * first)),
    "somewhere": lambda x, first: x * jnp.where(first > 0, INFINITY, 1),
}
"""What `x` is multiplied with: infinite for all inputs, or for such as have a positive first element."""


def verdict(whole: Inner, local: Inner, devices: int) -> Verdict:
    mesh = AbstractMesh((devices,), ("d",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(local, mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=False)
    return hlo_verify.check(whole, mapped, ELEMENTS, refute=False).verdict


def first(x: jax.Array) -> jax.Array:
    return lax.all_gather(x, "d", tiled=True)[0]


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("name", SUMS)
def test_infinite_factors_of_sums(name: str, factor: str) -> None:
    times = FACTORS[factor]
    devices = 2 if factor == "infinity" else 4
    total, over_devices = SUMS[name]
    inside = lambda x: total(times(x, x[0])), lambda x: over_devices(times(x, first(x)))
    outside = lambda x: times(total(x), x[0]), lambda x: times(over_devices(x), first(x))
    assert verdict(inside[0], inside[1], devices) is Verdict.PROVED
    assert verdict(outside[0], outside[1], devices) is Verdict.PROVED
    assert verdict(inside[0], outside[1], devices) is not Verdict.PROVED
    assert verdict(outside[0], inside[1], devices) is not Verdict.PROVED


@pytest.mark.parametrize(
    ("inner", "is_right"),
    [
        (jnp.exp, True),
        (lambda x: x * x, False),
        (lambda x: jnp.where(x > 0, jnp.exp(x), 0), False),
        (jnp.tanh, False),
    ],
)
def test_sums_of_positive_numbers(inner: Inner, is_right: bool) -> None:
    """Of elements of one sign, an infinity makes infinities of that sign; of none, and of 0, no number."""

    def whole(x: jax.Array) -> jax.Array:
        return jnp.sum(inner(x)) * INFINITY

    def local(x: jax.Array) -> jax.Array:
        return lax.psum(jnp.sum(inner(x) * INFINITY), "d")

    assert (verdict(whole, local, 4) is Verdict.PROVED) is is_right


def test_what_an_infinity_is_multiplied_by() -> None:
    """A number leaves a sum of infinities: it makes 0 of none of them, and all of one sign or the other."""

    def whole(x: jax.Array) -> jax.Array:
        return x[0] * jnp.sum(x[1:] * INFINITY)

    def local(x: jax.Array) -> jax.Array:
        mine = jnp.where(lax.axis_index("d") * x.size + jnp.arange(x.size) > 0, x * INFINITY * first(x), 0)
        return lax.psum(jnp.sum(mine), "d")

    assert verdict(whole, local, 4) is Verdict.PROVED
    assert verdict(whole, lambda x: -local(x), 4) is not Verdict.PROVED
