"""Integers whose bits are read as floats, against what numpy reads."""

from __future__ import annotations

import random
from collections.abc import Callable

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.index import expr
from hlo_verify.session import Session
from hlo_verify.terms import algebra, float_bits
from hlo_verify.terms.functions import typed
from hlo_verify.terms.laws import apply
from hlo_verify.terms.signs import NEGATIVE, POSITIVE, ZERO
from hlo_verify.terms.term import Apply

MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
TYPES = {
    "f16": (np.uint16, np.float16),
    "bf16": (np.uint16, ml_dtypes.bfloat16),
    "f32": (np.uint32, np.float32),
    "f64": (np.uint64, np.float64),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("seed", range(12))
def test_bits_are_those_of_numbers(dtype: str, seed: int) -> None:
    """What is said of a range of integers holds for its ends and some between; not of one that has NaN in it."""
    choose = random.Random(seed)
    held, floats = TYPES[dtype]
    width = np.dtype(held).itemsize * 8
    infinite = int(np.array(np.inf, floats).view(held))
    first = choose.choice([0, 1, choose.randrange(infinite), infinite - 1, infinite, choose.randrange(1 << width)])
    size = choose.choice([1, 2, 100])
    some = np.array([(first + k) % (1 << width) for k in range(size)], held).view(floats)
    with Session().on():
        place = expr.shift(expr.of_var(expr.var("i", "", size)), first)
        made = apply(typed("bitcast_convert", (f"ui{width}",), dtype), (algebra.of_index(place),)).atom
        assert isinstance(made, Apply)
        is_number, sign = float_bits.is_number(made.function, made.args), float_bits.sign_of(made.function, made.args)
        assert (made.doubt == 0) is is_number
    assert is_number is bool(first + size - 1 < infinite)
    if is_number:
        assert np.isfinite(some).all()
        assert not (some < 0).any() or sign & NEGATIVE
        assert not (some == 0).any() or sign & ZERO
        assert sign & POSITIVE


def kept(rate: float, x: jax.Array, key: jax.Array) -> jax.Array:
    return jnp.where(jax.random.uniform(key, (8,)) < rate, x / rate, 0)


Step = Callable[[jax.Array, jax.Array], jax.Array]
DROPPED: dict[str, tuple[Step, bool]] = {
    "at least": (lambda u, x: jnp.where(u >= 0.25, 0, x * 4), True),
    "a mask of numbers": (lambda u, x: (1 - (u >= 0.25).astype(jnp.float32)) * x * 4, True),
    "by two bounds": (lambda u, x: jnp.where(u >= 0.5, 0, jnp.where(u < 0.25, x * 4, 0)), True),
    "the others": (lambda u, x: jnp.where(u >= 0.25, x * 4, 0), False),
    "another rate": (lambda u, x: jnp.where(u >= 0.5, 0, x * 4), False),
    "not scaled": (lambda u, x: jnp.where(u >= 0.25, 0, x), False),
}


@pytest.mark.parametrize("name", DROPPED)
def test_what_is_dropped_is_what_is_not_kept(name: str) -> None:
    step, is_right = DROPPED[name]

    def part(x: jax.Array, key: jax.Array) -> jax.Array:
        u = lax.dynamic_slice_in_dim(jax.random.uniform(key, (8,)), lax.axis_index("x") * 2, 2)
        return step(u, x)

    split = jax.shard_map(part, mesh=MESH, in_specs=(P("x"), P()), out_specs=P("x"), check_vma=False)
    shapes = jax.ShapeDtypeStruct((8,), jnp.float32), jax.ShapeDtypeStruct((2,), jnp.uint32)
    report = hlo_verify.check(lambda x, key: kept(0.25, x, key), split, *shapes, refute=False)
    assert (report.verdict is Verdict.PROVED) is is_right


def bits(x: jax.Array) -> jax.Array:
    return lax.bitcast_convert_type(x, jnp.float32)


@pytest.mark.parametrize("name", ["of all", "of numbers"])
def test_what_may_be_no_number_is_not_on_one_side_of_a_bound(name: str) -> None:
    """Of any integer the bits may be NaN, which is neither less than a bound nor at least that."""

    def split(distributed: Callable[[jax.Array], jax.Array]) -> Callable[[jax.Array], jax.Array]:
        return jax.shard_map(distributed, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False)

    lo, hi = (0, 1 << 31) if name == "of all" else (0x3F800000, 0x40000000)
    report = hlo_verify.check(
        lambda i: jnp.where(bits(i) < 1.5, 1.0, 0.0),
        split(lambda i: jnp.where(bits(i) >= 1.5, 0.0, 1.0)),
        jax.ShapeDtypeStruct((8,), jnp.int32),
        assume={"i": (lo, hi)},
    )
    assert report.verdict is not (Verdict.PROVED if name == "of all" else Verdict.REFUTED)
    assert (report.verdict is Verdict.PROVED) is (name == "of numbers")
