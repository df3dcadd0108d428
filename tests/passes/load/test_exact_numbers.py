"""Which results of single numbers floats have as they are."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.load.exact_numbers import exactly
from hlo_verify.program.ir import Op, TensorType
from tests.support.places import DEVICES, MESH

EPSILON = float(jnp.finfo(jnp.float32).eps)


def given(name: str, a: float, b: float, dtype: str = "f32") -> Any:
    kind = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}[dtype]
    return exactly(Op(name, ("%a", "%b"), ("%c",), (TensorType((), dtype),), {}), {"%a": kind(a), "%b": kind(b)}.get)


@pytest.mark.parametrize(
    ("name", "a", "b", "dtype", "result"),
    [
        ("multiply", 60, EPSILON, "f32", 60 * EPSILON),
        ("multiply", 0.1, 3, "f32", None),
        ("multiply", -0.1, 4, "f32", 4 * -float(np.float32(0.1))),
        ("add", 1, EPSILON, "f32", 1 + EPSILON),
        ("add", 1, EPSILON / 2, "f32", None),
        ("add", 256, 1, "bf16", None),
        ("add", 256, 2, "bf16", 258),
        ("subtract", 3, 3, "f32", None),
        ("multiply", 0, 3, "f32", None),
        ("divide", 3, 8, "f32", 0.375),
        ("divide", 41, 41, "f32", None),
        ("divide", 6, 3, "f32", None),
        ("multiply", 2.0**-100, 2.0**-40, "f32", None),
        ("multiply", 2.0**-130, 2.0**10, "f32", None),
        ("multiply", 2.0**100, 2.0**40, "f32", None),
        ("multiply", 300, 300, "f16", None),
        ("multiply", float("inf"), 2, "f32", None),
        ("multiply", float("nan"), 2, "f32", None),
        ("divide", 2, 0, "f32", None),
        ("power", 2, 3, "f32", None),
    ],
)
def test_what_is_exact(name: str, a: float, b: float, dtype: str, result: float | None) -> None:
    assert given(name, a, b, dtype) == result


def test_what_is_exact_is_what_floats_have(seed: int) -> None:
    """Differential: against exact rationals, and floats of the machine."""
    draw = np.random.default_rng(seed)
    compute: dict[str, Callable[[Any, Any], Any]] = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}
    seen = 0
    for _ in range(2000):
        a, b = (np.float32(draw.integers(-4000, 4000) * 2.0 ** draw.integers(-12, 12)) for _ in range(2))
        for name, function in compute.items():
            found, exact = given(name, a, b), function(Fraction(float(a)), Fraction(float(b)))
            seen += found is not None
            if found is not None:
                assert Fraction(float(found)) == exact and function(a, b) == found
            elif exact and a and b:
                assert Fraction(float(function(a, b))) != exact
    assert seen > 1000


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        (np.float32(60 * EPSILON), Verdict.PROVED),
        (np.float32(61 * EPSILON), Verdict.UNKNOWN),
        (np.nextafter(np.float32(60 * EPSILON), np.float32(1)), Verdict.UNKNOWN),
    ],
)
def test_a_threshold_that_is_folded(cut: np.float32, expected: Verdict) -> None:
    """As `jnp.linalg.pinv` has it: values that are none where a flag says so are compared with a multiple of one."""

    def threshold(x: jax.Array, flags: jax.Array, factor: jax.Array) -> jax.Array:
        values = jnp.where(flags[:, None] == 0, x, jnp.nan)
        return jnp.where(values > values[:, :1] * factor, x, 7.0)

    def whole(x: jax.Array, flags: jax.Array) -> jax.Array:
        return threshold(x, flags, lax.mul(jnp.float32(60.0), jnp.float32(EPSILON)))

    def own(x: jax.Array, flags: jax.Array) -> jax.Array:
        return threshold(x, flags, cut)

    mapped = jax.shard_map(own, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    shapes = jax.ShapeDtypeStruct((2 * DEVICES, 6), jnp.float32), jax.ShapeDtypeStruct((2 * DEVICES,), jnp.int32)
    assert hlo_verify.check(jax.jit(whole), mapped, *shapes, refute=False).verdict is expected
