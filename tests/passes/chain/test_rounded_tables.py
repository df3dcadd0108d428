"""A table of constants stands for what the other module computes, and for nothing that is further away."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Report, Verdict
from hlo_verify.evaluate.blocks import dense, of_dense
from hlo_verify.evaluate.interpret import evaluate
from hlo_verify.evaluate.intervals import around, interval
from hlo_verify.passes.chain import rounded_tables
from hlo_verify.passes.chain.rounded_tables import parts, with_tables
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import Module
from hlo_verify.session import Session
from tests.conftest import SEED

Function = Callable[..., Any]
N, D = 8, 4
X = jax.ShapeDtypeStruct((N, D), jnp.float32)
MESH = jax.sharding.AbstractMesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))


def on_devices(function: Function) -> Function:
    """A function of the rows that a device has, and of the number of the first of them."""
    local = lambda x: function(x, lax.axis_index("d") * (N // 4))  # noqa: E731
    return jax.shard_map(local, mesh=MESH, in_specs=P("d"), out_specs=P("d"))


def rows(first: Any) -> jax.Array:
    return first + jnp.arange(N // 4)


POSITIONS, NUMBERS = np.arange(N)[:, None], np.arange(D)
TABLES: dict[str, tuple[np.ndarray, Callable[[Any], jax.Array]]] = {
    "cosines": (
        np.cos(POSITIONS / 10000 ** (NUMBERS / D)),
        lambda first: jnp.cos(rows(first)[:, None] * jnp.exp(-math.log(10000.0) / D * jnp.arange(D))),
    ),
    "window": (
        np.hanning(N)[:, None] * np.ones(D),
        lambda first: jnp.broadcast_to(0.5 - 0.5 * jnp.cos(2 * jnp.pi * rows(first) / (N - 1))[:, None], (N // 4, D)),
    ),
    "slopes": (
        2.0 ** (-8 * (POSITIONS + 1) / 12) * (1.0 + NUMBERS),
        lambda first: jnp.exp2(-8.0 * (rows(first)[:, None] + 1) / 12) * jnp.arange(1, D + 1),
    ),
    "opposites": (
        -np.sin(2 * np.pi * POSITIONS * NUMBERS / N),
        lambda first: jnp.sin(2 * jnp.pi * rows(first)[:, None] * jnp.arange(D) / N) * -1.0,
    ),
}


def report(table: np.ndarray, formula: Callable[[Any], jax.Array], *, turned: bool = False) -> Report:
    """Of a program that holds a table, and one that computes it; or the other way round. No witness is looked for, so
    that what is wrong is not refuted before."""
    held = table.astype(np.float32)
    if turned:
        whole = lambda x: jnp.tanh(x * jnp.concatenate([formula(2 * d) for d in range(4)]))  # noqa: E731
        parts_of = lambda x, first: jnp.tanh(x * lax.dynamic_slice(jnp.asarray(held), (first, 0), (2, D)))  # noqa: E731
        return hlo_verify.check(whole, on_devices(parts_of), X, refute=False)
    local = on_devices(lambda x, first: jnp.tanh(x * formula(first)))
    return hlo_verify.check(lambda x: jnp.tanh(x * held), local, X, refute=False)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_what_the_other_program_computes(name: str, turned: bool) -> None:
    found = report(*TABLES[name], turned=turned)
    assert found.verdict is Verdict.PROVED, found
    assert any("computes, rounded" in said for said in found.assumptions)


@pytest.mark.parametrize("name", TABLES)
def test_a_number_of_a_table_that_is_off(name: str) -> None:
    """By more than what roundings make of any number of it."""
    table, formula = TABLES[name]
    generator = np.random.default_rng(SEED)
    at = tuple(generator.integers(1, n - 1) for n in table.shape)
    off = table.copy()
    off[at] += 3e-5 * np.abs(table).max()
    assert report(off, formula).verdict is not Verdict.PROVED


@pytest.mark.parametrize("name", TABLES)
def test_another_device_s_part(name: str) -> None:
    table, formula = TABLES[name]
    assert report(table, lambda first: formula(first + 1)).verdict is not Verdict.PROVED
    assert report(table, lambda first: formula(0)).verdict is not Verdict.PROVED
    assert report(table, lambda first: formula((first + 2) % N)).verdict is not Verdict.PROVED


def programs(name: str) -> tuple[Module, Module]:
    table, formula = TABLES[name]
    first = jax.jit(lambda x: x * table.astype(np.float32)).trace(X).lower(lowering_platforms=("cpu",))
    second = jax.jit(on_devices(lambda x, first: x * formula(first))).trace(X).lower(lowering_platforms=("cpu",))
    return load(first.as_text()), load(second.as_text())


@pytest.mark.parametrize("name", TABLES)
def test_the_program_with_a_table_computes_nearly_the_same(name: str) -> None:
    first, second = programs(name)
    found = parts(first, second, (1, 1), Session())
    assert found
    given = [of_dense(np.random.default_rng(SEED).standard_normal(X.shape))]
    results = [evaluate(module, given, 1).results[0] for module in (second, with_tables(second, found))]
    assert results[0] is not None and results[1] is not None
    np.testing.assert_allclose(dense(results[1], 0), dense(results[0], 0), rtol=1e-4, atol=1e-5)
    assert not np.array_equal(dense(results[1], 0), dense(results[0], 0))


THIRDS = (np.arange(1, N + 1)[:, None] / 3).astype(np.float32)
COSINES, SINES = (f(2 * np.pi * POSITIONS * NUMBERS / N).astype(np.float32) for f in (np.cos, np.sin))


def angles(first: Any) -> jax.Array:
    return 2 * jnp.pi * rows(first)[:, None] * jnp.arange(D) / N


NEAR_ONE = np.cos(1e-4 * (POSITIONS + NUMBERS)).astype(np.float32)


def near_one(first: Any) -> jax.Array:
    return jnp.cos(1e-4 * (rows(first)[:, None] + jnp.arange(D)))


def thirds(first: Any) -> jax.Array:
    return (rows(first) + 1.0)[:, None] / 3


AMPLIFIED: dict[str, tuple[Function, Function]] = {
    "what a rounding leaves of a difference": (
        lambda x: (x * THIRDS * 3 - x * np.arange(1, N + 1)[:, None]) * 1e9,
        lambda x, first: (x * thirds(first) * 3 - x * (rows(first) + 1)[:, None]) * 1e9,
    ),
    "of a sum of squares": (
        lambda x: (x * COSINES * COSINES + x * SINES * SINES - x) * 1e9,
        lambda x, first: (x * jnp.cos(angles(first)) ** 2 + x * jnp.sin(angles(first)) ** 2 - x) * 1e9,
    ),
    "of constants alone": (
        lambda x: x * ((COSINES * COSINES + SINES * SINES - 1) * np.float32(1e9)),
        lambda x, first: x * ((jnp.cos(angles(first)) ** 2 + jnp.sin(angles(first)) ** 2 - 1) * 1e9),
    ),
    "what is left of functions, beyond the inputs that are drawn": (
        lambda x: (jnp.maximum(x * NEAR_ONE, 9) - jnp.maximum(x, 9)) * 1e6,
        lambda x, first: (jnp.maximum(x * near_one(first), 9) - jnp.maximum(x, 9)) * 1e6,
    ),
    "a step": (
        lambda x: jnp.floor(x * THIRDS * 3),
        lambda x, first: jnp.floor(x * thirds(first) * 3),
    ),
}


@pytest.mark.parametrize("name", AMPLIFIED)
def test_what_amplifies_a_rounding(name: str) -> None:
    whole, local = AMPLIFIED[name]
    assert hlo_verify.check(whole, on_devices(local), X, refute=False).verdict is not Verdict.PROVED


@pytest.mark.parametrize("is_off", [False, True])
@pytest.mark.parametrize("devices", [8, 64])
def test_a_table_is_looked_through_for_few_devices(devices: int, is_off: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has parts for all of them: looked through for each, the time grew with the square of their number."""
    looked: list[int] = []
    places = rounded_tables._places
    monkeypatch.setattr(rounded_tables, "_places", lambda table, values: looked.append(1) or places(table, values))
    numbers = np.random.default_rng(SEED).standard_normal((4 * devices, 3))
    table = around(numbers, np.full(numbers.shape, 1e-9))
    first = 4 * np.arange(devices) + int(is_off)
    rows = [interval(numbers[n : n + 4], numbers[n : n + 4]) for n in first if n + 4 <= len(numbers)]
    found = rounded_tables._offsets(table, np.stack(rows))
    assert found is not None
    np.testing.assert_array_equal(found[0], [(n, 0) for n in first[: len(rows)]])
    assert len(looked) <= 3


