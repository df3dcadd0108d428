"""The best of a whole from the bests of its parts, which number their elements from where they start."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed, floats

MESH = AbstractMesh((2, 4), ("x", "y"))
SHARD = 5
WHOLE = 4 * SHARD
LAST = 2**31 - 1
"""The greatest index."""

Body = Callable[[jax.Array], jax.Array]


def verdict(reference: Body, local: Body) -> Verdict:
    """Of the best column of each row."""
    placed = Placed(MESH, P("x", "y"), P("x"), floats((6, WHOLE)))
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


def greatest(x: jax.Array) -> jax.Array:
    return jnp.argmax(jnp.sin(x), axis=1)


def least(x: jax.Array) -> jax.Array:
    return jnp.argmin(jnp.sin(x), axis=1)


def first() -> jax.Array:
    return lax.axis_index("y") * SHARD


def of_parts(
    index: jax.Array, value: jax.Array, best: jax.Array, otherwise: int = WHOLE, axis: str | tuple[str, ...] = "y"
) -> jax.Array:
    """The least index among the devices whose value is the best."""
    return lax.pmin(jnp.where(value == best, index, otherwise), axis)


def local_greatest(x: jax.Array) -> jax.Array:
    return jnp.max(jnp.sin(x), axis=1)


def test_the_greatest() -> None:
    def local(x: jax.Array) -> jax.Array:
        value = local_greatest(x)
        return of_parts(first() + greatest(x), value, lax.pmax(value, "y"))

    assert verdict(greatest, local) is Verdict.PROVED
    assert verdict(least, local) is Verdict.UNKNOWN


def test_the_least() -> None:
    def local(x: jax.Array) -> jax.Array:
        value = jnp.min(jnp.sin(x), axis=1)
        return of_parts(first() + least(x), value, lax.pmin(value, "y"))

    assert verdict(least, local) is Verdict.PROVED
    assert verdict(greatest, local) is Verdict.UNKNOWN


@pytest.mark.parametrize("otherwise", [WHOLE - 1, LAST])
def test_that_no_device_is_the_best_never_happens(otherwise: int) -> None:
    """Any number that no index is above may stand for it."""

    def local(x: jax.Array) -> jax.Array:
        value = local_greatest(x)
        return of_parts(first() + greatest(x), value, lax.pmax(value, "y"), otherwise)

    assert verdict(greatest, local) is Verdict.PROVED


def wrongly(change: str, x: jax.Array) -> jax.Array:
    value, index = local_greatest(x), first() + greatest(x)
    best = lax.pmax(value, "y")
    match change:
        case "a number that some index is above":
            return of_parts(index, value, best, WHOLE - 2)
        case "a number that every index is above":
            return of_parts(index, value, best, -LAST - 1)
        case "of indices some of which wrap":
            return of_parts(index + (LAST - 9), value, best, LAST) - (LAST - 9)
        case "not numbered in the whole":
            return of_parts(greatest(x), value, best)
        case "numbered from elsewhere":
            return of_parts(index + 1, value, best)
        case "numbered backwards":
            return of_parts((3 - lax.axis_index("y")) * SHARD + greatest(x), value, best)
        case "the worst device's":
            return of_parts(index, value, lax.pmin(value, "y"))
        case "the best of both rows' devices":
            return of_parts(index, value, lax.pmax(value, ("x", "y")))
        case "its own best":
            return of_parts(index, value, value)
        case "the index of other values":
            return of_parts(first() + jnp.argmax(jnp.cos(x), axis=1), value, best)
        case "the last of equal ones":
            return lax.pmax(jnp.where(value == best, index, -1), "y")
        case "the last of equal ones on a device":
            backwards = first() + SHARD - 1 - greatest(x[:, ::-1])
            return of_parts(backwards, value, best)
        case _:
            raise AssertionError(change)


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    "change",
    [
        "a number that some index is above",
        "a number that every index is above",
        "of indices some of which wrap",
        "not numbered in the whole",
        "numbered from elsewhere",
        "numbered backwards",
        "the worst device's",
        "the best of both rows' devices",
        "its own best",
        "the index of other values",
        "the last of equal ones",
        "the last of equal ones on a device",
    ],
)
def test_another_index_is_not_proved(change: str) -> None:
    assert verdict(greatest, lambda x: wrongly(change, x)) is Verdict.UNKNOWN


def test_infinities_tie_with_what_a_reduction_starts_from() -> None:
    """Rows that are masked out everywhere start with index 0 on each device, and not at the device's first."""

    def local(x: jax.Array) -> jax.Array:
        masked = jnp.where(x > 0, x, -jnp.inf)
        value = jnp.max(masked, axis=1)
        return of_parts(first() + jnp.argmax(masked, axis=1), value, lax.pmax(value, "y"))

    def shifted(x: jax.Array) -> jax.Array:
        return jnp.argmax(jnp.where(x > 0, x, -jnp.inf), axis=1) + first()

    assert verdict(lambda x: jnp.argmax(jnp.where(x > 0, x, -jnp.inf), axis=1), shifted) is Verdict.UNKNOWN
    assert verdict(lambda x: 1 + jnp.argmax(jnp.where(x > 0, x, -jnp.inf), axis=1), local) is Verdict.UNKNOWN
