"""Greatest and least values and products that devices share out: what is proved, and what is nearly right."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality.multisets import as_sums
from hlo_verify.index import expr
from hlo_verify.memory import Memory
from hlo_verify.terms import algebra
from hlo_verify.terms.extrema import reduce_extremum, reduce_product
from hlo_verify.terms.functions import INFINITY, MAXIMUM
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, tensor
from tests.support.lowering import Placed

Function = Callable[..., Any]
DEVICES = 4


def is_proved(reference: Function, local: Function, dtype: str = "float32", devices: int = DEVICES) -> bool:
    mesh = jax.sharding.AbstractMesh((devices,), ("i",))
    placed = Placed(mesh, (P("i"),), P("i"), [jax.ShapeDtypeStruct((32,), dtype)])
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict is Verdict.PROVED


def along(running: Function, join: Function, total: Function, none: Any, upto: int = 0, last: int = -1) -> Function:
    """Running values of a device's own elements, joined with the totals of the devices before it."""

    def local(x: jax.Array) -> jax.Array:
        own = running(x)
        totals = lax.all_gather(own[last], "i")
        before = jnp.arange(DEVICES) < lax.axis_index("i") + upto
        return join(own, total(jnp.where(before, totals, none)))  # type: ignore[no-any-return]

    return local


def doubling(running: Function, join: Function, reach: int = DEVICES, is_guarded: bool = True) -> Function:
    """The same, with totals passed on to twice as many devices each time."""

    def passed(x: jax.Array, by: int) -> jax.Array:
        return lax.ppermute(x, "i", [(k, (k + by) % DEVICES) for k in range(DEVICES)])

    def local(x: jax.Array) -> jax.Array:
        own, here = running(x), lax.axis_index("i")
        total, by = own[-1], 1
        while by < reach:
            total, by = jnp.where(here >= by, join(total, passed(total, by)), total), 2 * by
        joined = join(own, passed(total, 1))
        return jnp.where(here > 0, joined, own) if is_guarded else joined  # type: ignore[no-any-return]

    return local


cummax, cummin, cumprod = (partial(f, axis=0) for f in (lax.cummax, lax.cummin, lax.cumprod))
RUNNING: dict[str, tuple[Function, Function, bool]] = {
    "maximum": (cummax, along(cummax, jnp.maximum, jnp.max, -jnp.inf), True),
    "minimum": (cummin, along(cummin, jnp.minimum, jnp.min, jnp.inf), True),
    "product": (cumprod, along(cumprod, jnp.multiply, jnp.prod, 1.0), True),
    "sum": (jnp.cumsum, along(jnp.cumsum, jnp.add, jnp.sum, 0.0), True),
    "maximum_by_doubling": (cummax, doubling(cummax, jnp.maximum), True),
    "product_by_doubling": (cumprod, doubling(cumprod, jnp.multiply), True),
    "sum_by_doubling": (jnp.cumsum, doubling(jnp.cumsum, jnp.add), True),
    "one_device_too_many": (cummax, along(cummax, jnp.maximum, jnp.max, -jnp.inf, upto=2), False),
    "one_device_too_few": (cummax, along(cummax, jnp.maximum, jnp.max, -jnp.inf, upto=-1), False),
    "own_total_twice": (cumprod, along(cumprod, jnp.multiply, jnp.prod, 1.0, upto=1), False),
    "from_zero": (cummax, along(cummax, jnp.maximum, jnp.max, 0.0), False),
    "times_zero": (cumprod, along(cumprod, jnp.multiply, jnp.prod, 0.0), False),
    "total_but_one": (cummax, along(cummax, jnp.maximum, jnp.max, -jnp.inf, last=-2), False),
    "least_of_greatest": (cummax, along(cummax, jnp.minimum, jnp.max, -jnp.inf), False),
    "not_as_far": (cummax, doubling(cummax, jnp.maximum, reach=2), False),
    "round_the_ring": (cummax, doubling(cummax, jnp.maximum, is_guarded=False), False),
}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", RUNNING)
def test_running_values(name: str) -> None:
    reference, local, is_right = RUNNING[name]
    assert is_proved(reference, local) is is_right


def butterfly(join: Function, reach: int = 8, by: int = 1) -> Function:
    def local(x: jax.Array) -> jax.Array:
        step = by
        while step < reach:
            x, step = join(x, lax.ppermute(x, "i", [(k, k ^ step) for k in range(8)])), 2 * step
        return x

    return local


def over_rows(reduced: Function) -> Function:
    return lambda x: jnp.tile(reduced(x.reshape(8, 4), 0), 8)


BUTTERFLIES: dict[str, tuple[Function, Function, bool]] = {
    "maximum": (over_rows(jnp.max), butterfly(jnp.maximum), True),
    "product": (over_rows(jnp.prod), butterfly(jnp.multiply), True),
    "minimum": (over_rows(jnp.min), butterfly(jnp.minimum), True),
    "of_half": (over_rows(jnp.max), butterfly(jnp.maximum, reach=4), False),
    "but_neighbours": (over_rows(jnp.prod), butterfly(jnp.multiply, by=2), False),
    "greatest_for_least": (over_rows(jnp.min), butterfly(jnp.maximum), False),
}


@pytest.mark.parametrize("name", BUTTERFLIES)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_butterflies(name: str, dtype: str) -> None:
    reference, local, is_right = BUTTERFLIES[name]
    assert is_proved(reference, local, dtype, devices=8) is is_right


def test_what_counts_how_often() -> None:
    """A factor that occurs twice does; of what is greatest, as it is; 1 and minus infinity never."""
    with Memory().on():
        x = tensor("argument", "x", "f32", (4,))
        v = expr.var("v", "", 4)
        element = algebra.read(x, [expr.of_var(v)])
        whole, twice = reduce_product([v], element), reduce_product([v], algebra.expanded(element, element))
        once, more = _sums(whole, whole, algebra.expanded(whole, whole))
        assert once is not more
        assert more is _sums(whole, whole, twice)[1]
        greatest = reduce_extremum("max", [v], element)
        first = algebra.read(x, [expr.constant(0)])
        beside = apply(MAXIMUM, (first, greatest))
        assert (
            _sums(greatest, beside, apply(MAXIMUM, (beside, algebra.scale(apply(INFINITY, ()), -1))))[1]
            is (_sums(greatest, beside, beside)[1])
        )
        assert len(set(as_sums(greatest, whole) or ())) == 2
        scaled = algebra.scale(algebra.expanded(whole, first), 3)
        assert _sums(whole, scaled, algebra.scale(scaled, 1))[1] is not _sums(whole, whole, whole)[1]


def _sums(of_its_kind: Poly, *several: Poly) -> list[Poly]:
    found = [as_sums(algebra.scale(of_its_kind, 1), p) for p in several]
    return [both[1] if both else of_its_kind for both in found]
