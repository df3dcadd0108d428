"""An integer that is known is the one that a machine holds, also where a term says another one modulo 2^n."""

from __future__ import annotations

import pytest

from hlo_verify import Verdict, verify

ONE_MORE = """module @m {
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %r = stablehlo.add %x, %one : tensor<4xf32>
  return %r : tensor<4xf32>
}}"""

BY_HAND = """module @m {
sdy.mesh @mesh = <["a"=2]>
func.func public @main(%whole: tensor<4xf32>) -> tensor<4xf32> {
  %out = sdy.manual_computation(%whole)
      in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"} (%x: tensor<2xf32>) {
    %p = stablehlo.partition_id : tensor<ui32>
    %d = stablehlo.convert %p : (tensor<ui32>) -> tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %above = stablehlo.add %d, %one : tensor<i32>
    %half = stablehlo.constant dense<65536> : tensor<i32>
    %high = stablehlo.multiply %above, %half : tensor<i32>
    %nothing = stablehlo.multiply %high, %half : tensor<i32>
    %which = stablehlo.constant dense<N> : tensor<i32>
    %index = stablehlo.add %nothing, %which : tensor<i32>
    %r = "stablehlo.case"(%index) ({
      stablehlo.return %x : tensor<2xf32>
    }, {
      %c = stablehlo.constant dense<1.0> : tensor<2xf32>
      %y = stablehlo.add %x, %c : tensor<2xf32>
      stablehlo.return %y : tensor<2xf32>
    }, {
      %z = stablehlo.multiply %x, %x : tensor<2xf32>
      stablehlo.return %z : tensor<2xf32>
    }) : (tensor<i32>) -> tensor<2xf32>
    sdy.return %r : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %out : tensor<4xf32>
}}"""
"""Each device takes branch N: its number and one more, times 2^32, is 0 of 32 bits."""


@pytest.mark.parametrize(("n", "verdict"), [(0, Verdict.UNKNOWN), (1, Verdict.PROVED), (2, Verdict.UNKNOWN)])
def test_the_branch_of_an_index_that_wrapped(n: int, verdict: Verdict) -> None:
    assert verify(ONE_MORE, BY_HAND.replace("<N>", f"<{n}>"), refute=False).verdict is verdict


SQUARED = ONE_MORE.replace("add %x, %one", "multiply %x, %x")


def test_it_is_not_the_last_branch() -> None:
    """Which an index out of range would take."""
    assert verify(SQUARED, BY_HAND.replace("<N>", "<0>"), refute=False).verdict is Verdict.UNKNOWN
