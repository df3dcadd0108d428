"""A device's loop may carry a multiple of its shard: gradients of means over its own rows, in every turn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.ops.test_matching import ROWS, STEPS, regional, verdict
from tests.support.lowering import floats

MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))

Function = Callable[..., Any]


def linear(
    start: float, added: float, factor: float = 1.0, divided: float = 1.0, activation: Function = jnp.positive
) -> Function:
    """A recurrence that starts from a multiple, and adds one in each turn."""

    def function(h: jax.Array, x: jax.Array, w: jax.Array) -> jax.Array:
        def turn(_: Any, h: jax.Array) -> jax.Array:
            return activation(factor * (h @ w) + added * x)

        return lax.fori_loop(0, STEPS, turn, start * h) / divided

    return function


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        (linear(3.0, 3.0, divided=3.0), Verdict.PROVED),
        (linear(0.25, 0.25, divided=0.25), Verdict.PROVED),
        (linear(3.0, 1.0, divided=3.0), Verdict.UNKNOWN),  # what is added is not as many times that
        (linear(3.0, 3.0, factor=2.0, divided=3.0), Verdict.UNKNOWN),  # another multiple after each turn
        (linear(3.0, 3.0, divided=2.0), Verdict.UNKNOWN),  # not the multiple that is left
        (linear(3.0, 3.0, divided=3.0, activation=jnp.tanh), Verdict.UNKNOWN),
    ],
)
def test_a_multiple_goes_through_a_loop(local: Function, expected: Verdict) -> None:
    given, shapes = (ROWS, ROWS, P()), ((8, 4), (8, 4), (4, 4))
    assert verdict(linear(1.0, 1.0), regional(local, given, ROWS), *shapes) is expected


def test_a_multiple_of_what_is_no_linear_function_is_none() -> None:
    """What starts from 0 shows no multiple, and tanh has none."""
    given, shapes = (ROWS, ROWS, P()), ((8, 4), (8, 4), (4, 4))
    reference, local = (linear(0.0, each, divided=each, activation=jnp.tanh) for each in (1.0, 3.0))
    assert verdict(reference, regional(local, given, ROWS), *shapes) is Verdict.UNKNOWN


def gated(w: jax.Array, x: jax.Array, t: jax.Array, turns: int = STEPS) -> jax.Array:
    """The mean loss of a recurrence of two components over sequences along the first dimension."""

    def turn(s: tuple[jax.Array, jax.Array], _: None) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        h, c = s
        z = x + h @ w
        c = jax.nn.sigmoid(z) * c + jnp.tanh(z)
        h = jax.nn.sigmoid(z) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros_like(x)
    return jnp.mean((lax.scan(turn, (start, start), None, length=turns)[1] - t) ** 2)


def deep(ws: jax.Array, x: jax.Array, t: jax.Array) -> jax.Array:
    """The mean loss of many layers."""
    return jnp.mean((lax.scan(lambda h, w: (h + jnp.tanh(h @ w), None), x, ws)[0] - t) ** 2)


def step(loss: Function, reduce: Function) -> Function:
    def local(w: jax.Array, x: jax.Array, t: jax.Array) -> jax.Array:
        return reduce(jax.grad(loss)(w, x, t))

    return regional(local, (P(), ROWS, ROWS), P(), MESH)


@pytest.mark.parametrize("loss", [gated, deep])
@pytest.mark.parametrize("is_mean", [True, False])
def test_gradients_of_a_mean_over_a_devices_own_rows(loss: Function, is_mean: bool) -> None:
    shapes = ((STEPS, 4, 4) if loss is deep else (4, 4)), (8, 4), (8, 4)
    local = step(loss, lambda g: lax.pmean(g, "x") if is_mean else lax.psum(g, "x") / 4)
    assert verdict(jax.grad(loss), local, *shapes) is Verdict.PROVED


@pytest.mark.parametrize("loss", [partial(gated, turns=3), deep])
@pytest.mark.parametrize("reduced", ["summed", "not at all", "twice divided"])
def test_gradients_that_are_another_multiple(loss: Function, reduced: str) -> None:
    reduce = {
        "summed": lambda g: lax.psum(g, "x"),
        "not at all": lambda g: g,
        "twice divided": lambda g: lax.pmean(g, "x") / 4,
    }[reduced]
    w, rows = ((3, 4, 4) if loss is deep else (4, 4)), (8, 4)
    found = hlo_verify.check(jax.grad(loss), step(loss, reduce), *floats(w, rows, rows))
    assert found.verdict is Verdict.REFUTED
