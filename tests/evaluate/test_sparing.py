"""Which arguments to make 0, so that nothing hangs on what is too large."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.evaluate import Limits, evaluate, of_dense
from hlo_verify.evaluate.sparing import LOOKED_AT, Sparing
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import Module, Name, operations

SIZE = 64
ATTENTION = """module @attention {
  func.func @main(%x: ROWS, %n: LABELS, %q: WEIGHTS, %v: WEIGHTS, %u: WEIGHTS) -> (ROWS, ROWS, ROWS) {
    %a = stablehlo.dot_general %x, %q, contracting_dims = [1] x [0] : (ROWS, WEIGHTS) -> ROWS
    %s = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1] : (ROWS, ROWS) -> ALL
    %e = stablehlo.exponential %s : ALL
    %f = stablehlo.cosine %s : ALL
    %b = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (ROWS, WEIGHTS) -> ROWS
    %o = stablehlo.dot_general %e, %b, contracting_dims = [1] x [0] : (ALL, ROWS) -> ROWS
    %c = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (ROWS, WEIGHTS) -> ROWS
    %p = stablehlo.dot_general %f, %c, contracting_dims = [1] x [0] : (ALL, ROWS) -> ROWS
    %m = stablehlo.convert %n : (LABELS) -> ROWS
    %r = stablehlo.dot_general %s, %m, contracting_dims = [1] x [0] : (ALL, ROWS) -> ROWS
    %w = stablehlo.add %o, %x : ROWS
    %t = stablehlo.tanh %w : ROWS
    %y = stablehlo.add %p, %x : ROWS
    %z = stablehlo.add %r, %x : ROWS
    return %t, %y, %z : ROWS, ROWS, ROWS
  }
}"""
KINDS = {"ALL": "64x64xf32", "ROWS": "64x4xf32", "WEIGHTS": "4x4xf32", "LABELS": "64x4xi32"}
for name, kind in KINDS.items():
    ATTENTION = ATTENTION.replace(name, f"tensor<{kind}>")
X, LABELS, Q, V, U = range(5)


def scores(module: Module) -> frozenset[Name]:
    """All values that have an element for each two positions."""
    large = (op for op in operations(module.main) if op.types[0].shape == (SIZE, SIZE))
    return frozenset(value for op in large for value in op.results)


@pytest.mark.parametrize(
    ("results", "zero"),
    [
        ([0], {V}),  # not x, nor q: without the first nothing is left, without the second e is 1 everywhere
        ([1], {U}),
        ([0, 1], {V, U}),  # either alone leaves the scores to the other; x would do, and leave nothing
        ([2], {Q}),  # integers are not made 0
    ],
)
def test_as_much_as_can_be_is_left_without_what_is_too_large(results: list[int], zero: set[int]) -> None:
    module = load(ATTENTION)
    sparing = Sparing(module, results)
    assert sparing.removing(scores(module)) == zero
    given = [of_dense(np.full(type_.shape, n not in zero, float)) for n, type_ in enumerate(module.main.argument_types)]
    given[LABELS] = of_dense(np.ones((SIZE, 4), np.int32))
    found = evaluate(module, given, 1, only=results, limits=Limits(SIZE * SIZE - 1))
    assert not found.exceeded and all(found.results[n] is not None for n in results)
    assert not sparing.work % (LOOKED_AT * len(module.main.ops)) and sparing.work > 0


ROWS = "tensor<64x4xf32>"
SUMS = f"""%h = stablehlo.constant dense<1.0> : {ROWS}
    %g = stablehlo.dot_general %e, %h, contracting_dims = [1] x [0] : (tensor<64x64xf32>, {ROWS}) -> {ROWS}
    return %g"""


def test_nothing_is_said_where_no_zeros_are_enough() -> None:
    """A sum of the exponentials of all scores hangs on them whatever is 0."""
    module = load(ATTENTION.replace("return %t", SUMS))
    assert Sparing(module, [0]).removing(scores(module)) == frozenset()
    assert Sparing(module, [1]).removing(scores(module)) == {U}


def test_all_has_to_go_that_is_as_large_as_the_least_of_what_was_refused() -> None:
    module = load(ATTENTION)
    (refused,) = [op.results[0] for op in operations(module.main) if op.name == "tanh"]
    assert Sparing(module, [0]).removing(frozenset([refused])) == frozenset()
