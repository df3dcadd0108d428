"""Which operations on numbers that hang on no argument round them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import AS_FLOATS, operations
from tests.support.places import DEVICES, MESH

SIZE = 16


@pytest.mark.parametrize(
    ("made", "rounds"),
    [
        (lambda k: (k > 3).astype(jnp.bfloat16), False),
        (lambda k: k.astype(jnp.int8).astype(jnp.bfloat16), False),
        (lambda k: k.astype(jnp.int16).astype(jnp.bfloat16), False),
        (lambda k: (k + 300).astype(jnp.int16).astype(jnp.bfloat16), True),
        (lambda k: k.astype(jnp.bfloat16), False),
        (lambda k: (k * 20).astype(jnp.bfloat16), True),
        (lambda k: k.astype(jnp.float32), False),
        (lambda k: (k + (1 << 25)).astype(jnp.float32), True),
        (lambda k: (k * 4096 * 8192).astype(jnp.float32), True),
        (lambda k: jnp.maximum(-k.astype(jnp.float32), 2.0), False),
        (lambda k: lax.reduce_precision(k.astype(jnp.float32), 8, 3), True),
        (lambda k: k.astype(jnp.float32).astype(jnp.complex64).real, False),
    ],
)
def test_what_rounds_where_it_is_not_evaluated(made: Callable[[jax.Array], jax.Array], rounds: bool) -> None:
    """A loop counts, so that intervals do not say what is exact."""

    def turn(t: int, x: jax.Array) -> jax.Array:
        return x + jnp.floor(made(jnp.arange(SIZE) + t)).astype(jnp.float32)

    module = load(jax.jit(lambda x: lax.fori_loop(0, 3, turn, x)).lower(jnp.zeros(SIZE)).as_text())
    assert any(AS_FLOATS in op.attributes for op in operations(module.main)) == rounds


SHARES = np.array([0.1, 0.7], np.float32)
ROWS = jax.ShapeDtypeStruct((2 * DEVICES, 6), jnp.float32)


@pytest.mark.parametrize(
    ("whole", "local", "expected"),
    [
        (SHARES, SHARES, Verdict.PROVED),
        (SHARES, SHARES[::-1], Verdict.REFUTED),
        (SHARES, SHARES + np.float32(0.2), Verdict.REFUTED),
        (np.float32([0.6, 0.2]), np.float32([0.6, 0.2]), Verdict.PROVED),
        (np.float32([0.6, 0.2]), np.float32([0.61, 0.21]), Verdict.UNKNOWN),
    ],
    ids=["the same", "exchanged", "the next", "at an edge", "beyond an edge"],
)
def test_places_by_tables_that_a_region_closes_over(whole: np.ndarray, local: np.ndarray, expected: Verdict) -> None:
    """JAX hands them to the region; they are evaluated there as anywhere else."""

    def below(x: jax.Array, shares: np.ndarray) -> jax.Array:
        return jnp.sort(x)[:, jnp.floor(jnp.asarray(shares) * 5.0).astype(jnp.int32)]

    mapped = jax.shard_map(lambda x: below(x, local), mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    assert hlo_verify.check(lambda x: below(x, whole), mapped, ROWS).verdict is expected


@pytest.mark.parametrize("row", [[[3.0, 1.25]], [[3.0]], [3.0, 1.25], [[]]])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_rows_of_constants_are_as_many_numbers_as_they_have(row: list[float], dtype: str) -> None:
    """A row of one dimension of size 1 is no single number: these were errors (TypeError, ValueError)."""
    rows = np.array(row, jnp.dtype(dtype))

    def scaled(x: jax.Array) -> jax.Array:
        factor = jnp.asarray(rows) * lax.full(rows.shape, 2, rows.dtype)
        beside = jnp.concatenate([x.astype(rows.dtype), jnp.zeros((*x.shape[:-1], 1), rows.dtype)], -1)
        return jnp.concatenate([x * factor, beside * jnp.float32(3.0).astype(rows.dtype)], -1)

    mapped = jax.shard_map(scaled, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    shape = jax.ShapeDtypeStruct((2 * DEVICES, rows.shape[-1]), rows.dtype)
    assert hlo_verify.check(jax.jit(scaled), mapped, shape).verdict is Verdict.PROVED


@pytest.mark.parametrize(("row", "rounds"), [([[0.5, 0.6]], True), ([[0.6]], True), ([[0.5]], False)])
def test_a_row_of_which_one_product_is_rounded(row: list[list[float]], rounds: bool) -> None:
    def cut(x: jax.Array) -> jax.Array:
        return x + jnp.floor(jnp.asarray(np.float32(row)) * lax.full((1, len(row[0])), 5.0, jnp.float32))

    module = load(jax.jit(cut).lower(jnp.zeros((2, len(row[0])))).as_text())
    assert any(AS_FLOATS in op.attributes for op in operations(module.main)) == rounds
