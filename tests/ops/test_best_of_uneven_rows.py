"""The best of a row that devices do not divide: what the last device's row is filled up with is the initial pair."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from itertools import product

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed, floats

DEVICES, SHARD = 4, 3
PLACED = Placed(AbstractMesh((DEVICES,), ("d",)), P(), P(), floats((2, 10)))


def better(mine: tuple[jax.Array, jax.Array], other: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """As JAX's argmax compares."""
    (x, i), (y, j) = mine, other
    over = lax.bitwise_or(lax.gt(x, y), lax.ne(x, x))
    before = lax.bitwise_and(lax.eq(x, y), lax.lt(i, j))
    return lax.select(over, x, y), lax.select(lax.bitwise_or(over, before), i, j)


def best(x: jax.Array, i: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The best of the pairs of each row, and its index."""
    value, index = lax.reduce((x, i), (-jnp.inf, jnp.int32(0)), better, (1,))
    return value, index


def local(
    x: jax.Array, *, filled: float = -jnp.inf, numbered: int = 0, length: int = 10, ahead: int = 0, last: int = DEVICES
) -> jax.Array:
    """As XLA's partitioner writes it: rows of twelve, of which the last two elements are masked; the bests of all
    devices' rows are gathered."""
    start = lax.axis_index("d") * SHARD
    place = jnp.broadcast_to(start + jnp.arange(SHARD, dtype=jnp.int32), (2, SHARD))
    own = lax.dynamic_slice(jnp.pad(x, ((0, 0), (0, 2))), (jnp.int32(0), start), (2, SHARD))
    inside = place < length
    each = best(jnp.where(inside, own, filled), jnp.where(inside, place + ahead, numbered))
    value, index = (lax.all_gather(t, "d", axis=1)[:, :last] for t in each)
    return best(value, index)[1]


def verdict(whole: Callable[[jax.Array], jax.Array], **changes: float) -> Verdict:
    return hlo_verify.verify(*PLACED.pair(whole, partial(local, **changes)), refute=False).verdict


def test_what_is_filled_up_is_left_out() -> None:
    assert verdict(lambda x: jnp.argmax(x, axis=1)) is Verdict.PROVED


def test_a_row_of_some_function() -> None:
    def filled(x: jax.Array) -> jax.Array:
        return local(jnp.tanh(x) * 2)

    pair = PLACED.pair(lambda x: jnp.argmax(jnp.tanh(x) * 2, axis=1), filled)
    assert hlo_verify.verify(*pair, refute=False).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    "change", [{"filled": 0.0}, {"length": 9}, {"length": 11}, {"ahead": 1}, {"last": 3}, {"numbered": -1}], ids=str
)
def test_other_bests_are_not_proved(change: dict[str, float]) -> None:
    assert verdict(lambda x: jnp.argmax(x, axis=1), **change) is Verdict.UNKNOWN


def test_pairs_that_are_the_initial_one_change_nothing() -> None:
    """For all rows of few values, minus infinity among them, ties and all."""
    worst = -math.inf

    def greater(one: tuple[float, int], other: tuple[float, int]) -> tuple[float, int]:
        (x, i), (y, j) = one, other
        return one if x > y or (x == y and i < j) else other

    for row in product((worst, 0.0, 1.0), repeat=4):
        pairs = [(x, i) for i, x in enumerate(row)]
        initial = (worst, 0)
        whole = reduce(greater, pairs, initial)
        parts = [reduce(greater, part, initial) for part in (pairs[:3], [*pairs[3:], initial, initial])]
        assert reduce(greater, parts, initial) == whole
