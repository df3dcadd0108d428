"""A loop without what it carries for nothing gives what it gave before, for all that is asked of it."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.evaluate import dense, evaluate
from hlo_verify.evaluate.blocks import of_devices
from hlo_verify.passes.chain.trim_loops import slim
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import Op

CARRIED = "tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>"


def program(turn: str, wanted: int, limit: str = "%n = stablehlo.constant dense<3> : tensor<i32>") -> str:
    """A loop that carries a counter and %a to %d, of which one is returned; `turn` is what the next turn gets."""
    return f"""module @m {{
  func.func public @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {{
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:5 = stablehlo.while(%i = %zero, %a = %x, %b = %y, %c = %x, %d = %y) : {CARRIED}
    cond {{
      {limit}
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %s = stablehlo.add %a, %b : tensor<2xf32>
      %t = stablehlo.multiply %c, %d : tensor<2xf32>
      stablehlo.return {turn} : {CARRIED}
    }}
    return %r#{wanted} : tensor<2xf32>
  }}
}}
"""


X, Y = np.array([2.0, 3.0]), np.array([5.0, 7.0])
TURNS = ("%j, %s, %b, %c, %d", "%j, %s, %b, %t, %d", "%j, %b, %a, %t, %s", "%j, %a, %b, %c, %d", "%j, %s, %t, %s, %d")


def value(module: object) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    found = evaluate(module, [of_devices(each[None]) for each in (X, Y)], 1)  # type: ignore[arg-type]
    assert not found.unknown
    [blocks] = found.results
    assert blocks is not None
    return np.asarray(dense(blocks, 0), np.float64)


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("wanted", [1, 2, 3, 4])
def test_the_same_values(turn: str, wanted: int) -> None:
    module = load(program(turn, wanted))
    np.testing.assert_array_equal(value(slim(module)), value(module))


def loop(turn: str, wanted: int) -> Op:
    return next(op for op in slim(load(program(turn, wanted))).main.ops if op.name == "while")


def test_what_is_left() -> None:
    assert len(loop(TURNS[0], 1).operands) == 2  # the counter and the sum
    assert len(loop(TURNS[1], 3).operands) == 2  # the counter and the product
    assert len(loop(TURNS[2], 4).operands) == 4  # %c is for nothing: what is wanted does not read it
    assert len(loop(TURNS[2], 3).operands) == 5
    assert len(loop(TURNS[4], 1).operands) == 4  # %d stays what it is


def test_a_result_that_stays_what_it_was() -> None:
    module = slim(load(program(TURNS[3], 2)))
    assert module.main.results == (module.main.arguments[1],)


def test_a_sharding_says_of_what_is_still_carried() -> None:
    """One sharding for each value; a list of another length is none of the loop's."""
    shardings = ["{replicated}", *("{devices=[2]<=[2]}" for _ in range(4))]
    text = program("%j, %s, %b, %c, %d", 1).replace(
        f"%d = %y) : {CARRIED}\n",
        f'%d = %y) : {CARRIED}\n attributes {{mhlo.sharding = "{{{", ".join(shardings)}}}"}}\n',
    )
    assert "attributes" in text
    (op,) = [op for op in slim(load(text)).main.ops if op.name == "while"]
    assert op.attributes["sharding"] == "{{replicated}, {devices=[2]<=[2]}}"


def test_an_annotation_is_no_need() -> None:
    """JAX annotates every result of a loop in a manual region, those that nobody uses too."""
    text = program(TURNS[2], 4).replace("module @m {", 'module @m {\n  sdy.mesh @mesh = <["x"=2]>')
    noted = "    %k = sdy.sharding_constraint %r#3 <@mesh, [{}]> : tensor<2xf32>\n    return"
    (op,) = [op for op in slim(load(text.replace("    return", noted))).main.ops if op.name == "while"]
    assert len(op.operands) == 4
