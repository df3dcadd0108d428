"""What a person computed of the elements of a table is what the other program computes of them, in a loop or not."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.chain.constant_elements import numbers_of_elements
from hlo_verify.passes.load.load import load

Function = Callable[..., Any]
X, W = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((4, 3), (3, 3)))
MESH = jax.sharding.AbstractMesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
NOISE = np.array([3.0, 1.5, 0.7, 0.2], np.float32)
KEPT = np.array([0.22, 0.45, 0.71, 0.95], np.float32)


def on_devices(function: Function) -> Function:
    return jax.shard_map(function, mesh=MESH, in_specs=(P("d"), P()), out_specs=P("d"))


def euler(noise: np.ndarray) -> Function:
    def whole(x: jax.Array, w: jax.Array) -> jax.Array:
        for i in range(3):
            x = x + jnp.tanh(x @ w / np.sqrt(noise[i] ** 2 + 1)) * (noise[i + 1] - noise[i])
        return x

    return whole


def euler_turn(x: jax.Array, w: jax.Array, s: Any, t: Any) -> jax.Array:
    return x + jnp.tanh(x @ w * lax.rsqrt(s * s + 1)) * (t - s)


def by_scan(noise: np.ndarray) -> Function:
    def local(x: jax.Array, w: jax.Array) -> jax.Array:
        pairs = jnp.asarray(noise[:-1]), jnp.asarray(noise[1:])
        return lax.scan(lambda x, pair: (euler_turn(x, w, *pair), None), x, pairs)[0]

    return on_devices(local)


def by_counting(noise: np.ndarray, later: int = 1) -> Function:
    def local(x: jax.Array, w: jax.Array) -> jax.Array:
        s = jnp.asarray(noise)
        return lax.fori_loop(0, 3, lambda i, x: euler_turn(x, w, s[i], s[i + later]), x)

    return on_devices(local)


def denoised(x: jax.Array, w: jax.Array) -> jax.Array:
    for i in range(3):
        a, b = KEPT[i], KEPT[i + 1]
        e = jnp.tanh(x @ w + 0.1 * i)
        x = np.sqrt(b) * (x - np.sqrt(1 - a) * e) / np.sqrt(a) + np.sqrt(1 - b) * e
    return x


def denoised_in_a_loop(x: jax.Array, w: jax.Array, kept: np.ndarray = KEPT) -> jax.Array:
    table = jnp.asarray(kept)

    def turn(i: Any, x: jax.Array) -> jax.Array:
        a, b = table[i], table[i + 1]
        e = jnp.tanh(x @ w + i.astype(jnp.float32) * 0.1)
        return jnp.sqrt(b) * (x - jnp.sqrt(1 - a) * e) / jnp.sqrt(a) + jnp.sqrt(1 - b) * e

    return lax.fori_loop(0, 3, turn, x)


RIGHT = {
    "scan": (euler(NOISE), by_scan(NOISE)),
    "counted": (euler(NOISE), by_counting(NOISE)),
    "roots": (denoised, on_devices(denoised_in_a_loop)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_schedule_that_was_computed_beforehand(name: str) -> None:
    found = hlo_verify.check(*RIGHT[name], X, W, refute=False)
    assert found.verdict is Verdict.PROVED, found
    assert any("rounded" in said for said in found.assumptions)


OFF = NOISE * np.float32(1 + 4e-6)
WRONG = {
    "another schedule": (euler(NOISE), by_scan(OFF)),
    "another element": (euler(NOISE), by_counting(NOISE, later=0)),
    "in another order": (euler(NOISE), by_scan(NOISE[::-1].copy())),
    "another root": (denoised, on_devices(lambda x, w: denoised_in_a_loop(x, w, np.roll(KEPT, 1)))),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", WRONG)
def test_what_is_computed_of_others(name: str) -> None:
    assert hlo_verify.check(*WRONG[name], X, W, refute=False).verdict is not Verdict.PROVED


def test_all_that_values_of_a_loop_may_be_is_listed() -> None:
    module = load(jax.jit(RIGHT["counted"][1]).trace(X, W).lower(lowering_platforms=("cpu",)).as_text())
    found = {each.exact for each in numbers_of_elements(module.main)}
    elements = [Fraction(float(s)) for s in NOISE]
    assert {t - s for s, t in pairwise(elements)} <= found
    assert {s * s + 1 for s in elements} <= found