@pytest.mark.parametrize("seed", range(20))
def test_places_are_where_the_numbers_of_every_device_are(seed: int) -> None:
    """Where there are several, in any order, or none for one of them."""
    generator = np.random.default_rng([SEED, seed])
    numbers = generator.integers(0, 3, (12, 1)).astype(float)
    table = interval(numbers, numbers)
    starts = generator.integers(0, 11, 5)
    rows = np.stack([numbers[n : n + 2] for n in starts])
    if seed % 4 == 0:
        rows[int(generator.integers(5))] += 5
    found = rounded_tables._offsets(table, interval(rows, rows))
    is_there = all(any(np.array_equal(numbers[n : n + 2], row) for n in range(11)) for row in rows)
    assert (found is not None) == is_there
    if found is not None:
        offsets, is_exact = np.broadcast_to(found[0], (5, 2)), found[1]
        assert is_exact
        for row, (n, _) in zip(rows, offsets.tolist(), strict=True):
            np.testing.assert_array_equal(numbers[n : n + 2], row)


def gated(x: jax.Array) -> jax.Array:
    """What is 0 for all inputs that are drawn."""
    return jnp.maximum(x - 100, 0.0)


OF_SINES: dict[str, Callable[[jax.Array, Any], jax.Array]] = {
    "a large multiple": lambda x, sines: jnp.tanh(x + gated(x) * sines * 1e8),
    "a sign": lambda x, sines: jnp.where(gated(x) * sines > 0, x, 0.0),
    "which is greatest": lambda x, sines: x + jnp.argmax(gated(x) * sines, 1)[:, None],
    "an inverse": lambda x, sines: x + 1 / jnp.where(x > 100, sines, 1.0),
    "the greater of it and a number": lambda x, sines: x + 1 / (jnp.maximum(gated(x) * sines, 0.0) + 1e-9),
}
NO_MORE = {
    "a small multiple": lambda x, sines: jnp.tanh(x + gated(x) * sines * 8),
    "beside something else": lambda x, sines: jnp.where(gated(x) * sines > x - 1, x, 0.0),
    "the greater": lambda x, sines: jnp.exp(-jnp.maximum(gated(x) * sines, 0.0)),
}


@pytest.mark.parametrize("name", [*OF_SINES, *NO_MORE])
def test_elements_that_are_nearly_0(name: str) -> None:
    """Numpy has 1.2e-16 as the sine of pi, and the formula -8.7e-8: more than a rounding comes of what hangs on that
    element alone, and numbers that are drawn do not show it."""
    function = {**OF_SINES, **NO_MORE}[name]
    local = on_devices(lambda x, first: function(x, jnp.sin(angles(first))))
    found = hlo_verify.check(lambda x: function(x, SINES), local, X, refute=False)
    assert (found.verdict is Verdict.PROVED) == (name in NO_MORE), found
