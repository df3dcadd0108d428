"""What some values of a module need: loops carry no more than that."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.evaluate import dense, evaluate, of_dense
from hlo_verify.evaluate.needed import elements, least, needs, part
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import Function, Module
from hlo_verify.program.sharding_text import leaves

LOOP = """
module @loop {
  func.func public @main(%x: tensor<4xf64>, %n: tensor<i32>)
      -> (tensor<4xf64>, tensor<9x4xf64>, tensor<i32>, tensor<4xf64>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<9x4xf64>
    %r:5 = stablehlo.while(%i = %zero, %v = %x, %kept = %none, %w = %x, %idle = %x)
        : tensor<i32>, tensor<4xf64>, tensor<9x4xf64>, tensor<4xf64>, tensor<4xf64>
    attributes {mhlo.sharding = "SHARDING"}
    cond {
      %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %double = stablehlo.add %v, %v : tensor<4xf64>
      %row = stablehlo.reshape %v : (tensor<4xf64>) -> tensor<1x4xf64>
      %more = stablehlo.dynamic_update_slice %kept, %row, %i, %zero
          : (tensor<9x4xf64>, tensor<1x4xf64>, tensor<i32>, tensor<i32>) -> tensor<9x4xf64>
      %sum = stablehlo.add %w, %v : tensor<4xf64>
      stablehlo.return %next, %double, %more, %sum, %idle
          : tensor<i32>, tensor<4xf64>, tensor<9x4xf64>, tensor<4xf64>, tensor<4xf64>
    }
    return %r#1, %r#2, %r#0, %r#3 : tensor<4xf64>, tensor<9x4xf64>, tensor<i32>, tensor<4xf64>
  }
}
"""

CARRIED = {0: "{replicated}", 1: "{devices=[2]<=[2]}", 2: "{devices=[1,2]<=[2]}"}
"""How what the loop carries is sharded, by its rank."""
LOOP = LOOP.replace("SHARDING", f"{{{', '.join(CARRIED[rank] for rank in (0, 1, 2, 1, 1))}}}")

DOUBLED, KEPT, COUNTER, SUM = range(4)


@pytest.fixture(scope="module")
def module() -> Module:
    return load(LOOP)


def _carried(module: Module, *results: int) -> int:
    """How much the loop carries where those results are asked for."""
    asked = part(module.main, {module.main.results[n] for n in results})
    (loop,) = (op for op in asked.ops if op.name == "while")
    assert len(loop.operands) == len(loop.results) == len(loop.types)
    assert all(len(region.arguments) == len(region.argument_types) == len(loop.types) for region in loop.regions)
    assert leaves(loop.attributes["sharding"]) == tuple(CARRIED[type_.rank] for type_ in loop.types)
    return len(loop.types)


@pytest.mark.parametrize(("results", "count"), [((COUNTER,), 1), ((DOUBLED,), 2), ((SUM,), 3), ((KEPT,), 3)])
def test_a_loop_carries_what_is_asked_for_and_what_that_needs(
    module: Module, results: tuple[int, ...], count: int
) -> None:
    assert _carried(module, *results) == count


def test_a_loop_that_is_asked_for_several_carries_all_they_need(module: Module) -> None:
    assert _carried(module, SUM, KEPT) == 4


def test_a_value_within_a_loop_is_kept_with_what_it_needs(module: Module) -> None:
    (loop,) = (op for op in module.main.ops if op.name == "while")
    row = next(op.results[0] for op in loop.regions[1].ops if op.name == "reshape")
    asked = part(module.main, {module.main.results[COUNTER], row})
    (loop,) = (op for op in asked.ops if op.name == "while")
    assert len(loop.types) == 2
    assert row in {value for op in loop.regions[1].ops for value in op.results}


@pytest.mark.parametrize("n", range(4))
def test_what_is_asked_for_alone_is_what_it_is_among_all(module: Module, n: int) -> None:
    arguments = [of_dense(np.array([1.0, -2.0, 3.5, 0.25])), of_dense(np.array(5, np.int32))]
    together, alone = evaluate(module, arguments, 1), evaluate(module, arguments, 1, only=[n])
    found, expected = alone.results[n], together.results[n]
    assert found is not None
    assert expected is not None
    assert np.array_equal(dense(found, 0), dense(expected, 0))
    assert [k for k, each in enumerate(alone.results) if each is not None] == [n]
    assert alone.work < together.work


def test_the_result_that_needs_least(module: Module) -> None:
    """A loop counts whole, so that the sum of a result comes after it."""
    main = module.main
    negated = load(LOOP.replace("return %r#1", "%y = stablehlo.negate %x : tensor<4xf64>\n    return %y")).main
    assert least(negated, range(4)) == DOUBLED
    assert least(main, [KEPT, SUM]) == KEPT
    assert elements(Function(main.arguments, main.argument_types, (), ())) == 0


def test_the_work_of_operations_is_all_that_an_evaluation_takes(module: Module) -> None:
    arguments = [of_dense(np.array([1.0, -2.0, 3.5, 0.25])), of_dense(np.array(5, np.int32))]
    found = evaluate(module, arguments, 1)
    assert sum(found.costs[op.results[0]] for op in module.main.ops) == found.work
    (loop,) = (op for op in module.main.ops if op.name == "while")
    assert found.costs[loop.results[0]] > sum(found.costs[op.results[0]] for op in module.main.ops if op is not loop)


def test_what_results_need_together_is_counted_once() -> None:
    """Of a sum, a product and a quotient of these, the quotient needs both."""
    main = load(
        """
        func.func @main(%x: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) {
          %a = stablehlo.add %x, %x : tensor<4xf64>
          %b = stablehlo.multiply %x, %x : tensor<4xf64>
          %c = stablehlo.divide %a, %b : tensor<4xf64>
          return %a, %b, %c : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>
        }"""
    ).main
    sizes = {"add": 1, "multiply": 10, "divide": 100}
    needed = needs(main, range(3), lambda op: sizes[op.name])
    assert [needed.of([n]) for n in range(3)] == [1, 10, 111]
    assert needed.of([0, 1]) == 11
    assert needed.of([0, 2]) == needed.of(range(3)) == 111
    assert needed.of([]) == 0
