"""What is written to the k best of a row, and read there again, where experts and rows are split in different ways."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict

MESH = AbstractMesh((2, 4), ("x", "d"), axis_types=(AxisType.Auto,) * 2)
BATCH, TOKENS, EXPERTS, BEST = 4, 6, 8, 3
GIVEN = jax.ShapeDtypeStruct((BATCH, TOKENS, EXPERTS), jnp.float32)


def slots(split: P, write: str, moved: int = 0) -> Callable[[jax.Array], jax.Array]:
    """The number of each of a token's best experts, by way of a table of all experts, which is split so."""

    def program(x: jax.Array) -> jax.Array:
        best = lax.top_k(x, BEST)[1]
        b, t = jnp.arange(BATCH)[:, None, None], jnp.arange(TOKENS)[None, :, None]
        numbers = 1 + jnp.arange(BATCH * TOKENS * BEST).reshape(best.shape)
        table = lax.with_sharding_constraint(jnp.zeros(x.shape, jnp.int32), NamedSharding(MESH, split))
        table = getattr(table.at[b, t, best], write)(numbers)
        table = lax.with_sharding_constraint(table, NamedSharding(MESH, split))
        found = jnp.take_along_axis(table, jnp.roll(best, moved, -1), -1)
        return lax.with_sharding_constraint(found, NamedSharding(MESH, P("x")))

    return program


SPLIT_ALONG_EXPERTS, SPLIT_ALONG_BOTH = P(None, None, ("x", "d")), P("x", None, "d")


@pytest.mark.parametrize(
    ("split", "write"), [(SPLIT_ALONG_EXPERTS, "add"), (SPLIT_ALONG_EXPERTS, "set"), (SPLIT_ALONG_BOTH, "add")], ids=str
)
def test_the_slots_of_the_best(split: P, write: str) -> None:
    """Each device adds what it holds of a table: the sum, too, is over places in order that are compared."""
    given = NamedSharding(MESH, P("x"))
    right = jax.jit(slots(split, write), in_shardings=given)
    assert hlo_verify.check(right, GIVEN, refute=False).verdict is Verdict.PROVED
    wrong = jax.jit(slots(split, write, moved=1), in_shardings=given)
    assert hlo_verify.check(slots(split, write), wrong, GIVEN, refute=False).verdict is Verdict.UNKNOWN
