"""Numbers that manual regions hand each other are seen where they are used, unless they are addends of others."""

from __future__ import annotations

import pytest

from hlo_verify.passes.chain.constant_uses import uses_of
from hlo_verify.passes.load.load import load

MODULE = """
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["d"=2]>
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %n = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"d"}]>] out_shardings=[OUT] manual_axes={"d"}
        (%a: tensor<2xf32>) {
      %c = stablehlo.constant dense<0.9> : tensor<f32>
      %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<SIZExf32>
      sdy.return %b : tensor<SIZExf32>
    } : (tensor<4xf32>) -> tensor<2xf32>
    %y = sdy.manual_computation(%x, %n) in_shardings=[<@mesh, [{"d"}]>, IN] out_shardings=[<@mesh, [{"d"}]>]
        manual_axes={"d"} (%a: tensor<2xf32>, %m: tensor<SIZExf32>) {
      %w = stablehlo.slice %m [0:1] : (tensor<SIZExf32>) -> tensor<1xf32>
      %s = stablehlo.reshape %w : (tensor<1xf32>) -> tensor<f32>
      %t = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<2xf32>
      %p = stablehlo.multiply %a, %t : tensor<2xf32>
      sdy.return %p : tensor<2xf32>
    } : (tensor<4xf32>, tensor<2xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
"""
SHARDS = '<@mesh, [{"d"}]>'
WHOLE = "<@mesh, [{}]>"
ADDENDS = '<@mesh, [{}], unreduced={"d"}>'


@pytest.mark.parametrize(
    ("out", "into", "size", "is_used"),
    [(SHARDS, SHARDS, 1, True), (WHOLE, WHOLE, 2, True), (ADDENDS, WHOLE, 2, False), (WHOLE, ADDENDS, 2, False)],
)
def test_numbers_are_followed_between_regions(out: str, into: str, size: int, is_used: bool) -> None:
    text = MODULE.replace("OUT", out).replace("IN", into).replace("SIZE", str(size))
    found = uses_of(load(text).main)
    assert [name for seen in found.values() for name, *_ in seen.values()] == (["slice"] if is_used else [])
