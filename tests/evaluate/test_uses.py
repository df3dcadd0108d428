"""What a module's operations say of its arguments."""

from __future__ import annotations

from hlo_verify.evaluate import ordered_sizes, reaches
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


ORDERED = """
module @ordered {
  func.func public @main(%x: tensor<3x5x8xf32>, %i: tensor<6x7xi32>, %y: tensor<9x4xf32>)
      -> (tensor<3x5x2xf32>, tensor<3x5x2xi32>, tensor<6x7xi32>, tensor<9x4xf32>) {
    %v, %k = chlo.top_k(%x, k = 2) : tensor<3x5x8xf32> -> (tensor<3x5x2xf32>, tensor<3x5x2xi32>)
    %s = "stablehlo.sort"(%i) <{dimension = 0 : i64}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %c = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }) : (tensor<6x7xi32>) -> tensor<6x7xi32>
    %t = "stablehlo.sort"(%y) <{dimension = 0 : i64}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }) : (tensor<9x4xf32>) -> tensor<9x4xf32>
    return %v, %k, %s, %t : tensor<3x5x2xf32>, tensor<3x5x2xi32>, tensor<6x7xi32>, tensor<9x4xf32>
  }
}
"""


def test_dimensions_along_which_floats_are_ordered() -> None:
    assert ordered_sizes(load(ORDERED)) == {8, 9}
