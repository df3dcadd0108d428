"""Loops that add up are proved against what they come to, and against nothing else."""

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
from tests.support.lowering import Placed, floats

MESH = AbstractMesh((2,), ("x",))
ROWS = (6, 4)
"""Every device's rows, and how many columns."""

Body = Callable[[jax.Array], jax.Array]


def verdict(reference: Body, local: Body, rows: int = ROWS[0]) -> Verdict:
    """Of a function of all rows, against one of each device's own; both give a sum per column."""
    placed = Placed(MESH, P("x"), P(), floats((2 * rows, ROWS[1])))
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


def whole(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.sin(x), axis=0)


def looped(
    steps: int, step: Callable[[Any, jax.Array, jax.Array], jax.Array], start: Callable[[jax.Array], jax.Array]
) -> Body:
    """A loop of some steps over a device's rows, each given the counter, what is carried, and the rows."""

    def local(x: jax.Array) -> jax.Array:
        return lax.psum(lax.fori_loop(0, steps, lambda t, total: step(t, total, x), start(x)), "x")

    return local


def zeros(x: jax.Array) -> jax.Array:
    return jnp.zeros(x.shape[1])


def two_rows(t: Any, x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.sin(lax.dynamic_slice_in_dim(x, 2 * t, 2)), axis=0)


def add_two_rows(t: Any, total: jax.Array, x: jax.Array) -> jax.Array:
    return total + two_rows(t, x)


def test_a_sum_over_steps_is_the_sum_over_all_rows() -> None:
    assert verdict(whole, looped(3, add_two_rows, zeros)) is Verdict.PROVED


def test_steps_may_be_counted_down() -> None:
    backwards = looped(3, lambda t, total, x: total + two_rows(2 - t, x), zeros)
    assert verdict(whole, backwards) is Verdict.PROVED

    def scanned(x: jax.Array) -> jax.Array:
        parts = x.reshape(3, 2, x.shape[1])
        total, _ = lax.scan(
            lambda total, part: (total + jnp.sum(jnp.sin(part), axis=0), None), zeros(x), parts, reverse=True
        )
        return lax.psum(total, "x")

    assert verdict(whole, scanned) is Verdict.PROVED


def test_more_steps_than_are_unrolled() -> None:
    assert verdict(whole, looped(500, add_two_rows, zeros), rows=1000) is Verdict.PROVED


def test_the_sum_goes_on_from_where_it_starts() -> None:
    local = looped(3, add_two_rows, lambda x: jnp.cos(x[0]))
    assert verdict(lambda x: whole(x) + jnp.sum(jnp.cos(x[:: ROWS[0]]), axis=0), local) is Verdict.PROVED
    assert verdict(lambda x: whole(x) + 2 * jnp.cos(x[0]), local) is Verdict.UNKNOWN


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    ("steps", "step"),
    [
        (2, add_two_rows),  # one short
        (4, add_two_rows),  # the last rows twice: the slice's start is clamped
        (3, lambda t, total, x: total + two_rows(0, x)),
        (2, lambda t, total, x: total + two_rows(2 - t, x)),  # down, one short
        (3, lambda t, total, x: total + two_rows(3 - t, x)),
        (3, lambda t, total, x: total + two_rows(t, x) * two_rows(2 - t, x) / two_rows(t, x)[::-1]),
        (3, lambda t, total, x: total + t * two_rows(t, x)),
        (3, lambda t, total, x: total / 2 + two_rows(t, x)),
        (3, lambda t, total, x: jnp.abs(total) + two_rows(t, x)),
        (3, lambda t, total, x: total + two_rows(jnp.where(total[0] > 0, t, 0), x)),
    ],
)
def test_what_adds_up_to_something_else_is_not_proved(
    steps: int, step: Callable[[Any, jax.Array, jax.Array], jax.Array]
) -> None:
    assert verdict(whole, looped(steps, step, zeros)) is Verdict.UNKNOWN


def test_what_is_not_understood_is_not_the_same_in_every_step() -> None:
    """4 * sum(u) = 6 * sum(t * u) over t < 4 if u were one value, not one a step."""

    def local(x: jax.Array) -> jax.Array:
        def step(t: Any, sums: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            unknown = jnp.sum(jnp.linalg.qr(x * (t + 1))[0], axis=0)
            return sums[0] + unknown, sums[1] + t * unknown

        first, second = lax.fori_loop(0, 4, step, (zeros(x), zeros(x)))
        return lax.psum(6 * first - 4 * second, "x")

    assert verdict(lambda x: 0 * x[0], local) is Verdict.UNKNOWN


def test_what_a_loop_inside_leaves_open_is_not_the_same_in_every_step() -> None:
    """81 * sum(t * u) = sum(t) * sum(u) over t < 81 if u, which a loop of another meaning leaves, were one value."""

    def inner(x: jax.Array, z: Any, step: Body) -> tuple[jax.Array, jax.Array]:
        def both(_: Any, carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            return jnp.sin(carried[0] + 1), step(carried[1] * z)

        return lax.fori_loop(0, 7, both, (x, x))

    def reference(x: jax.Array, z: jax.Array) -> jax.Array:
        first, second = inner(x, z, jnp.abs)
        return first + second

    def local(x: jax.Array, z: jax.Array) -> jax.Array:
        def step(t: Any, sums: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            _, unknown = inner(x, t.astype(jnp.float32), jnp.tanh)
            return sums[0] + unknown, sums[1] + t * unknown, sums[2] + t.astype(jnp.float32)

        sums = lax.fori_loop(0, 81, step, (0 * x, 0 * x, jnp.float32(0)))
        first, second = inner(x, z, jnp.abs)
        return first + second + 81 * sums[1] - sums[0] * sums[2]

    placed = Placed(AbstractMesh((4,), ("x",)), (P("x"), P()), P("x"), floats((4, 6), ()))
    assert hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict is Verdict.UNKNOWN


def test_integers() -> None:
    def local(x: jax.Array) -> jax.Array:
        count = lax.fori_loop(0, 3, lambda t, n: n + 2 * t + 1, jnp.int32(0))
        return lax.psum(jnp.sum(jnp.sin(x), axis=0), "x") * count

    assert verdict(lambda x: whole(x) * 9, local) is Verdict.PROVED
    assert verdict(lambda x: whole(x) * 8, local) is Verdict.UNKNOWN
