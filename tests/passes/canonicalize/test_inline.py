"""Placements inside of regions: of elements they say nothing, of tensors they stay."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from hlo_verify import verify
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import operations

MESH = 'sdy.mesh @m = <["x"=2]>'
CONSTRAINT = "sdy.sharding_constraint"


def _sort(said: str, comparison: str = "LT") -> str:
    return f"""module {{
{MESH}
func.func public @main(%x: tensor<4x6xf32> {{sdy.sharding = #sdy.sharding<@m, [{{"x"}}, {{}}]>}}) -> tensor<4x6xf32> {{
  %0 = "stablehlo.sort"(%x) <{{dimension = 1 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = sdy.sharding_constraint %a <@m, []{said}> : tensor<f32>
    %2 = stablehlo.compare {comparison}, %1, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }}) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}}
}}"""


@pytest.mark.parametrize(("said", "stays"), [("", False), (', unreduced={"x"}', True)])
def test_a_placement_of_an_element_is_dropped(said: str, stays: bool) -> None:
    (sort,) = load(_sort(said)).main.ops
    (region,) = sort.regions
    assert [op.name for op in region.ops] == [CONSTRAINT] * stays + ["compare"]
    assert (region.ops[-1].operands == region.arguments) is not stays


def test_a_placement_of_what_a_loop_carries_stays() -> None:
    module = load(
        f"""module {{
{MESH}
func.func public @main(%x: tensor<f32>, %n: tensor<i32>) -> tensor<f32> {{
  %0:2 = stablehlo.while(%i = %n, %c = %x) : tensor<i32>, tensor<f32>
   cond {{
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }} do {{
    %1 = sdy.sharding_constraint %c <@m, []> : tensor<f32>
    stablehlo.return %i, %1 : tensor<i32>, tensor<f32>
  }}
  return %0#1 : tensor<f32>
}}
}}"""
    )
    assert CONSTRAINT in [op.name for op in operations(module.main)]


@pytest.mark.parametrize(("comparison", "verdict"), [("LT", "PROVED"), ("GT", "UNKNOWN")])
def test_a_comparator_with_placements_is_the_order_that_it_is_without(comparison: str, verdict: str) -> None:
    partitioned = f"""HloModule m, num_partitions=2, entry_computation_layout={{(f32[2,6]{{1,0}})->f32[2,6]{{1,0}}}}
less {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction={comparison}
}}
ENTRY main {{
  x = f32[2,6]{{1,0}} parameter(0), sharding={{devices=[2,1]<=[2]}}
  ROOT s = f32[2,6]{{1,0}} sort(x), dimensions={{1}}, is_stable=true, to_apply=less
}}"""
    assert verify(_sort(""), partitioned, refute=False).verdict == verdict


@pytest.mark.parametrize("function", [jnp.sort, jnp.argmax, lambda x, axis: jnp.cumsum(x, axis)])
def test_what_compares_elements_on_a_mesh_with_explicit_axes(function: object) -> None:
    mesh = jax.sharding.AbstractMesh((2,), ("x",), axis_types=(AxisType.Explicit,))
    x = jax.ShapeDtypeStruct((4, 6), "float32", sharding=NamedSharding(mesh, P("x", None)))
    with jax.sharding.use_abstract_mesh(mesh):
        traced = jax.jit(lambda x: function(x, axis=1)).trace(x)  # type: ignore[operator]
        lowered = traced.lower(lowering_platforms=("cpu",))
    assert verify(lowered).verdict == "PROVED"
