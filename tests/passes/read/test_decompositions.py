"""Functions that HLO has no operation for are read as what StableHLO writes them out as."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax, random
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.load.load import load
from hlo_verify.passes.read.decompositions import lacking
from hlo_verify.program.ir import operations
from tests.support.lowering import Placed, floats

Program = Callable[..., Any]

KEPT = {"lgamma"} if jax.__version_info__ >= (0, 11) else set()
"""What newer versions of HLO have an operation for."""

PLACED = Placed(AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,)), P("x"), P("x"), floats((8, 6)))

FUNCTIONS: dict[str, Program] = {
    "erf_inv": lax.erf_inv,
    "erf_inv in half precision": lambda x: lax.erf_inv(x.astype(jnp.bfloat16)).astype(jnp.float32),
    "lgamma": lax.lgamma,
    "erfc": lax.erfc,
    "next_after": lambda x: jnp.nextafter(x, x + 1),
    "normal": lambda x: x * random.normal(random.key(3), x.shape),
    "truncated normal": lambda x: x * random.truncated_normal(random.key(3), -1.0, 1.0, x.shape),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_xla_partitions(name: str) -> None:
    report = hlo_verify.verify(PLACED.lowered(FUNCTIONS[name]), refute=False)
    assert report.verdict is Verdict.PROVED
    assert any("is what StableHLO writes it out as" in said for said in report.assumptions) == (name not in KEPT)


def test_others_are_left_alone() -> None:
    whole = load(PLACED.lowered(lambda x: lax.erf_inv(x) + lax.erf(x)))
    written = load(PLACED.lowered(lambda x: lax.erf_inv(x) + lax.erf(x)), written_out={"chlo.erf_inv"})
    assert lacking(whole, written) == {"chlo.erf_inv"}
    assert lacking(whole, whole) == lacking(written, whole) == frozenset()
    assert {"chlo.erf"} == {op.name for op in operations(written.main) if op.name.startswith("chlo.")}
    assert len(written.notes) == 1 and not whole.notes


def test_where_both_have_it_it_is_a_function() -> None:
    mapped = PLACED.pair(lambda x: jax.lax.erf_inv(x), lambda x: jax.lax.erf_inv(x))
    report = hlo_verify.verify(*mapped, refute=False)
    assert report.verdict is Verdict.PROVED
    assert not any("StableHLO" in said for said in report.assumptions)
