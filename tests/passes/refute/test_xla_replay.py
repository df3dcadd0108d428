"""What XLA computes of a counterexample is read where XLA has put it."""

from __future__ import annotations

import pytest

import hlo_verify
from hlo_verify.report import Verdict

LOGICAL = """module @m {
  func.func public @main(%x: tensor<8x12xf32>) -> tensor<8x12xf32> {
    return %x : tensor<8x12xf32>
  }
}
"""


def wrong_on(device: int, dimensions: str, shard: str, given: str) -> str:
    """A global module that doubles what one device holds of its argument."""
    kind = f"tensor<{shard}xf32>"
    placed = f"<@mesh, {dimensions}>"
    return f"""module @m attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  func.func public @main(%x: tensor<8x12xf32>) -> (tensor<8x12xf32> {given}) {{
    %0 = sdy.manual_computation(%x) in_shardings=[{placed}] out_shardings=[{placed}] manual_axes={{"a", "b"}}
        (%s: {kind}) {{
      %d = stablehlo.partition_id : tensor<ui32>
      %c = stablehlo.constant dense<{device}> : tensor<ui32>
      %p = stablehlo.compare EQ, %d, %c : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %t = stablehlo.add %s, %s : {kind}
      %y = stablehlo.select %p, %t, %s : tensor<i1>, {kind}
      sdy.return %y : {kind}
    }} : (tensor<8x12xf32>) -> tensor<8x12xf32>
    return %0 : tensor<8x12xf32>
  }}
}}
"""


@pytest.mark.parametrize("is_given", [False, True])
@pytest.mark.parametrize(
    ("dimensions", "shard"),
    [
        ('[{"b"}, {}]', "2x12"),
        ('[{}, {"a"}]', "8x6"),
        ('[{"a"}, {"b"}]', "4x3"),
        ('[{"b"}, {"a"}]', "2x6"),
        ('[{"b", "a"}, {}]', "1x12"),
        ("[{}, {}]", "8x12"),
    ],
)
def test_results_are_read_where_xla_put_them(dimensions: str, shard: str, is_given: bool) -> None:
    """Whether the module says where its results lie or not: what is wrong on one device alone stays refuted."""
    given = f"{{sdy.sharding = #sdy.sharding<@mesh, {dimensions}>}}" if is_given else ""
    for device in (1, 6):
        (result,) = hlo_verify.verify(LOGICAL, wrong_on(device, dimensions, shard, given)).results
        assert result.verdict is Verdict.REFUTED
        assert result.witness is not None and "by XLA" in result.witness.replayed
