"""Loops of both modules are matched by what they carry, split over the devices in whatever way."""

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
from hlo_verify.limits import Limits
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.prove import prove_at_once
from hlo_verify.session import Session
from tests.support.lowering import Placed, floats
from tests.support.pairs import REPLICATED, module, on

MESH = AbstractMesh((2, 2), ("x", "y"))
STEPS = 100
"""More than are unrolled."""

Pair = tuple[jax.Array, jax.Array]
Body = Callable[[jax.Array, jax.Array], jax.Array]


def verdict(reference: Body, local: Body, given: tuple[P, P], wanted: P) -> Verdict:
    placed = Placed(MESH, given, wanted, floats((8, 6), (6, 6)))
    return hlo_verify.verify(*placed.pair(reference, local), refute=False).verdict


def walk(multiply: Body, start: Callable[[jax.Array], jax.Array], turn: Callable[[Any, Pair], Pair]) -> Body:
    """A loop that carries rows and a running total of them; the total is the result."""

    def step(w: jax.Array, t: Any, carried: Pair) -> Pair:
        rows, total = turn(t, carried)
        rows = jnp.tanh(multiply(rows, w))
        return rows, 0.9 * total + rows

    def function(a: jax.Array, w: jax.Array) -> jax.Array:
        return lax.fori_loop(0, STEPS, lambda t, c: step(w, t, c), (start(a), jnp.zeros_like(a)))[1]

    return function


def same(x: jax.Array) -> jax.Array:
    return x


def unturned(_: Any, carried: Pair) -> Pair:
    return carried


REFERENCE = walk(jnp.matmul, same, unturned)
ROWS, SQUARE = P("x", None), P("x", "y")


def by_columns(a: jax.Array, w: jax.Array) -> jax.Array:
    """The product where both devices of y have columns of the rows, and rows of the weight."""
    return lax.psum_scatter(a @ w, "y", scatter_dimension=1, tiled=True)


@pytest.mark.parametrize("axis", ["x", "y"])
def test_rows_are_split(axis: str) -> None:
    rows = P(axis, None)
    assert verdict(REFERENCE, REFERENCE, (rows, P()), rows) is Verdict.PROVED


def test_both_dimensions_are_split_over_axes_of_one_size() -> None:
    local = walk(by_columns, same, unturned)
    assert verdict(REFERENCE, local, (SQUARE, P("y", None)), SQUARE) is Verdict.PROVED
    assert verdict(REFERENCE, local, (SQUARE, P("x", None)), SQUARE) is Verdict.UNKNOWN


def exchanged(x: jax.Array) -> jax.Array:
    return lax.ppermute(x, "x", [(0, 1), (1, 0)])


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("start", "turn"),
    [
        (exchanged, unturned),
        (same, lambda t, c: (exchanged(c[0]), c[1])),
        (same, lambda t, c: (c[0], exchanged(c[1]))),
        (same, lambda t, c: (c[0], jnp.where(t == STEPS - 1, exchanged(c[1]), c[1]))),
        (same, lambda t, c: (c[1], c[0])),
    ],
)
def test_rows_of_another_device_are_not_the_same(
    start: Callable[[jax.Array], jax.Array], turn: Callable[[Any, Pair], Pair]
) -> None:
    assert verdict(REFERENCE, walk(jnp.matmul, start, turn), (ROWS, P()), ROWS) is Verdict.UNKNOWN


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("other", "steps", "start", "expected"),
    [
        (0.5, STEPS, 1.0, Verdict.PROVED),
        (0.25, STEPS, 1.0, Verdict.UNKNOWN),
        (0.5, STEPS + 1, 1.0, Verdict.UNKNOWN),
        (0.5, STEPS, 2.0, Verdict.UNKNOWN),
    ],
    ids=["the same", "another step", "another number of steps", "another start"],
)
def test_a_loop_that_is_written_twice_may_run_once(other: float, steps: int, start: float, expected: Verdict) -> None:
    def rows(a: jax.Array, w: jax.Array, factor: float = 0.5, steps: int = STEPS, start: float = 1.0) -> jax.Array:
        return lax.fori_loop(0, steps, lambda t, x: jnp.tanh(factor * x @ w), start * a)

    def twice(a: jax.Array, w: jax.Array) -> jax.Array:
        return rows(a, w) * jnp.sin(rows(a, w, other, steps, start))

    def once(a: jax.Array, w: jax.Array) -> jax.Array:
        x = rows(a, w)
        return x * jnp.sin(x)

    assert verdict(twice, once, (P("x"), P()), P("x")) is expected


