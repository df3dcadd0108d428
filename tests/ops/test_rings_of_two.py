"""The terms of a product go round a ring of two in a loop, as windowed einsums do on a mesh axis of two."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import Array, lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits

LIMITS = Limits(devices_apart=1, unrolled_turns=1)

Product = Callable[[Array, Array], Array]


def recurrence(product: Product, rows: int, table: Array, weights: Array, taken: Array) -> Array:
    """What is carried after each turn, which adds a product of rows of the table."""

    def turn(carried: Array, ids: Array) -> tuple[Array, Array]:
        carried = jnp.tanh(carried + product(jnp.take(table, ids, 0, mode="clip"), weights))
        return carried, carried

    return lax.scan(turn, jnp.zeros((rows, 8)), taken)[1]


def reference(*given: Array) -> Array:
    return recurrence(jnp.matmul, 8, *given)


def on_devices(wrong: str) -> Callable[..., Array]:
    """Each device has some columns of the table, and gives the other one's rows of its part of the sum to it."""

    def product(x: Array, w: Array) -> Array:
        place = lax.axis_index("x")
        own, other = (lax.dynamic_slice_in_dim(x, 4 * k, 4) @ w for k in (place, 1 - place))
        received = lax.ppermute(other, "x", [(0, 1), (1, 0)])
        return own + (2 * received if wrong == "twice" else received)

    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    specs = (P(None, "x"), P("x"), P())
    local = lambda *given: recurrence(product, 4, *given)  # noqa: E731
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(None, "x"), check_vma=False)


@pytest.mark.parametrize("wrong", ["", "twice"])
def test_only_what_goes_all_the_way_round_is_proved(wrong: str) -> None:
    table, weights = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((32, 16), (16, 8)))
    taken = jax.ShapeDtypeStruct((5, 8), jnp.int32)
    pair = (jax.jit(each).trace(table, weights, taken) for each in (reference, on_devices(wrong)))
    verdict = hlo_verify.verify(*pair, limits=LIMITS).verdict
    assert verdict is (Verdict.REFUTED if wrong else Verdict.PROVED)
