"""Regions in regions: what stands for any value of one is not what stands for any value of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from hlo_verify import Verdict, verify

X = jax.ShapeDtypeStruct((4,), jnp.float32)
Count = Callable[[Any], Any]


def _up_to(i: Any) -> Any:
    return lax.while_loop(lambda j: j < i, lambda j: j + 1, jnp.int32(0))


CONDITIONS: dict[str, Count] = {
    "as many as turns": lambda i: i + _up_to(i),
    "as many more": lambda i: _up_to(i) * 2 + 1,
    "two of them": lambda i: _up_to(i) + _up_to(_up_to(i)),
}
"""What the condition of a loop counts, with a loop of its own that goes round as often as the outer one did."""


def _turned(count: Count) -> Callable[[Any], Any]:
    def turned(x: Any) -> Any:
        start = (jnp.int32(0), x)
        return lax.while_loop(lambda s: count(s[0]) < 5, lambda s: (s[0] + 1, jnp.sin(s[1])), start)[1]

    return turned


def _often(times: int) -> Callable[[Any], Any]:
    return lambda x: lax.fori_loop(jnp.int32(0), jnp.int32(times), lambda _, y: jnp.sin(y), x)


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_loop_in_a_condition_counts_turns_of_its_own(name: str) -> None:
    turned = _turned(CONDITIONS[name])
    x = np.full(4, 0.5, np.float32)
    right = [n for n in range(7) if np.array_equal(_often(n)(x), turned(x))]
    assert len(right) == 1
    for n in {*range(7)} - {*right}:
        pair = [jax.jit(each).trace(X) for each in (_often(n), turned)]
        assert verify(*pair, devices=1, refute=False).verdict is Verdict.UNKNOWN, n
        assert verify(*reversed(pair), devices=1, refute=False).verdict is Verdict.UNKNOWN, n


INNER = """
   %one = stablehlo.reshape %p : (tensor<f32>) -> tensor<1xf32>
   %two = stablehlo.reshape %q : (tensor<f32>) -> tensor<1xf32>
   %both = stablehlo.concatenate %one, %two, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
   %i = "stablehlo.reduce"(%both, %q) ({
     ^bb1(%r: tensor<f32>, %s: tensor<f32>):
      %m = stablehlo.multiply %s, TIMES : tensor<f32>
      %t = stablehlo.add %r, %m : tensor<f32>
      stablehlo.return %t : tensor<f32>
   }) {dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
"""

OUTER = {
    "reduce": (
        '"stablehlo.reduce"(%x, %z)',
        "stablehlo.return %i : tensor<f32>",
        "{dimensions = array<i64: 1>} : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>",
    ),
    "sort": (
        '"stablehlo.sort"(%x)',
        "%c = stablehlo.compare LT, %i, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "stablehlo.return %c : tensor<i1>",
        "{dimension = 1 : i64, is_stable = true} : (tensor<4x3xf32>) -> tensor<4x3xf32>",
    ),
    "scatter": (
        '"stablehlo.scatter"(%x, %at, %u)',
        "stablehlo.return %i : tensor<f32>",
        "{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], "
        "scatter_dims_to_operand_dims = [1], index_vector_dim = 0>} : "
        "(tensor<4x3xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<4x3xf32>",
    ),
}


def _module(outer: str, times: str) -> str:
    """An operation with a region in which another one has a region that refers to the first one's arguments, or not."""
    begins, ends, types = OUTER[outer]
    result, inner = types.rpartition("-> ")[2], INNER.replace("TIMES", times)
    return (
        f"module @m {{ func.func public @main(%x: tensor<4x3xf32>, %u: tensor<4xf32>) -> {result} {{\n"
        "%z = stablehlo.constant dense<0.5> : tensor<f32>\n%at = stablehlo.constant dense<1> : tensor<1xi32>\n"
        f"%y = {begins} ({{\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n{inner}{ends}\n}}) {types}\n"
        f"return %y : {result} }} }}"
    )


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize(("around", "own"), [("%p", "%r"), ("%q", "%s")])
def test_arguments_of_a_region_around_are_no_arguments_of_this_one(outer: str, around: str, own: str) -> None:
    pair = [_module(outer, times) for times in (around, own)]
    assert verify(*pair, devices=1, refute=False).verdict is Verdict.UNKNOWN
    assert verify(pair[1], pair[1], devices=1, refute=False).verdict is Verdict.PROVED