LOOP = """
  %n = stablehlo.constant dense<5> : tensor<i32>
  %z = stablehlo.constant dense<0> : tensor<i32>
  %o = stablehlo.constant dense<1> : tensor<i32>
  %y = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xCARRIED>
  %one = stablehlo.constant dense<ONE> : tensor<4xCARRIED>
  %w:2 = stablehlo.while(%i = %z, %c = %one) : tensor<i32>, tensor<4xCARRIED>
    cond {
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %o : tensor<i32>
      %a = stablehlo.multiply %c, %c : tensor<4xCARRIED>
      %b = stablehlo.multiply %a, %y : tensor<4xCARRIED>
      %d = stablehlo.add %b, %one : tensor<4xCARRIED>
      stablehlo.return %j, %d : tensor<i32>, tensor<4xCARRIED>
    }
  %r = stablehlo.convert %w#1 : (tensor<4xCARRIED>) -> tensor<4xi32>
  return %r : tensor<4xi32>"""


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("logical", "partitioned", "expected"),
    [
        ("i8", "i8", Verdict.PROVED),
        ("f32", "bf16", Verdict.PROVED),
        ("i8", "i32", Verdict.UNKNOWN),
        ("i32", "i8", Verdict.UNKNOWN),
        ("i8", "ui8", Verdict.UNKNOWN),
        ("i8", "f32", Verdict.UNKNOWN),
        ("i16", "i64", Verdict.UNKNOWN),
    ],
)
def test_what_a_loop_carries_wraps_in_its_own_type(logical: str, partitioned: str, expected: Verdict) -> None:
    """A value of eight bits after a few turns is one of 32 bits modulo 256 alone."""
    given, found = f"%x: tensor<4xi8> {on(REPLICATED)}", f"tensor<4xi32> {on(REPLICATED)}"
    bodies = (
        LOOP.replace("CARRIED", kind).replace("ONE", "1.0" if "f" in kind else "1") for kind in (logical, partitioned)
    )
    texts = (module(given, found, body, 1) for body in bodies)
    assert hlo_verify.verify(*texts, refute=False).verdict is expected


@pytest.mark.parametrize(("most", "is_unrolled"), [(40_000, True), (0, False)])
def test_a_loop_that_is_matched_in_part_is_gone_through_so_often(most: int, is_unrolled: bool) -> None:
    """Past the limit, nothing is known of what does not match: here, of a loop that lacks a sum over devices."""

    def loop(multiply: Body) -> Body:
        def turn(_: Any, carried: Pair) -> Pair:
            return jnp.tanh(multiply(carried[0], w)), carried[1] + 1.0

        w = jnp.ones((6, 6))
        return lambda a, b: sum(lax.fori_loop(0, 3, turn, (a, b)))

    placed = Placed(MESH, (P("x", None), P("x", None)), P("x", None), floats((8, 6), (8, 6)))
    pair = placed.pair(loop(jnp.matmul), loop(lambda rows, w: 2.0 * rows @ w))
    session = Session(Limits(vain_loops=most))
    report = prove_at_once(*map(load, pair), session=session)
    assert report.verdict is Verdict.UNKNOWN
    assert ("vain_loops" in session.spent().limits) is not is_unrolled
