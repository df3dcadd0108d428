"""What a module's operations say of its arguments."""

from __future__ import annotations

from hlo_verify.evaluate import reaches
from hlo_verify.passes.load.load import load

BRANCHES = """
module @branches {
  func.func public @main(%i: tensor<i32>, %x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>)
      -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    %a = "stablehlo.case"(%i) ({
      %n = stablehlo.negate %x : tensor<f32>
      stablehlo.return %n : tensor<f32>
    }, {
      stablehlo.return %y : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    %b = stablehlo.add %a, %y : tensor<f32>
    return %a, %b, %y : tensor<f32>, tensor<f32>, tensor<f32>
  }
}
"""


def test_results_that_depend_on_an_argument() -> None:
    """Through branches too."""
    assert reaches(load(BRANCHES)) == (2, 2, 3, 0)
