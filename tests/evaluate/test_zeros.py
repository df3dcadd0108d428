"""Which arguments make values 0, and which of them keep elements few."""

from __future__ import annotations

import numpy as np

from hlo_verify.evaluate import Limits, Zeros, evaluate, of_dense
from hlo_verify.passes.load.load import load

SIZE = 64
SCORES = """module @scores {
  func.func @main(%x: ROWS, %q: WEIGHTS, %k: WEIGHTS, %n: tensor<4xf32>) -> ROWS {
    %g = stablehlo.broadcast_in_dim %n, dims = [1] : (tensor<4xf32>) -> ROWS
    %y = stablehlo.multiply %x, %g : ROWS
    %a = stablehlo.dot_general %y, %q, contracting_dims = [1] x [0] : (ROWS, WEIGHTS) -> ROWS
    %b = stablehlo.dot_general %y, %k, contracting_dims = [1] x [0] : (ROWS, WEIGHTS) -> ROWS
    %s = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (ROWS, ROWS) -> ALL
    %e = stablehlo.exponential %s : ALL
    %o = stablehlo.dot_general %e, %y, contracting_dims = [1] x [0] : (ALL, ROWS) -> ROWS
    return %o : ROWS
  }
}"""
for name, kind in {"ALL": "tensor<64x64xf32>", "ROWS": "tensor<64x4xf32>", "WEIGHTS": "tensor<4x4xf32>"}.items():
    SCORES = SCORES.replace(name, kind)
X, Q, K, NORM = range(4)
LOOP = """module @loop {
  func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %z = stablehlo.constant dense<0.0> : tensor<4xf32>
    %r:3 = stablehlo.while(%i = %zero, %s = %z, %t = %x) : tensor<i32>, tensor<4xf32>, tensor<4xf32>
     cond {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %u = stablehlo.multiply %t, %w : tensor<4xf32>
      %v = stablehlo.add %s, %u : tensor<4xf32>
      %d = stablehlo.cosine %t : tensor<4xf32>
      stablehlo.return %j, %v, %d : tensor<i32>, tensor<4xf32>, tensor<4xf32>
    }
    return %r#1 : tensor<4xf32>
  }
}"""


def test_the_argument_that_makes_least_else_zero() -> None:
    """The weights of queries or keys, and not the norm before them, of which everything is made."""
    module = load(SCORES)
    scores = frozenset(module.main.ops[4].results)
    zeros = Zeros(module)
    assert zeros.sparing(scores, 0) == {Q} and zeros.sparing(scores, 1) == {K}
    assert zeros.sparing(frozenset(), 0) == frozenset()


def test_what_was_too_large_is_not_with_zeros() -> None:
    """What is refused for its size is named, and fits where the argument that was found is 0."""
    module, generator = load(SCORES), np.random.default_rng(0)
    arguments = [of_dense(generator.uniform(0.5, 1.5, kind.shape)) for kind in module.main.argument_types]
    few = Limits(SIZE * SIZE - 1)
    refused = evaluate(module, arguments, 1, limits=few)
    assert refused.exceeded and refused.results == (None,)
    (zero,) = Zeros(module).sparing(refused.refused, 0)
    arguments[zero] = of_dense(np.zeros(module.main.argument_types[zero].shape))
    found = evaluate(module, arguments, 1, limits=few)
    assert not found.exceeded and found.results[0] is not None
    assert found.work < refused.work + SIZE * SIZE


def test_what_a_loop_carries_is_zero_where_it_begins_so_and_stays_so() -> None:
    """A sum of products with the weights is; what is made anew of the other argument is not, for cos(0) is 1."""
    module = load(LOOP)
    (loop,) = (op for op in module.main.ops if op.name == "while")
    zeros = Zeros(module)
    taken = next(op for op in loop.regions[1].ops if op.name == "multiply")
    assert zeros.sparing(frozenset(taken.results), 0) == {1}
    assert zeros.sparing(frozenset(loop.results), 1) == {1}


def test_a_barrier_keeps_its_operands_apart() -> None:
    """What is computed again in a backward pass stands behind one, all weights beside the activations."""
    module = load("""module @barrier {
  func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
    %b:2 = stablehlo.optimization_barrier %x, %w : tensor<4xf32>, tensor<4xf32>
    %e = stablehlo.exponential %b#0 : tensor<4xf32>
    %p = stablehlo.multiply %e, %b#1 : tensor<4xf32>
    return %p : tensor<4xf32>
  }
}""")
    assert Zeros(module).sparing(frozenset(module.main.ops[2].results), 0) == {1}
