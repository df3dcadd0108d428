"""Constants that a loop rounds in each of its turns, and numbers of any size beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.limits import Limits


def by_people(function: Callable[..., Any], other: Callable[..., Any], **options: Any) -> Verdict:
    """What is said of two functions of eight numbers and a count, the second one on four devices."""
    kinds = jax.ShapeDtypeStruct((8,), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32)
    mesh = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
    local = jax.shard_map(other, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
    traced = (jax.jit(each).trace(*kinds) for each in (function, local))
    return hlo_verify.verify(*traced, devices=4, refute=False, **options).verdict


@pytest.mark.parametrize("most", [7, 8])
def test_how_often_a_constant_may_be_rounded_in_a_loop_is_a_limit(most: int) -> None:
    """Each turn rounds what the last one left: 100,000 of them are 1.8 % off."""
    loops = [lambda x, n, c=c: jax.lax.fori_loop(0, 8, lambda _, v: v * c(2.0), x) for c in (jnp.sqrt, np.sqrt)]
    assert by_people(*loops, limits=Limits(rounded_turns=most)) is (Verdict.PROVED if most == 8 else Verdict.UNKNOWN)


TURNS: dict[str, Callable[..., Any]] = {
    "an argument": lambda step, x, n: jax.lax.fori_loop(0, n, lambda _, v: step(v), x),
    "an outer counter": lambda step, x, n: jax.lax.fori_loop(
        0, 10, lambda k, u: jax.lax.fori_loop(0, k, lambda _, v: step(v), u), x
    ),
    "all of nested ones": lambda step, x, n: jax.lax.fori_loop(
        0, 8, lambda _, u: jax.lax.fori_loop(0, 8, lambda _, v: step(v), u), x
    ),
}


@pytest.mark.parametrize("turns", TURNS.values(), ids=TURNS)
def test_who_knows_how_often_a_constant_is_rounded_in_a_loop(turns: Callable[..., Any]) -> None:
    """The literal is three units off, and a multiple of it that is left as it is leaves all of that."""
    literal = np.float32(0.95122963)
    functions = [
        lambda x, n, c=c: turns(lambda v: v * c() * np.float32(1.0512711), x, n)
        for c in (lambda: literal, lambda: jnp.exp(np.float32(-0.05)))
    ]
    assert by_people(*functions, limits=Limits(rounded_turns=60)) is Verdict.UNKNOWN


@pytest.mark.parametrize("size", [1e38, 1e-38])
def test_numbers_may_be_larger_than_floats(size: float) -> None:
    """Powers of what is large, in functions that differ by numbers alone, were an OverflowError."""

    def of(x: jax.Array) -> jax.Array:
        return jnp.maximum((size * x) ** 9, 1.0) - jnp.maximum(x, 1.0)

    assert by_people(lambda x, n: of(0.1 * x + 0.2 * x), lambda x, n: of(0.3 * x)) is Verdict.PROVED
