"""What floats decide of numbers beside which an argument cancels."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.places import GIVEN, MESH, own, own_places, places

Made = Callable[[jax.Array, jax.Array], jax.Array]
"""Of an argument and of places."""


def verdict(whole: Made, local: Made) -> Verdict:
    """Of a program of all places, and one in which each device has its own."""
    mapped = jax.shard_map(
        lambda x: x * local(x, own_places()), mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False
    )
    return hlo_verify.check(lambda x: x * whole(x, places()), mapped, GIVEN, refute=False).verdict


def by_41(i: jax.Array) -> jax.Array:
    """The places, in real arithmetic; XLA has less than 41 at 41."""
    return i / 41 * 41


CANCELS: list[Made] = [
    lambda x, i: jnp.floor((x - x) + by_41(i)),
    lambda x, i: jnp.floor(x + by_41(i) - x),
    lambda x, i: jnp.floor(by_41(i) - x - (-x)),
    lambda x, i: jnp.floor((x + x + by_41(i)) - x - x),
    lambda x, i: jnp.floor(x * 0 + by_41(i)),
    lambda x, i: jnp.floor(jnp.where(x > 0, i / 41, i / 41) * 41),
    lambda x, i: ((x - x) + by_41(i)).astype(jnp.int32) * 1.0,
    lambda x, i: lax.fori_loop(0, 1, lambda _, c: jnp.floor((x - x) + c * 41), i / 41),
]


@pytest.mark.parametrize("made", CANCELS)
def test_floats_decide_where_an_argument_cancels(made: Made) -> None:
    assert verdict(made, lambda x, i: i) is Verdict.UNKNOWN
    assert verdict(lambda x, i: made(x, i), lambda x, i: made(x, own(places()))) is Verdict.PROVED


def test_comparisons_with_a_number_that_an_argument_was_added_to() -> None:
    def made(x: jax.Array, i: jax.Array) -> jax.Array:
        return ((x + by_41(i)) - x >= i) * 1.0

    assert verdict(made, lambda x, i: jnp.ones_like(i)) is Verdict.UNKNOWN
    assert verdict(made, lambda x, i: ((x + i) - x >= i) * 1.0) is Verdict.UNKNOWN
    assert verdict(made, made) is Verdict.PROVED


@pytest.mark.parametrize(
    ("whole", "local"),
    [
        (lambda x, i: jnp.floor((x - x) + i / 2), lambda x, i: jnp.floor(i * 0.5)),
        (lambda x, i: (x - x >= 0) * 1.0, lambda x, i: jnp.ones_like(i)),
        (lambda x, i: jnp.floor((x - x) + 0.3 * i + 0.01), lambda x, i: jnp.floor(0.3 * i + 0.01)),
        (lambda x, i: jnp.floor(x + by_41(i)), lambda x, i: jnp.floor(x + i)),
        (lambda x, i: (x + by_41(i)) - x, lambda x, i: i),
    ],
)
def test_what_is_decided_alike_stays_so(whole: Made, local: Made) -> None:
    """Far from where it is decided, of arguments, or where nothing is."""
    assert verdict(whole, local) is Verdict.PROVED
