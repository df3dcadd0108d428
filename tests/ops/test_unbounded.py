"""Loops that go round until data say it is enough are matched where both modules go on under the same condition."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict
from tests.ops.test_matching import COLUMNS, ROWS, Function, regional, verdict

State = tuple[jax.Array, jax.Array]


def total(x: jax.Array) -> jax.Array:
    return lax.psum(jnp.sum(x), "x")


def iterated(
    multiply: Function,
    norm: Function = jnp.sum,
    most: int | None = None,
    tolerance: float = 0.5,
    step: int = 1,
) -> Function:
    """Multiply until the rows are small, or at the most so often; give the rows and how often it was."""

    def function(h: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        def goes_on(state: State) -> Any:
            n, h = state
            large = norm(h * h) > tolerance
            return large if most is None else large & (n < most)

        def turn(state: State) -> State:
            n, h = state
            return n + step, jnp.tanh(multiply(h, w))

        n, last = lax.while_loop(goes_on, turn, (jnp.int32(0), h))
        return last, n

    return function


def by_columns(h: jax.Array, w: jax.Array) -> jax.Array:
    return lax.all_gather(h, "x", axis=1, tiled=True) @ w


SHAPES = (2, 8), (8, 8)
GIVEN, WANTED = (COLUMNS, COLUMNS), (COLUMNS, P())


def local(**asked: Any) -> Function:
    return regional(iterated(by_columns, **{"norm": total} | asked), GIVEN, WANTED)


@pytest.mark.parametrize("most", [None, 1000])
def test_columns(most: int | None) -> None:
    assert verdict(iterated(jnp.matmul, most=most), local(most=most), *SHAPES) is Verdict.PROVED


WRONG = {
    "each device ends by itself": {"norm": jnp.sum},
    "another tolerance": {"tolerance": 0.25},
    "another number of turns at the most": {"most": 999},
    "turns are counted twice": {"step": 2},
    "no end but by data": {"most": None},
    "the largest of the sums": {"norm": lambda x: lax.pmax(jnp.sum(x), "x")},
}


@pytest.mark.parametrize("name", WRONG)
def test_another_end(name: str) -> None:
    wrong = local(**{"most": 1000} | WRONG[name])
    assert verdict(iterated(jnp.matmul, most=1000), wrong, *SHAPES) is Verdict.UNKNOWN


def test_rows_end_apart_where_nothing_is_sent() -> None:
    """Each device goes on until its own rows are small: no loop over all rows does that."""

    def apart(h: jax.Array, w: jax.Array) -> jax.Array:
        return iterated(jnp.matmul)(h, w)[0]

    def until_the_first_are_small(h: jax.Array, w: jax.Array) -> jax.Array:
        return iterated(jnp.matmul, norm=lambda h: jnp.sum(h[:2]))(h, w)[0]

    given = (ROWS, P())
    for reference in (apart, until_the_first_are_small):
        assert verdict(reference, regional(apart, given, ROWS), (8, 4), (4, 4)) is Verdict.UNKNOWN
    each = regional(apart, given, ROWS)
    assert verdict(each, each, (8, 4), (4, 4)) is Verdict.PROVED


def test_what_devices_go_on_by_differs() -> None:
    """Copies that start the same are different once one device goes on."""

    def copies(is_same: bool) -> Function:
        def region(h: jax.Array, w: jax.Array) -> jax.Array:
            tolerance = 0.5 if is_same else 0.5 * (1 + lax.axis_index("x"))
            small = lax.while_loop(lambda h: jnp.sum(h * h) > tolerance, lambda h: jnp.tanh(h @ w), h)
            return lax.psum(small, "x") / 4

        return regional(region, (P(), P()), P())

    def reference(h: jax.Array, w: jax.Array) -> jax.Array:
        return lax.while_loop(lambda h: jnp.sum(h * h) > 0.5, lambda h: jnp.tanh(h @ w), h)

    shapes = (2, 4), (4, 4)
    assert verdict(reference, copies(True), *shapes) is Verdict.PROVED
    assert verdict(copies(True), copies(False), *shapes) is Verdict.UNKNOWN
    assert verdict(copies(False), reference, *shapes) is Verdict.UNKNOWN
    assert verdict(reference, copies(False), *shapes) is Verdict.UNKNOWN


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_what_is_counted_in_another_type(dtype: str) -> None:
    """A counter of 8 bits never reaches 200: neither loop may be taken for the other."""

    def counted(dtype: str) -> Function:
        def function(x: jax.Array) -> jax.Array:
            start = jnp.zeros((), dtype), x
            return lax.while_loop(lambda c: jnp.sum(c[1]) < 10, lambda c: (c[0] + 1, c[1] + c[0] + 1), start)[1]

        return function

    pair = counted("int32"), regional(counted(dtype), P(), P())
    assert verdict(*pair, (4,)) is (Verdict.PROVED if dtype == "int32" else Verdict.UNKNOWN)
