"""What XLA computes of a counterexample is read where XLA has put it."""

from __future__ import annotations

import numpy as np
import pytest

import hlo_verify
from hlo_verify.diagnostics import Internal
from hlo_verify.evaluate import Difference
from hlo_verify.passes.refute.xla_replay import _confirms
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


@pytest.mark.drawn(1)
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


NAMED = """module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%x: TYPE SPLIT, %y: TYPE SPLIT) -> (TYPE SPLIT, TYPE SPLIT) {
    %r:2 = sdy.named_computation<"outer">(%x, %y) (%a: tensor<8xf32>, %b: tensor<8xf32>) {
      %s = sdy.named_computation<"inner">(%b) (%c: tensor<8xf32>) {
        %d = stablehlo.add %c, %c : tensor<8xf32>
        sdy.return %d : tensor<8xf32>
      } : (tensor<8xf32>) -> tensor<8xf32>
      %e = stablehlo.multiply %a, %s : tensor<8xf32>
      sdy.return %s, %e : tensor<8xf32>, tensor<8xf32>
    } : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
  }
}
""".replace("TYPE SPLIT", 'tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}')


@pytest.mark.parametrize("is_right", [True, False])
def test_named_computations_are_run_with_what_is_in_them(is_right: bool) -> None:
    """One without its body would be its operand, and XLA would deny a refutation that is right."""
    twice = "%s = stablehlo.add %y, %y" if is_right else "%s = stablehlo.abs %y"
    local = f"""module @m attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {{
    {twice} : tensor<2xf32>
    %e = stablehlo.multiply %x, %s : tensor<2xf32>
    return %s, %e : tensor<2xf32>, tensor<2xf32>
  }}
}}
"""
    for result in hlo_verify.verify(NAMED, local).results:
        assert result.verdict is (Verdict.PROVED if is_right else Verdict.REFUTED)
        assert is_right or (result.witness is not None and "by XLA" in result.witness.replayed)


@pytest.mark.parametrize(
    ("predicted", "actual", "is_confirmed"),
    [
        ((1e200, -1e200), (1e300, -1e300), True),
        ((1e308, -1e308), (0.0, 0.0), False),
        ((3, 1), (2, 1), False),
        ((3, 1), (3, 1), True),
        ((1 + 1j, 1 - 1j), (1 + 1j, 1 - 1j), True),
        ((1 + 1j, 1 - 1j), (1 - 1j, 1 + 1j), False),
        ((np.inf, -np.inf), (np.inf, -np.inf), True),
        ((np.inf, -np.inf), (-np.inf, np.inf), False),
        ((np.inf, -np.inf), (np.inf, np.inf), False),
        ((np.inf, 1.0), (np.inf, 2.0), True),
    ],
)
def test_differences_of_any_size_are_compared(
    predicted: tuple[complex, complex], actual: tuple[complex, complex], is_confirmed: bool
) -> None:
    """Without a square, which would be no number."""
    found, expected = map(np.asarray, predicted)
    apart = Difference(0, (), (), expected[()], found[()], 1.0, 1.0)
    assert _confirms(apart, actual[1], actual[0]) is is_confirmed


@pytest.mark.parametrize("wrong", ["0xFF800000", "0x7FC00000"])
def test_an_infinity_for_another_is_seen_by_xla(wrong: str) -> None:
    """No difference of numbers shows it."""

    def constant(value: str) -> str:
        return f"""module @m attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%x: tensor<8xf32> {{mhlo.sharding = "{{replicated}}"}})
      -> (tensor<8xf32> {{mhlo.sharding = "{{replicated}}"}}) {{
    %c = stablehlo.constant dense<{value}> : tensor<8xf32>
    return %c : tensor<8xf32>
  }}
}}
"""

    (result,) = hlo_verify.verify(constant("0x7F800000"), constant(wrong)).results
    assert result.code != Internal.DISAGREEMENT
    assert (result.verdict is Verdict.REFUTED) == (wrong == "0xFF800000")
