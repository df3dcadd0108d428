"""Gradients and steps of optimizers whose formulas a person wrote for each device, against `jax.grad` of the whole."""

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
from tests.passes.prove.each_device.programs import on

DEVICES = 4
Array = jax.Array
Function = Callable[..., Any]
ROWS, COLUMNS = P("i"), P(None, "i")


def added_up(x: Array) -> Array:
    return lax.psum(x, "i")


def pooled(q: Array, w: Array, x: Array, t: Array) -> Any:
    return jax.grad(lambda q, w, x: jnp.sum((jax.nn.softmax(x @ q) @ (x @ w) - t) ** 2), (0, 1, 2))(q, w, x)


def pooled_by_parts(is_wrong: bool, q: Array, w: Array, x: Array, t: Array) -> Any:
    """Attention of one query over rows that are split; wrong where what a softmax takes off is of a device's own."""
    scores, v = x @ q, x @ w
    weights = jnp.exp(scores - lax.pmax(scores.max(), "i"))
    p = weights / added_up(weights.sum())
    d = 2 * (added_up(p @ v) - t)
    dp = v @ d
    ds = p * (dp - (p @ dp if is_wrong else added_up(p @ dp)))
    return added_up(ds @ x), added_up(jnp.outer(p @ x, d)), jnp.outer(ds, q) + jnp.outer(p, w @ d)


def grouped(wq: Array, wk: Array, wv: Array, x: Array, queries: int = 2) -> Array:
    """A loss of attention in which each head of keys has several of queries."""
    q, *kv = (jnp.einsum("td,hde->hte", x, w) for w in (wq, wk, wv))
    k, v = (jnp.repeat(each, queries, 0) for each in kv)
    return jnp.sum(jnp.einsum("hts,hse->the", jax.nn.softmax(jnp.einsum("hte,hse->hts", q, k)), v) ** 2)


def grouped_by_heads(is_wrong: bool, wq: Array, wk: Array, wv: Array, x: Array) -> Any:
    """One head of queries a device, two devices to each of keys; wrong where these are others."""
    at = lax.axis_index("i")
    own = at % 2 if is_wrong else at // 2
    k, v = (lax.dynamic_slice_in_dim(w, own, 1) for w in (wk, wv))
    a, b, c = jax.grad(partial(grouped, queries=1), (0, 1, 2))(wq, k, v, x)
    put = lambda g: added_up(lax.dynamic_update_slice_in_dim(jnp.zeros_like(wk), g, own, 0))  # noqa: E731
    return a, put(b), put(c)


def sharpened(w: Array, v: Array, x: Array, t: Array) -> Any:
    """Gradients a step uphill, as of sharpness-aware minimization."""
    gradient = jax.grad(lambda w, v: jnp.mean((jnp.tanh(x @ w) @ v - t) ** 2), (0, 1))
    a, b = gradient(w, v)
    length = jnp.sqrt(jnp.sum(a * a) + jnp.sum(b * b) + 1e-12)
    return gradient(w + 0.05 * a / length, v + 0.05 * b / length)


def sharpened_by_columns(is_wrong: bool, w: Array, v: Array, x: Array, t: Array) -> Any:
    """Wrong where each device has a length of its own."""

    def gradient(w: Array, v: Array) -> tuple[Array, Array]:
        h = jnp.tanh(x @ w)
        y = added_up(h @ v)
        d = 2 * (y - t) / y.size
        return x.T @ ((d @ v.T) * (1 - h * h)), h.T @ d

    a, b = gradient(w, v)
    squares = jnp.sum(a * a) + jnp.sum(b * b)
    length = jnp.sqrt((squares if is_wrong else added_up(squares)) + 1e-12)
    return gradient(w + 0.05 * a / length, v + 0.05 * b / length)


def clipped_rows(w: Array, x: Array, t: Array) -> Array:
    """A private step: the gradient of each row is clipped by its own norm."""
    g = jax.vmap(jax.grad(lambda w, x, t: jnp.sum((jnp.tanh(x @ w) - t) ** 2)), (None, 0, 0))(w, x, t)
    return w - 0.1 * jnp.mean(g / jnp.maximum(1, jnp.sqrt(jnp.sum(g * g, (1, 2), keepdims=True))), 0)


def clipped_outer_products(is_wrong: bool, w: Array, x: Array, t: Array) -> Array:
    """The norm of an outer product is that of its factors; wrong where it is squared."""
    y = jnp.tanh(x @ w)
    d = 2 * (y - t) * (1 - y * y)
    squares = jnp.sum(x * x, -1) * jnp.sum(d * d, -1)
    scale = 1 / jnp.maximum(squares if is_wrong else jnp.sqrt(squares), 1)
    return w - 0.1 * added_up(jnp.einsum("n,ni,nj->ij", scale, x, d)) / 8


