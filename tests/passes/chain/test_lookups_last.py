"""Functions of what is looked up in tables are lookups in tables of functions, if it is at the same places."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.evaluate.blocks import dense, of_dense
from hlo_verify.evaluate.interpret import evaluate
from hlo_verify.passes.chain.closed_values import closed_values
from hlo_verify.passes.chain.lookups_last import with_lookups_last
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import operations
from hlo_verify.program.op_families import LOOKUPS

MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
N, B, D = 10, 8, 4
KEPT = np.cumprod(1 - np.linspace(0.01, 0.3, N)).astype(np.float32)
RATIO, NOISE = KEPT / (1 - KEPT), np.sqrt(1 - KEPT)
X, T = jax.ShapeDtypeStruct((B, D), jnp.float32), jax.ShapeDtypeStruct((B,), jnp.int32)
Function = Callable[..., Any]


def table(numbers: np.ndarray, at: jax.Array) -> jax.Array:
    return jnp.asarray(numbers)[at]


def noised(x: jax.Array, t: jax.Array) -> jax.Array:
    a = table(KEPT, t)[:, None]
    return jnp.sqrt(a) * x + jnp.sqrt(1 - a)


def weighed(x: jax.Array, t: jax.Array) -> jax.Array:
    a = table(KEPT, t)
    ratio = a / (1 - a)
    return x * (jnp.minimum(ratio, 5.0) / ratio)[:, None]


def by_rank(x: jax.Array, t: jax.Array) -> jax.Array:
    return x / jnp.log2(jnp.arange(D) + 2.0)


def noised_by(kept: np.ndarray, noise: np.ndarray, shift: int = 0) -> Function:
    return lambda x, t: table(np.sqrt(kept), t)[:, None] * x + table(noise, t + shift)[:, None]


def weighed_by(most: float) -> Function:
    return lambda x, t: x * jnp.minimum(1.0, most / table(RATIO, t))[:, None]


DISCOUNTS = np.log(2.0) / np.log(np.arange(D) + 2.0)
CASES: dict[str, tuple[Function, Function, bool]] = {
    "roots": (noised, noised_by(KEPT, NOISE), True),
    "other roots": (noised, noised_by(KEPT, np.sqrt(KEPT)), False),
    "one later": (noised, noised_by(KEPT, NOISE, 1), False),
    "a little off": (noised, noised_by(KEPT, NOISE * np.float32(1.00001)), False),
    "weights": (weighed, weighed_by(5.0), True),
    "another bound": (weighed, weighed_by(4.0), False),
    "divided": (by_rank, lambda x, t: x * DISCOUNTS.astype(np.float32), True),
    "divided twice": (by_rank, lambda x, t: x / DISCOUNTS.astype(np.float32), False),
}


@pytest.mark.parametrize("name", CASES)
def test_one_program_computes_what_the_other_looks_up(name: str) -> None:
    whole, part, is_same = CASES[name]
    split = jax.shard_map(part, mesh=MESH, in_specs=(P("x"), P("x")), out_specs=P("x"), check_vma=False)
    report = hlo_verify.check(whole, split, X, T, assume={"t": (0, N - 1)}, refute=False)
    assert (report.verdict is Verdict.PROVED) is is_same


def test_what_is_looked_up_at_other_places_stays_apart() -> None:
    def ratio(t: jax.Array, s: jax.Array) -> jax.Array:
        return table(KEPT, t) / table(KEPT, s)

    module = load(jax.jit(ratio).lower(T, T).as_text())
    assert with_lookups_last(module) is module


UNARY: list[Function] = [jnp.sqrt, jnp.tanh, lambda a: -a, lambda a: 2 - a, lambda a: 1 / (1 + a), lambda a: a * a]
BINARY: list[Function] = [jnp.add, jnp.multiply, jnp.minimum, lambda a, b: a / (b + 3), lambda a, b: a - 0.25 * b]


def drawn(choose: random.Random) -> Function:
    """A function of elements of two tables, at two places, or at one that a slice begins at, and of an argument."""
    first, second = KEPT, NOISE
    steps = [(choose.randrange(6), choose.randrange(5), choose.random()) for _ in range(5)]
    is_sliced, moved = choose.random() < 0.3, choose.random() < 0.5

    def look(numbers: np.ndarray, at: jax.Array) -> jax.Array:
        found = lax.dynamic_slice(jnp.asarray(numbers), (at[0],), (B,)) if is_sliced else table(numbers, at)
        return found[:, None] if moved else found

    def function(x: jax.Array, t: jax.Array, s: jax.Array) -> jax.Array:
        values = [look(first, t), look(second, t), look(first, s), x[:, :1] if moved else x[:, 0]]
        for unary, binary, at in steps:
            one = UNARY[unary](values[int(at * len(values))])
            values.append(BINARY[binary](one, values[int(at * 97) % len(values)]))
        return sum(values[1:], start=values[0]) / jnp.asarray(KEPT[:B]).reshape(values[0].shape)

    return function


@pytest.mark.parametrize("seed", range(10))
def test_it_computes_the_same(seed: int) -> None:
    choose, generator = random.Random(seed), np.random.default_rng(seed)
    module = load(jax.jit(drawn(choose)).lower(X, T, T).as_text())
    read = with_lookups_last(module)
    given = [
        of_dense(np.abs(generator.standard_normal(X.shape)) + 0.1),
        *(of_dense(generator.integers(-2, N + 2, (B,))) for _ in range(2)),
    ]
    results = [evaluate(each, given, 1).results[0] for each in (module, read)]
    assert results[0] is not None and results[1] is not None
    np.testing.assert_allclose(dense(results[1], 0), dense(results[0], 0), rtol=1e-9)
    assert read is not module
    closed = closed_values(read.main)
    tables = [closed[op.operands[0]] for op in operations(read.main) if op.name in LOOKUPS and op.operands[0] in closed]
    assert any(each.is_computed for each in tables) or seed not in (0, 1)
