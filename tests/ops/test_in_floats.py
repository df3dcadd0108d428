"""Functions of floats: of numbers that hang on no argument, where floats may decide otherwise than real numbers."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.places import GIVEN, MESH, PLACES, own, own_places, places

Table = Callable[[], jax.Array]


def counted(n: int) -> jax.Array:
    """A number that no constant says."""
    return jnp.sum((lax.iota(jnp.int32, n) >= 0).astype(jnp.int32)).astype(jnp.float32)


def counts() -> jax.Array:
    return lax.iota(jnp.int32, PLACES)


def added_in_turns(*, reverse: bool) -> jax.Array:
    tenths = lax.iota(jnp.int32, 5).astype(jnp.float32) * 0.1
    total, _ = lax.scan(lambda s, x: (s + x, None), jnp.float32(0), tenths, reverse=reverse)
    return jnp.floor(total) + 0 * places()


def added(order: range) -> jax.Array:
    tenths, total = places() * 0.1, jnp.float32(0)
    for k in order:
        total = total + tenths[k]
    return jnp.floor(total) + 0 * places()


def tenth_of(k: int) -> jax.Array:
    """A tenth, by way of a place."""
    at = (counts() + k).astype(jnp.float32)
    return jnp.floor(10 * (at * 0.1 / at))


def size(x: jax.Array) -> jax.Array:
    return jnp.floor(jnp.abs(lax.complex(x, 0 * x)))


def root_of_diagonal(*, is_divided: bool) -> jax.Array:
    column = jnp.linalg.cholesky(jnp.diag(places() + 1))[:, 0]
    return jnp.floor(column / 41 * 41 if is_divided else column) + 0 * places()


def as_places(dtype: type) -> jax.Array:
    return jnp.arange(4 * PLACES, 5 * PLACES + 0, dtype=dtype)[:PLACES].astype(jnp.int32) * 1.0


PAIRS: dict[str, tuple[Table, Table]] = {
    "another divisor that no constant says": (
        lambda: jnp.floor(places() / counted(41) * counted(41)),
        lambda: jnp.floor(places() / counted(3) * counted(3)),
    ),
    "a divisor elsewhere in a table": (
        lambda: jnp.floor(places() / places()[41] * places()[41]),
        lambda: jnp.floor(places() / places()[3] * places()[3]),
    ),
    "places that are cancelled": (lambda: tenth_of(1), lambda: tenth_of(2)),
    "turns in another order": (lambda: added_in_turns(reverse=False), lambda: added_in_turns(reverse=True)),
    "numbers in another order": (lambda: added(range(1, 5)), lambda: added(range(4, 0, -1))),
    "complex": (lambda: size(places() / 41 * 41), lambda: size(places())),
    "integers with more digits than floats": (
        lambda: ((counts() + (1 << 24)).astype(jnp.float32).astype(jnp.int32) - (1 << 24)) * 1.0,
        lambda: counts() * 1.0,
    ),
    "places with more digits than floats": (lambda: as_places(jnp.bfloat16), lambda: as_places(jnp.int32)),
    "fewer digits": (
        lambda: jnp.floor(lax.reduce_precision(places() * 0.124, 8, 2)),
        lambda: jnp.floor(places() * 0.124),
    ),
    "fewer digits of a type": (
        lambda: jnp.floor((0.7 * places()).astype(jnp.bfloat16)).astype(jnp.float32),
        lambda: jnp.floor(0.7 * places()),
    ),
    "multiplied out": (lambda: jnp.floor(0.9 * places() + 0.9), lambda: jnp.floor(0.9 * (places() + 1))),
    "a library's function": (
        lambda: root_of_diagonal(is_divided=True),
        lambda: root_of_diagonal(is_divided=False),
    ),
    "a logarithm of factorials": (
        lambda: lax.lgamma(places() / 41 * 41 - places()),
        lambda: lax.lgamma(0 * places()),
    ),
    "a sum of rows": (
        lambda: jnp.floor(jnp.sum(places()[:, None] / 41 * jnp.ones(41), 1)),
        places,
    ),
    "a product of matrices": (lambda: jnp.floor((places()[:, None] / 41 * jnp.ones(41)) @ jnp.ones(41)), places),
    "a running sum": (
        lambda: jnp.floor(jnp.cumsum(0.1 * jnp.ones(PLACES))),
        lambda: jnp.floor(jnp.cumsum(jnp.flip(0.1 * jnp.ones(PLACES)))[::-1][::-1] / 3 * 3),
    ),
}
"""The same of real numbers, and not of floats."""
CHECKED_AGAIN = "fewer digits", "a sum of rows"


def verdict(whole: Table, local: Table, *, recheck: bool = False) -> Verdict:
    mapped = jax.shard_map(lambda x: x * local(), mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    return hlo_verify.check(lambda x: x * whole(), mapped, GIVEN, refute=False, recheck=recheck).verdict


@pytest.mark.parametrize("name", PAIRS)
def test_floats_that_are_the_same_of_real_numbers(name: str) -> None:
    """Nothing is said of them, but where devices do what the whole program does; a second check says nothing else
    of that."""
    one, other = PAIRS[name]
    assert verdict(one, lambda: own(other())) is Verdict.UNKNOWN
    assert verdict(one, lambda: own(one()), recheck=name in CHECKED_AGAIN) is Verdict.PROVED


def test_each_device_may_compute_its_own_places() -> None:
    """Integers are exact, and so are their sums; of sums and products, operands may be exchanged."""

    for whole, local in (
        (lambda: jnp.floor(places() / 41 * 41), lambda: jnp.floor(41 * (own_places() / 41))),
        (lambda: jnp.floor(places() * 0.7 - 0.1), lambda: jnp.floor(-0.1 + 0.7 * own_places())),
        (
            lambda: jnp.floor(jnp.sum(places()[:, None] / 41 * jnp.ones(41), 1)),
            lambda: jnp.floor(jnp.sum(own_places()[:, None] / 41 * jnp.ones(41), 1)),
        ),
    ):
        assert verdict(whole, local) is Verdict.PROVED


def test_no_number_is_neither_less_nor_greater() -> None:
    """`0/0 > 1` and `not 0/0 <= 1` differ, of what floats may have as no number."""

    def quotient() -> jax.Array:
        off = places() / 41 * 41 - places()
        return off / off

    assert verdict(lambda: (quotient() > 1) * 1.0, lambda: own(~(quotient() <= 1) * 1.0)) is Verdict.UNKNOWN