def orthogonal(w: Array, m: Array, x: Array, t: Array) -> Any:
    """A step of Muon, with two turns of Newton and Schulz's."""
    m = 0.95 * m + jax.grad(lambda w: jnp.mean((x @ w - t) ** 2))(w)
    u = m / (jnp.sqrt(jnp.sum(m * m)) + 1e-7)
    for _ in range(2):
        u = 1.5 * u - 0.5 * (u @ u.T) @ u
    return w - 0.02 * u, m


def orthogonal_by_columns(is_wrong: bool, w: Array, m: Array, x: Array, t: Array) -> Any:
    """Wrong where the second turn knows a device's own columns alone."""
    m = 0.95 * m + x.T @ (x @ w - t) / 12
    u = m / (jnp.sqrt(added_up(jnp.sum(m * m))) + 1e-7)
    for turn in range(2):
        gram = u @ u.T
        u = 1.5 * u - 0.5 * (gram if is_wrong and turn else added_up(gram)) @ u
    return w - 0.02 * u, m


def factored(w: Array, r: Array, c: Array, x: Array, t: Array) -> Any:
    """A step of Adafactor."""
    g = jax.grad(lambda w: jnp.mean((x @ w - t) ** 2))(w)
    squares = g * g + 1e-30
    r, c = 0.8 * r + 0.2 * squares.mean(1), 0.8 * c + 0.2 * squares.mean(0)
    u = g / jnp.sqrt(jnp.outer(r, c) / r.mean())
    return w - 1e-2 * u / jnp.maximum(1.0, jnp.sqrt(jnp.mean(u * u))), r, c


def factored_by_rows(is_wrong: bool, w: Array, r: Array, c: Array, x: Array, t: Array) -> Any:
    """Weights are gathered, and gradients scattered; wrong where means over rows are of a device's own."""
    whole = lax.all_gather(w, "i", tiled=True)
    g = lax.psum_scatter(2 * x.T @ (x @ whole - t) / t.size, "i", tiled=True) / 4
    squares = jnp.square(g) + 1e-30
    of_columns = squares.mean(0) if is_wrong else lax.pmean(squares.mean(0), "i")
    r, c = 0.8 * r + 0.2 * squares.mean(1), 0.8 * c + 0.2 * of_columns
    u = g * lax.rsqrt(r[:, None] * c / lax.pmean(r.mean(), "i"))
    return w - 1e-2 * u / jnp.maximum(1.0, jnp.sqrt(added_up(jnp.sum(u * u)) / 24)), r, c


STEPS: dict[str, tuple[Function, Function, Any, Any, tuple[tuple[int, ...], ...]]] = {
    "pooling": (pooled, pooled_by_parts, (P(), P(), ROWS, P()), (P(), P(), ROWS), ((2,), (2, 3), (8, 2), (3,))),
    "grouped queries": (
        jax.grad(grouped, (0, 1, 2)),
        grouped_by_heads,
        (ROWS, P(), P(), P()),
        (ROWS, P(), P()),
        ((4, 2, 2), (2, 2, 2), (2, 2, 2), (3, 2)),
    ),
    "sharpness": (
        sharpened,
        sharpened_by_columns,
        (COLUMNS, ROWS, P(), P()),
        (COLUMNS, ROWS),
        ((3, 8), (8, 2), (2, 3), (2, 2)),
    ),
    "private": (clipped_rows, clipped_outer_products, (P(), ROWS, ROWS), P(), ((3, 2), (8, 3), (8, 2))),
    "muon": (
        orthogonal,
        orthogonal_by_columns,
        (COLUMNS, COLUMNS, P(), COLUMNS),
        (COLUMNS, COLUMNS),
        ((2, 8), (2, 8), (3, 2), (3, 8)),
    ),
    "adafactor": (
        factored,
        factored_by_rows,
        (ROWS, ROWS, P(), ROWS, ROWS),
        (ROWS, ROWS, P()),
        ((8, 3), (8,), (3,), (8, 8), (8, 3)),
    ),
}


@pytest.mark.parametrize("is_wrong", [False, True], ids=["right", "wrong"])
@pytest.mark.parametrize("name", STEPS)
def test_a_step_by_hand(name: str, is_wrong: bool) -> None:
    reference, local, ins, outs, shapes = STEPS[name]
    placed = on({"i": DEVICES}, ins, outs, *shapes)
    found = hlo_verify.verify(*placed.pair(reference, partial(local, is_wrong)))
    assert found.verdict is (Verdict.REFUTED if is_wrong else Verdict.PROVED)
