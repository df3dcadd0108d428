"""`check` of two functions under preconditions of the reference's arguments."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict, check

MESH = AbstractMesh((4,), ("i",))
ARGUMENTS = jax.ShapeDtypeStruct((64, 8), jnp.float32), jax.ShapeDtypeStruct((16,), jnp.int32)


def _looked_up(table: Any, tokens: Any) -> Any:
    return table.at[tokens].get(mode="fill", fill_value=0)


def test_a_function_that_xla_distributes_is_compared_under_what_is_said_of_the_reference() -> None:
    placed = NamedSharding(MESH, P("i")), NamedSharding(MESH, P())
    distributed = jax.jit(lambda e, t: e.at[t].get(mode="promise_in_bounds"), in_shardings=placed)
    report = check(_looked_up, distributed, *ARGUMENTS, assume={"tokens": (0, 64)})
    assert report.verdict is Verdict.PROVED
    assert report.preconditions == ("tokens in [0, 64)",)
    assert str(report).startswith("Given that tokens in [0, 64):\n")
    assert check(_looked_up, distributed, *ARGUMENTS, refute=False).verdict is Verdict.UNKNOWN
