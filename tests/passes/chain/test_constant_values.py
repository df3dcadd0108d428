"""Exponentials of negative numbers, as discounts and decays are written, in programs and beforehand."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.chain.constant_values import function_of, number_of
from hlo_verify.session import Session
from tests.passes.chain.test_masking_numbers import MESH, P


@pytest.mark.parametrize("name", ["exponential", "sqrt", "rsqrt", "log"])
@pytest.mark.parametrize("value", [-0.05, -3.0, -50.0, -100.0, -1e30, -0.0, 1e30])
def test_functions_of_numbers(name: str, value: float) -> None:
    """Of negative numbers the exponential alone, where it is a normal number; and of none where it is infinite."""
    with Session().on():
        operand = number_of("f32", np.float32(value))
        assert operand is not None
        found = function_of(name, operand)
        is_there = -80 < value < 0 if name == "exponential" else value > 0
        assert (found is not None) is is_there
        if found is not None and name == "exponential":
            assert math.isclose(found.exact, math.exp(float(np.float32(value))), rel_tol=1e-14)


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize(
    ("rate", "off", "is_one"),
    [(0.05, 0, True), (0.7, 0, True), (3.0, 0, True), (0.05, 9, False), (0.05, -9, False), (0.05, 2**12, False)],
)
def test_a_discount_that_is_computed_beforehand(rate: float, off: int, is_one: bool) -> None:
    """By so many units in its last place beside it."""
    discount = (np.float32(math.exp(-rate)).view(np.int32) + np.int32(off)).view(np.float32)
    local = jax.shard_map(lambda x: discount * x, mesh=MESH, in_specs=P("d"), out_specs=P("d"))
    x = jax.ShapeDtypeStruct((8,), jnp.float32)
    found = hlo_verify.check(lambda x: jnp.exp(-rate) * x, local, x, refute=False)
    assert (found.verdict is Verdict.PROVED) is is_one, found
