"""A dimension of which each device holds one element: it has no digit there."""

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

Program = Callable[..., Any]


def verdict(program: Program, local: Program, ins: Any, outs: Any, *shapes: tuple[int, ...]) -> Verdict:
    """Of a program, and of what each device of four does."""
    placed = Placed(AbstractMesh((4,), ("x",)), ins, outs, floats(*shapes))
    return hlo_verify.verify(*placed.pair(program, local), refute=False).verdict


def summed(program: Program) -> Program:
    return lambda *arguments: lax.psum(program(*arguments), "x")


def attention(q: jax.Array, k: jax.Array, v: jax.Array, out: jax.Array, over: int = -1) -> jax.Array:
    scores = jax.nn.softmax(jnp.einsum("qnd,knd->nqk", q, k), over)
    return jnp.einsum("qnd,ndm->qm", jnp.einsum("nqk,knd->qnd", scores, v), out)


def gradients(program: Program, *wanted: int) -> Program:
    return jax.grad(lambda *arguments: jnp.sum(program(*arguments) ** 2), wanted)


HEADS = (P(None, "x"), P(None, "x"), P(None, "x"), P("x")), P()
IMAGES = (P("x"), P()), P()


def heads(count: int) -> list[tuple[int, ...]]:
    return [(6, count, 3)] * 3 + [(count, 3, 5)]


@pytest.mark.parametrize("count", [4, 8])
def test_heads(count: int) -> None:
    assert verdict(attention, summed(attention), *HEADS, *heads(count)) is Verdict.PROVED


@pytest.mark.parametrize("count", [4, 8])
def test_heads_with_another_softmax(count: int) -> None:
    other = summed(lambda *arguments: attention(*arguments, over=1))
    assert verdict(attention, other, *HEADS, *heads(count)) is Verdict.UNKNOWN


def experts(x: jax.Array, gates: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
    hidden = jax.nn.relu(jnp.einsum("td,edf->tef", x, first))
    return jnp.einsum("te,tef,efd->td", gates, hidden, second)


@pytest.mark.parametrize("count", [4, 8])
def test_experts(count: int) -> None:
    where = (P(), P(None, "x"), P("x"), P("x")), P()
    shapes = (6, 4), (6, count), (count, 4, 7), (count, 7, 4)
    assert verdict(experts, summed(experts), *where, *shapes) is Verdict.PROVED


def standard(x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    mean = jnp.mean(x, axes, keepdims=True)
    return (x - mean) * lax.rsqrt(jnp.mean((x - mean) ** 2, axes, keepdims=True) + 1e-5)


def filtered(x: jax.Array, kernel: jax.Array, axes: tuple[int, ...] = (1, 2)) -> jax.Array:
    found = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jnp.tanh(standard(found, axes))


@pytest.mark.parametrize("count", [4, 8])
def test_the_gradient_of_a_filter(count: int) -> None:
    program = gradients(filtered, 1)
    local = lambda *arguments: [lax.psum(each, "x") for each in program(*arguments)]  # noqa: E731
    assert verdict(program, local, *IMAGES, (count, 5, 5, 2), (3, 3, 2, 3)) is Verdict.PROVED


@pytest.mark.slow
@pytest.mark.parametrize("count", [4])
def test_the_gradient_of_another_filter(count: int) -> None:
    program, other = gradients(filtered, 1), gradients(lambda *both: filtered(*both, axes=(1,)), 1)
    local = lambda *arguments: [lax.psum(each, "x") for each in other(*arguments)]  # noqa: E731
    assert verdict(program, local, *IMAGES, (count, 5, 5, 2), (3, 3, 2, 3)) is Verdict.UNKNOWN


def weighed(x: jax.Array, y: jax.Array, axes: int | tuple[int, ...] = (1, 2)) -> jax.Array:
    """A factor of a named sum is of the rows alone."""
    rows = (x - x.mean(1, keepdims=True)) / jnp.sum(x * x, axes, keepdims=True)
    return jnp.einsum("bti,btj->ij", rows, y)


@pytest.mark.parametrize("count", [4, 8])
def test_a_factor_of_each_row(count: int) -> None:
    where = (P("x"), P("x")), P()
    shapes = (count, 5, 6), (count, 5, 3)
    assert verdict(weighed, summed(weighed), *where, *shapes) is Verdict.PROVED
    assert verdict(weighed, summed(lambda *both: weighed(*both, axes=1)), *where, *shapes) is Verdict.UNKNOWN
