"""Two ways of writing a function of each element, one of them on shards: proved, and the proof checked again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

MESH = AbstractMesh((4,), ("x",))

Body = Callable[[jax.Array], jax.Array]


def report(reference: Body, local: Body, dtype: Any = jnp.float32) -> hlo_verify.Report:
    placed = Placed(MESH, P("x"), P("x"), [jax.ShapeDtypeStruct((8, 5), dtype)])
    return hlo_verify.verify(*placed.pair(reference, local), refute=False, recheck=True)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: jnp.cos(-x) + jnp.abs(1 - x), lambda x: jnp.cos(x) + jnp.abs(x - 1)),
        (lambda x: jnp.sin(-3 * x) * jnp.tanh(-x), lambda x: jnp.sin(3 * x) * jnp.tanh(x)),
        (lambda x: jnp.tanh(1 - x), lambda x: -jnp.tanh(x - 1)),
        (lambda x: jnp.square(-x) + (-x) ** 5, lambda x: jnp.power(x, 2.0) - jnp.power(x, 5.0)),
        (lambda x: jnp.power(-x, 20.0) + jnp.power(-x, -3.0), lambda x: jnp.power(x, 20.0) - jnp.power(x, -3.0)),
    ],
)
def test_signs_of_arguments(one: Body, other: Body) -> None:
    found = report(one, other)
    assert found.verdict is Verdict.PROVED
    assert found.recheck is not None
    assert not found.recheck.disagreements
    assert not found.recheck.unchecked


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: jnp.cos(-x), lambda x: -jnp.cos(x)),
        (lambda x: jnp.sin(-x), jnp.sin),
        (lambda x: jnp.tanh(1 - x), lambda x: -jnp.tanh(1 + x)),
        (lambda x: jnp.exp(-x), jnp.exp),
        (lambda x: jnp.expm1(-x), lambda x: -jnp.expm1(x)),
        (lambda x: jnp.power(-x, 5.0), lambda x: jnp.power(x, 5.0)),
        (lambda x: jnp.power(-x, 2.5), lambda x: jnp.power(x, 2.5)),
    ],
)
def test_other_signs(one: Body, other: Body) -> None:
    assert report(one, other).verdict is Verdict.UNKNOWN


def test_quotients_and_remainders_round_as_they_say() -> None:
    """Of the rows' numbers less 3: rounded down, and towards 0."""

    def row(x: jax.Array) -> jax.Array:
        return lax.broadcasted_iota(jnp.int32, x.shape, 0) - 3

    def local_row(x: jax.Array) -> jax.Array:
        return row(x) + 2 * lax.axis_index("x")

    for one, other in (
        (lambda n: n // 4, lambda n: (n + 8) // 4 - 2),
        (lambda n: n % 4, lambda n: (n + 8) % 4),
        (lambda n: n % 4 - 4 * ((n < 0) & (n % 4 != 0)), lambda n: lax.rem(n, jnp.int32(4))),
        (lambda n: n // 4 + ((n < 0) & (n % 4 != 0)), lambda n: lax.div(n, jnp.int32(4))),
        (lambda n: jnp.sign(n), lambda n: (n > 0).astype(jnp.int32) - (n < 0)),
    ):
        assert report(lambda x, f=one: x * f(row(x)), lambda x, f=other: x * f(local_row(x))).verdict is Verdict.PROVED
    for one, other in (
        (lambda n: n // 4, lambda n: lax.div(n, jnp.int32(4))),
        (lambda n: n % 4, lambda n: lax.rem(n, jnp.int32(4))),
        (lambda n: jnp.sign(n), lambda n: jnp.sign(n + 1)),
    ):
        assert report(lambda x, f=one: x * f(row(x)), lambda x, f=other: x * f(local_row(x))).verdict is Verdict.UNKNOWN
