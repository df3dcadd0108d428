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
