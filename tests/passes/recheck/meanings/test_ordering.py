# ruff: noqa: E501 (modules as MLIR prints them)
"""The best of pairs is checked again, and a mistake in the prover's rules for it is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from hlo_verify.ops import best, reductions
from hlo_verify.passes.load.load import load
from hlo_verify.passes.recheck.answer import Finding, Task, answer
from hlo_verify.passes.recheck.formulas import Graph
from hlo_verify.passes.recheck.meanings import UnwrittenError
from hlo_verify.passes.recheck.meanings.ordering import best_of_pairs
from hlo_verify.passes.recheck.recheck import recheck_with
from hlo_verify.report import Recheck
from hlo_verify.terms import algebra
from hlo_verify.terms.term import ONE
from tests.support.pairs import module, on

REGION = """({{
    ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
      %more = stablehlo.compare {more}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %same = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %less = stablehlo.compare {less}, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %tie = stablehlo.and %same, %less : tensor<i1>
      %here = stablehlo.or %more, %tie : tensor<i1>
      %v = stablehlo.select %more, %a, %b : tensor<i1>, tensor<f32>
      %w = stablehlo.select %here, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }})"""
ARGMAX = REGION.format(more="GT", less="LT")
STARTS = """
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %none = stablehlo.constant dense<0> : tensor<i32>"""


def _reduced(name: str, values: str, indices: str, shape: str) -> str:
    return (
        f'%{name}:2 = "stablehlo.reduce"({values}, {indices}, %low, %none) {ARGMAX} {{dimensions = array<i64: 1>}} : '
        f"(tensor<{shape}xf32>, tensor<{shape}xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)"
    )


GATHER = "{{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, channel_handle = #stablehlo.channel_handle<handle = {n}, type = 1>, use_global_device_ids}} : (tensor<8x1x{t}>) -> tensor<8x4x{t}>"
WHOLE = on("{replicated}")
LOGICAL = module(
    f"%x: tensor<8x16xf32> {on('{devices=[1,4]<=[4]}')}",
    f"tensor<8xf32> {WHOLE}, tensor<8xi32> {WHOLE}",
    f"""{STARTS}
    %at = stablehlo.iota dim = 1 : tensor<8x16xi32>
    {_reduced("r", "%x", "%at", "8x16")}
    return %r#0, %r#1 : tensor<8xf32>, tensor<8xi32>""",
    4,
)
PARTITIONED = module(
    "%x: tensor<8x4xf32>",
    "tensor<8xf32>, tensor<8xi32>",
    f"""{STARTS}
    %local = stablehlo.iota dim = 1 : tensor<8x4xi32>
    %id = stablehlo.partition_id : tensor<ui32>
    %d = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %n = stablehlo.constant dense<4> : tensor<i32>
    %start = stablehlo.multiply %d, %n : tensor<i32>
    %starts = stablehlo.broadcast_in_dim %start, dims = [] : (tensor<i32>) -> tensor<8x4xi32>
    %at = stablehlo.add %local, %starts : tensor<8x4xi32>
    {_reduced("part", "%x", "%at", "8x4")}
    %v1 = stablehlo.reshape %part#0 : (tensor<8xf32>) -> tensor<8x1xf32>
    %i1 = stablehlo.reshape %part#1 : (tensor<8xi32>) -> tensor<8x1xi32>
    %vs = "stablehlo.all_gather"(%v1) {GATHER.format(n=1, t="f32")}
    %is = "stablehlo.all_gather"(%i1) {GATHER.format(n=2, t="i32")}
    {_reduced("r", "%vs", "%is", "8x4")}
    return %r#0, %r#1 : tensor<8xf32>, tensor<8xi32>""",
    4,
)


def _checked() -> Recheck:
    def inline(tasks: Sequence[Task]) -> Iterator[tuple[int, Finding]]:
        for n, task in enumerate(tasks):
            yield n, answer(task)

    return recheck_with(inline, load(LOGICAL), load(PARTITIONED), 1000)


def test_agrees_with_a_sound_prover() -> None:
    found = _checked()
    assert (found.disagreements, found.unchecked) == ((), ())
    assert found.agreed + found.partly == found.steps


def _least(patch: pytest.MonkeyPatch) -> None:
    right = best.index_of_best
    patch.setattr(reductions, "index_of_best", lambda kind, *rest: right("min", *rest))


def _next_index(patch: pytest.MonkeyPatch) -> None:
    right = best.index_of_best
    patch.setattr(reductions, "index_of_best", lambda *args: algebra.add(right(*args), ONE))


def _part_of_anything(patch: pytest.MonkeyPatch) -> None:
    """The best of parts as the first part's index."""
    right = best._part

    def part(kind: str, pair: best.Pair, first: best.Pair, dtypes: tuple[str, str]) -> Any:
        found = right(kind, pair, first, dtypes)
        return None if found is None else (found[0], (found[1][0], algebra.scale(found[1][1], 2)))

    patch.setattr(best, "_part", part)


Seed = Callable[[pytest.MonkeyPatch], None]

SEEDS: dict[str, tuple[Seed, str]] = {
    "the least for the greatest": (_least, "reduce"),
    "the index after": (_next_index, "reduce"),
    "twice the index of a part": (_part_of_anything, "reduce"),
}


@pytest.mark.parametrize("name", SEEDS)
def test_finds_a_mistake_of_the_prover(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, operation = SEEDS[name]
    seed(monkeypatch)
    found = _checked()
    assert operation in {wrong.operation for wrong in found.disagreements}, found.unchecked


def _region(text: str) -> str:
    program = module(
        "%x: tensor<8x16xf32>, %at: tensor<8x16xi32>",
        "tensor<8xf32>, tensor<8xi32>",
        f"""{STARTS}
    {_reduced("r", "%x", "%at", "8x16").replace(ARGMAX, text)}
    return %r#0, %r#1 : tensor<8xf32>, tensor<8xi32>""",
        1,
    )
    (op,) = [op for op in load(program).main.ops if op.name == "reduce"]
    return best_of_pairs(op.regions[0])


def test_a_region_is_tried_on_every_order_of_two_pairs() -> None:
    assert _region(ARGMAX) == "max"
    assert _region(REGION.format(more="LT", less="LT")) == "min"
    for other in (
        REGION.format(more="GT", less="GT"),
        REGION.format(more="GE", less="LT"),
        ARGMAX.replace("and", "or"),
    ):
        with pytest.raises(UnwrittenError):
            _region(other)


def test_the_best_of_bests_is_the_best() -> None:
    graph = Graph()
    x = [graph.read("x", (n,), "Real") for n in range(4)]
    pairs = [(value, graph.number(n)) for n, value in enumerate(x)]
    halves = [
        (graph.extremum("max", [v for v, _ in part]), graph.best("argmax", part)) for part in (pairs[:2], pairs[2:])
    ]
    assert graph.best("argmax", halves) == graph.best("argmax", pairs)
    crossed = [(halves[0][0], halves[1][1]), (halves[1][0], halves[0][1])]
    assert graph.best("argmax", crossed) != graph.best("argmax", pairs)
    worst = graph.add([(graph.infinity, -1)])
    assert graph.best("argmax", [(worst, graph.number(7)), pairs[2]]) == graph.number(2)
