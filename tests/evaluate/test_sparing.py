"""Which arguments to make 0, so that nothing hangs on what is too large."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.evaluate import Limits, evaluate, of_dense
from hlo_verify.evaluate.needed import part
from hlo_verify.evaluate.sparing import FEW, LOOKED_AT, Sparing
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
    needed = len(part(module.main, {module.main.results[n] for n in results}).ops)
    assert not sparing.work % (LOOKED_AT * needed) and sparing.work > 0


ROWS = "tensor<64x4xf32>"
SUMS = f"""%h = stablehlo.constant dense<1.0> : {ROWS}
    %g = stablehlo.dot_general %e, %h, contracting_dims = [1] x [0] : (tensor<64x64xf32>, {ROWS}) -> {ROWS}
    return %g"""


def test_nothing_is_said_where_no_zeros_are_enough() -> None:
    """A sum of the exponentials of all scores hangs on them whatever is 0."""
    module = load(ATTENTION.replace("return %t", SUMS))
    assert Sparing(module, [0]).removing(scores(module)) == frozenset()
    assert Sparing(module, [1]).removing(scores(module)) == {U}


def layered(layers: int) -> str:
    """Layers of attention one after the other, each with weights of its own."""
    body, arguments, x = [], ["%x: ROWS"], "%x"
    for k in range(layers):
        arguments += [f"%q{k}: WEIGHTS", f"%v{k}: WEIGHTS"]
        body += [
            f"%a{k} = stablehlo.dot_general {x}, %q{k}, contracting_dims = [1] x [0] : (ROWS, WEIGHTS) -> ROWS",
            f"%s{k} = stablehlo.dot_general %a{k}, %a{k}, contracting_dims = [1] x [1] : (ROWS, ROWS) -> ALL",
            f"%e{k} = stablehlo.exponential %s{k} : ALL",
            f"%b{k} = stablehlo.dot_general {x}, %v{k}, contracting_dims = [1] x [0] : (ROWS, WEIGHTS) -> ROWS",
            f"%o{k} = stablehlo.dot_general %e{k}, %b{k}, contracting_dims = [1] x [0] : (ALL, ROWS) -> ROWS",
            f"%x{k} = stablehlo.add %o{k}, {x} : ROWS",
        ]
        x = f"%x{k}"
    text = f"func.func @main({', '.join(arguments)}) -> ROWS {{\n" + "\n".join(body) + f"\nreturn {x} : ROWS\n}}"
    for name, kind in KINDS.items():
        text = text.replace(name, f"tensor<{kind}>")
    return text


@pytest.mark.parametrize("layers", [1, 2, FEW])
def test_what_plays_one_part_in_every_layer_is_0_in_all_of_them(layers: int) -> None:
    module = load(layered(layers))
    sparing = Sparing(module, [0])
    values = {2 * k + 2 for k in range(layers)}
    assert sparing.removing(scores(module)) == values
    assert layers < FEW or sparing.work <= 16 * LOOKED_AT * len(module.main.ops)  # as many choices, however many layers


def test_what_is_large_and_was_not_refused_may_stay() -> None:
    """A tensor of few different elements takes little, however large it is."""
    module = load(ATTENTION)
    (refused,) = [op.results[0] for op in operations(module.main) if op.name == "cosine"]
    assert Sparing(module, [1]).removing(frozenset([refused])) == {U}
    (needed,) = [op.results[0] for op in operations(module.main) if op.name == "tanh"]
    assert Sparing(module, [0]).removing(frozenset([needed])) == frozenset()
