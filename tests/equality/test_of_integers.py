"""Places in queues: counts of one's own key up to a place, in conditions and where something is read."""

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
from hlo_verify.equality.of_integers import with_one_for_two
from hlo_verify.index import expr
from hlo_verify.memory import Memory
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.machine import as_index
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ZERO, tensor
from tests.support.lowering import Placed
from tests.support.structural_laws import at, bound

MESH = AbstractMesh((4,), ("x",))
KEYS, EXPERTS, TOKENS = 4, jnp.arange(4), 16
Program = Callable[..., Any]


def one_hot(e: jax.Array) -> jax.Array:
    return jax.nn.one_hot(e, KEYS, dtype=jnp.int32)


def places(e: jax.Array) -> jax.Array:
    """Each token's place in the queue of its expert, as Switch counts them."""
    return jnp.cumsum(one_hot(e), 0) * one_hot(e) - 1


def on_devices(e: jax.Array, earlier: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """The same, of totals of earlier devices and a device's own."""
    totals = lax.all_gather(one_hot(e).sum(0), "x")
    before = jnp.sum(jnp.where(earlier(jnp.arange(4)[:, None]), totals, 0), 0)
    return jnp.take_along_axis(jnp.cumsum(one_hot(e), 0) + before, e[:, None], 1)[:, 0] - 1


def right(e: jax.Array) -> jax.Array:
    return on_devices(e, lambda d: d < lax.axis_index("x"))


def with_own(e: jax.Array) -> jax.Array:
    return on_devices(e, lambda d: d <= lax.axis_index("x"))


Y = jax.ShapeDtypeStruct((KEYS, 3, 5), "float32")
QUEUES: dict[str, tuple[Program, Program, int]] = {
    "greatest": (lambda e, y: places(e).max(-1), lambda e, y, at: at(e), 1),
    "has room": (
        lambda e, y: jnp.where(places(e).max(-1) < 3, y[e, 0, 0], 0.0),
        lambda e, y, at: jnp.where(at(e) < 3, y[e, 0, 0], 0.0),
        1,
    ),
    "combined": (
        lambda e, y: jnp.einsum("tec,ecd->td", jax.nn.one_hot(places(e), 3), y),
        lambda e, y, at: jnp.where((at(e) < 3)[:, None], y[e, jnp.clip(at(e), 0, 2)], 0.0),
        2,
    ),
}


@pytest.mark.parametrize("name", QUEUES)
def test_places_in_queues(name: str) -> None:
    """Of tokens that go to experts; where a device's own total is counted twice, or a place is moved, not."""
    reference, local, rank = QUEUES[name]
    shapes = [jax.ShapeDtypeStruct((TOKENS,), "int32"), Y]
    placed = Placed(MESH, (P("x"), P()), P("x", *[None] * (rank - 1)), shapes)

    def verdict(at: Callable[[jax.Array], jax.Array]) -> Verdict:
        pair = placed.pair(reference, lambda e, y: local(e, y, at))
        return hlo_verify.verify(*pair, assume={"e": (0, KEYS)}, refute=False).verdict

    assert verdict(right) is Verdict.PROVED
    for wrong in (with_own, lambda e: right(e) + 1):
        assert verdict(wrong) is not Verdict.PROVED


@pytest.mark.parametrize("dtype", ["i1", "i32"])
def test_one_for_another(dtype: str) -> None:
    """Counts that are found to be the same, also with a number beside one; not what may wrap: of 2**32 more, or less, a
    sum of integers is the same. Nor what is not found to be the same."""
    with Memory().on():
        (x, y), v = (tensor("argument", name, dtype, (6,)) for name in "xy"), bound(6)
        behind = expr.subtract(expr.constant(5), expr.of_var(v))
        sums = [reduce_sum([v], algebra.multiply(at(x, v), at(y, place))) for place in (v, behind)]
        one, other = (as_index(p, -(2**31), 2**31 - 1) for p in sums)
        p = algebra.subtract(guards.interval(one, 3, None), guards.interval(expr.shift(other, 2), 5, None))
        assert with_one_for_two(p, lambda _: True) is (ZERO if dtype == "i1" else None)
        assert with_one_for_two(p, lambda _: False) is None


Scores = Callable[[jax.Array, jax.Array], jax.Array]
CLASSES = 3


def confused(p: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.zeros((CLASSES, CLASSES)).at[y, p].add(1.0)


def dice(p: jax.Array, y: jax.Array) -> jax.Array:
    """By a matrix of how often each class is taken for each."""
    counts = confused(p, y)
    return 2 * jnp.diag(counts) / jnp.maximum(counts.sum(0) + counts.sum(1), 1)


def dice_by_errors(least: int = 1, missed: float = 1.0) -> Scores:
    """By what devices count of classes that are found, and of both errors."""

    def local(p: jax.Array, y: jax.Array) -> jax.Array:
        found, wanted = jax.nn.one_hot(p, CLASSES), jax.nn.one_hot(y, CLASSES)
        hits, wrong = (lax.psum(each.sum(0), "x") for each in (found * wanted, found * (1 - wanted)))
        lost = lax.psum(((1 - found) * wanted).sum(0), "x")
        return 2 * hits / jnp.maximum(2 * hits + wrong + missed * lost, least)

    return local


@pytest.mark.parametrize(
    ("local", "is_right"),
    [(dice_by_errors(), True), (dice_by_errors(least=2), False), (dice_by_errors(missed=2.0), False)],
    ids=["right", "another bound", "another count"],
)
def test_counts_that_a_number_bounds(local: Scores, is_right: bool) -> None:
    """`1/maximum(m + n, 1)` of counts that are put together in two ways, of which one may be taken for longer."""
    placed = Placed(MESH, (P("x"), P("x")), P(), [jax.ShapeDtypeStruct((TOKENS,), "int32")] * 2)
    asked = {"p": (0, CLASSES), "y": (0, CLASSES)}
    verdict = hlo_verify.verify(*placed.pair(dice, local), assume=asked, refute=False).verdict
    assert (verdict is Verdict.PROVED) is is_right


@pytest.mark.parametrize("bounds", [(1, 6), (2, 6), (0, 6), (1, 5), (1, 3), (1, 7)])
def test_one_bounded_integer_for_another(bounds: tuple[int, int]) -> None:
    """Of counts that are found to be the same, where they may reach the same bounds."""
    with Memory().on():
        (x, y), v = (tensor("argument", name, "i1", (6,)) for name in "xy"), bound(6)
        behind = expr.subtract(expr.constant(5), expr.of_var(v))
        sums = [reduce_sum([v], algebra.multiply(at(x, v), at(y, place))) for place in (v, behind)]
        one, other = (as_index(p, -(2**31), 2**31 - 1) for p in sums)
        p = algebra.of_index(expr.subtract(expr.clamp(one, 1, 6), expr.clamp(other, *bounds)))
        assert with_one_for_two(p, lambda _: True) is (ZERO if bounds in ((1, 6), (1, 7)) else None)
        assert with_one_for_two(p, lambda _: False) is None
