"""A search in a sorted table that is split over devices: proved where it is a count, and unknown where it is a loop."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from hlo_verify import Report, Verdict, check
from hlo_verify.diagnostics import Solver
from tests.support.lowering import floats

MESH = AbstractMesh((4,), ("d",))
TABLE, QUERIES = floats((16,), (8,))
COUNTS = {"method": "compare_all"}


def split_table(reduce: Any, **options: str) -> Report:
    """A search in each device's part of the table, and what they found brought together."""

    @partial(jax.shard_map, mesh=MESH, in_specs=(P("d"), P()), out_specs=P(), check_vma=False)
    def local(table: Any, queries: Any) -> Any:
        return reduce(jnp.searchsorted(table, queries, **options), "d")

    def whole(table: Any, queries: Any) -> Any:
        return jnp.searchsorted(table, queries, **options)

    return check(whole, local, TABLE, QUERIES, assume={"table": "sorted"}, refute=False)


def test_numbers_of_lesser_elements_add_up() -> None:
    assert split_table(lax.psum, **COUNTS).verdict is Verdict.PROVED


@pytest.mark.parametrize("reduce", [lax.pmax, lax.pmin, lambda n, axis: n], ids=["greatest", "least", "none"])
def test_they_are_not_brought_together_otherwise(reduce: Any) -> None:
    assert split_table(reduce, **COUNTS).verdict is Verdict.UNKNOWN


def test_a_binary_search_is_unknown_and_its_code_says_what_to_write() -> None:
    (result,) = split_table(lax.psum).results
    assert result.code is Solver.NO_PROOF and "compare_all" in str(Solver.NO_PROOF.explanation)


@pytest.mark.parametrize("method", ["scan", "compare_all"])
def test_queries_may_be_split_whatever_the_search_is(method: str) -> None:
    search = partial(jnp.searchsorted, method=method)
    local = jax.shard_map(search, mesh=MESH, in_specs=(P(), P("d")), out_specs=P("d"), check_vma=False)
    assert check(search, local, TABLE, QUERIES, refute=False).verdict is Verdict.PROVED
