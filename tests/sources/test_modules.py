"""Pairs of traced functions."""

from __future__ import annotations

from typing import Any

import jax
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.diagnostics.errors import InputError

MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
ROWS = jax.ShapeDtypeStruct((8, 3), "float32")


def traced(function: Any, count: int = 2) -> Any:
    return jax.jit(function).trace(*[ROWS] * count)


def mapped(function: Any) -> Any:
    return jax.shard_map(function, mesh=MESH, in_specs=P("x"), out_specs=P("x"))


def test_arguments_that_one_function_does_not_use() -> None:
    """`jit` leaves them out of the module, here the first of one and the second of the other."""
    second = mapped(lambda x, y: y + lax.psum(x, "x") * 0)
    assert hlo_verify.verify(traced(lambda x, y: y), traced(second), devices=4).verdict is Verdict.PROVED
    assert hlo_verify.verify(traced(lambda x, y: x), traced(second), devices=4).verdict is Verdict.REFUTED


def test_functions_of_other_arguments_are_no_pair() -> None:
    with pytest.raises(InputError, match="not a pair"):
        hlo_verify.verify(traced(lambda x, y: x), traced(mapped(lambda x: x), 1), devices=4)
