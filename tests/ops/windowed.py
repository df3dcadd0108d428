"""Windowed einsums as the partitioner for TPUs writes them: an operand, or the result, goes round a ring of devices.

One window goes round in each direction and a turn of the loop takes two steps, so that n devices take n / 4 turns.
What is wrong with a program is a keyword: `off` moves a window, `turns` takes some away or adds some, `unpassed` leaves
out the first step of the backward window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.support.lowering import Placed, floats

AXIS = "x"


def passed(x: Array, n: int, by: int) -> Array:
    """The value of the device that many places on."""
    return lax.ppermute(x, AXIS, [((d + by) % n, d) for d in range(n)])


def device() -> Array:
    return lax.axis_index(AXIS).astype(jnp.uint32)


def two_windows(x: Array, n: int, width: int, forward: Array, backward: Array) -> Array:
    """The windows of columns that two places own, as a dimension in the middle."""
    table = jnp.arange(n, dtype=jnp.int32) * width
    zero, lowest = jnp.int32(0), jnp.array(-jnp.inf, x.dtype)
    first = lax.pad(x[:, None, :], lowest, ((0, 0, 0), (0, 1, 0), (0, 0, 0)))
    second = lax.pad(x[:, None, :], lowest, ((0, 0, 0), (1, 0, 0), (0, 0, 0)))
    sizes = (x.shape[0], 2, width)
    return lax.max(
        lax.dynamic_slice(first, (zero, zero, table[forward % n]), sizes),
        lax.dynamic_slice(second, (zero, zero, table[backward % n]), sizes),
    )


def ring(n: int, half: Callable[..., Any], turns: int) -> Callable[[Any], Any]:
    """The loop: `half` is one of the two steps of a turn, given the step and what is carried."""

    def body(state: Any) -> Any:
        step, carried = state
        one = jnp.uint32(1)
        return step + one + one, half(step + one, half(step, carried))

    last = jnp.uint32(2 * (n // 4 + turns))
    return lambda carried: lax.while_loop(lambda state: state[0] < last, body, (jnp.uint32(0), carried))[1]


def contracting(n: int, off: int = 0, turns: int = 0, unpassed: bool = False) -> Any:
    """`x @ w` where w is split along the dimension that is contracted, and goes round."""

    def local(x: Array, w: Array) -> Array:
        def half(step: Array, carried: Any) -> Any:
            forward, total, backward = carried
            places = step + device() + jnp.uint32(off), jnp.uint32(n) + device() - jnp.uint32(1) - step
            windows = two_windows(x, n, w.shape[0], *places)
            total += lax.dot_general(windows, jnp.stack([forward, backward]), (((1, 2), (0, 1)), ((), ())))
            return passed(forward, n, 1), total, passed(backward, n, -1)

        zero = jnp.zeros((x.shape[0], w.shape[1]), x.dtype)
        return ring(n, half, turns)((w, zero, w if unpassed else passed(w, n, -1)))[1]

    return local, jnp.matmul, ((6, 4 * n), (4 * n, 10)), (P(), P(AXIS)), P()


def filling(n: int, off: int = 0, turns: int = 0, unpassed: bool = False) -> Any:
    """`x @ w` where w is split along another dimension, and goes round; the result is filled window by window."""

    def local(x: Array, w: Array) -> Array:
        width = w.shape[1]
        table = jnp.arange(n, dtype=jnp.int32) * width

        def put(total: Array, window: Array, place: Array) -> Array:
            return lax.dynamic_update_slice(total, window, (jnp.int32(0), table[place % n]))

        def half(step: Array, carried: Any) -> Any:
            forward, total, backward = carried
            both = lax.dot_general(x, jnp.stack([forward, backward], 1), (((1,), (0,)), ((), ())))
            total = put(total, both[:, 0], step + device() + jnp.uint32(off))
            total = put(total, both[:, 1], jnp.uint32(n) + device() - jnp.uint32(1) - step)
            return passed(forward, n, 1), total, passed(backward, n, -1)

        zero = jnp.zeros((x.shape[0], n * width), x.dtype)
        return ring(n, half, turns)((w, zero, w if unpassed else passed(w, n, -1)))[1]

    return local, jnp.matmul, ((6, 8), (8, 4 * n)), (P(), P(None, AXIS)), P()


def scattering(n: int, off: int = 0, turns: int = 0, unpassed: bool = False) -> Any:
    """`x.T @ y` where both are split along the dimension that is contracted; sums go round, each to its own place."""

    def local(x: Array, y: Array) -> Array:
        width = x.shape[1] // n

        def half(step: Array, carried: Any) -> Any:
            forward, backward = carried
            there = step + device() + jnp.uint32(n // 2 + 1 + off)
            windows = two_windows(x, n, width, there, jnp.uint32(n) + device() - jnp.uint32(n // 2) - step)
            both = lax.dot_general(windows, y, (((0,), (0,)), ((), ())))
            return passed(forward, n, 1) + both[0], passed(backward, n, -1) + both[1]

        zero = jnp.zeros((width, y.shape[1]), x.dtype)
        forward, backward = ring(n, half, turns)((zero, zero))
        return forward + (backward if unpassed else passed(backward, n, -1))

    def whole(x: Array, y: Array) -> Array:
        return jnp.matmul(x.T, y)

    return local, whole, ((2 * n, 4 * n), (2 * n, 10)), (P(AXIS), P(AXIS)), P(AXIS)


Function = Callable[[Array], Array]


def texts(
    form: Callable[..., Any], n: int, *, of: tuple[Function, Function] | None = None, **wrong: Any
) -> tuple[str, str]:
    """The logical and the partitioned module of a program on n devices, of the arguments or of functions of them: one
    for the logical module, one for what a device computes."""
    local, whole, shapes, ins, out = form(n, **wrong)
    placed = Placed(AbstractMesh((n,), (AXIS,)), ins, out, floats(*shapes))
    if of is None:
        return placed.pair(whole, local)
    every, own = of
    return placed.pair(lambda *args: whole(*map(every, args)), lambda *args: local(*map(own, args)))
