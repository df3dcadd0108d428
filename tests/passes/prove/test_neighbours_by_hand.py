"""Recurrences that take from a neighbour, halos and their gradients, heads that are padded: written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.passes.prove.each_device.programs import on

DEVICES = 4
Function = Callable[..., Any]


def taken(x: jax.Array, step: int, is_ring: bool = False) -> jax.Array:
    """The rows of the device so many before."""
    pairs = [(k, (k + step) % DEVICES) for k in range(DEVICES) if is_ring or 0 <= k + step < DEVICES]
    return lax.ppermute(x, "i", pairs)


def recurrence(moved: Function) -> Function:
    def function(h: jax.Array, xs: jax.Array, y: jax.Array) -> jax.Array:
        def last(h: jax.Array) -> jax.Array:
            return lax.scan(lambda h, x: (jnp.tanh(moved(h) * 0.5 + x), None), h, xs)[0]

        (gradient,) = jax.vjp(last, h)[1](y)
        return gradient  # type: ignore[no-any-return]

    return function


def rolled(step: int = 1, is_ring: bool = True) -> Function:
    return lambda h: jnp.concatenate([taken(h[-1:], step, is_ring), h[:-1]])


def stencil(p: jax.Array) -> jax.Array:
    return jnp.tanh(p[:-2] + 2 * p[1:-1] - 3 * p[2:])


def gradient(function: Function) -> Function:
    return jax.grad(lambda x: jnp.sum(function(function(x)) ** 2))


def padded(x: jax.Array) -> jax.Array:
    return stencil(jnp.pad(x, 1))


def exchanged(step: int = 1, is_ring: bool = False) -> Function:
    return lambda x: stencil(
        jnp.concatenate([taken(x[-1:], step, is_ring), x, taken(x[:1], -step, is_ring)]),
    )


def attention(x: jax.Array, w: jax.Array, out: jax.Array) -> jax.Array:
    q = jnp.einsum("sd,dhk->hsk", x, w)
    p = jax.nn.softmax(jnp.einsum("hsk,htk->hst", q, q), axis=-1)
    return jnp.einsum("hst,htk,hkd->sd", p, q, out)


def of_some_heads(count: int, fill: float = 0.0) -> Function:
    """Each device takes its own of heads that are filled up to as many for each; they are added up."""
    each = -(-count // DEVICES)

    def local(x: jax.Array, w: jax.Array, out: jax.Array) -> jax.Array:
        def mine(a: jax.Array, axis: int) -> jax.Array:
            widths = [(0, each * DEVICES - count if k == axis else 0) for k in range(a.ndim)]
            whole = jnp.pad(a, widths, constant_values=fill)
            return lax.dynamic_slice_in_dim(whole, lax.axis_index("i") * each, each, axis)

        return lax.psum(attention(x, mine(w, 1), mine(out, 0)), "i")

    return local


SPLIT, WHOLE = P("i"), P()
RNN = on({"i": DEVICES}, (SPLIT, P(None, "i"), SPLIT), SPLIT, (16,), (5, 16), (16,))
ROW = on({"i": DEVICES}, SPLIT, SPLIT, (16,))
HEADS = on({"i": DEVICES}, (WHOLE,) * 3, WHOLE, (8, 12), (12, 3, 4), (3, 4, 12))
PAIRS = {
    "recurrence": (RNN, recurrence(lambda h: jnp.roll(h, 1)), recurrence(rolled())),
    "halo": (ROW, gradient(padded), gradient(exchanged())),
    "heads": (HEADS, attention, of_some_heads(3)),
}
WRONG = {
    "recurrence that takes from the other side": (RNN, recurrence(lambda h: jnp.roll(h, 1)), recurrence(rolled(-1))),
    "recurrence without the ring": (RNN, recurrence(lambda h: jnp.roll(h, 1)), recurrence(rolled(is_ring=False))),
    "halo from the other side": (ROW, gradient(padded), gradient(exchanged(-1))),
    "halo round a ring": (ROW, gradient(padded), gradient(exchanged(is_ring=True))),
    "heads of ones": (HEADS, attention, of_some_heads(3, fill=1.0)),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", PAIRS)
def test_right(name: str) -> None:
    placed, whole, local = PAIRS[name]
    assert hlo_verify.verify(*placed.pair(whole, local)).verdict is Verdict.PROVED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    placed, whole, local = WRONG[name]
    assert hlo_verify.verify(*placed.pair(whole, local)).verdict is Verdict.REFUTED
