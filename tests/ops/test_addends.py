"""Manual regions that are handed addends of a tensor: all that is known of these is what they add up to."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import hlo_verify
from hlo_verify import Verdict

KIND = "tensor<8x4xf32>"
SUM = """"stablehlo.all_reduce"({}) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
  replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}}> ({{
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %r = stablehlo.add %p, %q : tensor<f32>
  stablehlo.return %r : tensor<f32>
}}) : (tensor<8x4xf32>) -> tensor<8x4xf32>"""
PSUM = f"%out = {SUM.format('%own')}"
TWICE = f"%two = stablehlo.add %own, %own : {KIND}\n%out = {SUM.format('%two')}"
LATER = f"%sum = {SUM.format('%own')}\n%out = stablehlo.tanh %sum : {KIND}"
EARLY = f"%tan = stablehlo.tanh %own : {KIND}\n%out = {SUM.format('%tan')}"
SQUARES = f"%two = stablehlo.multiply %own, %own : {KIND}\n%out = {SUM.format('%two')}"
ALONE = f"%out = stablehlo.add %own, %own : {KIND}"
ONE = f"%one = stablehlo.constant dense<1.0> : {KIND}\n%two = stablehlo.add %own, %one : {KIND}"
OFFSET = f"{ONE}\n%out = {SUM.format('%two')}"


def program(inside: str) -> str:
    """A product over a dimension that is split, left in addends, and what a region makes of these."""
    return f"""module @m attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(
      %a: tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}]>}},
      %b: tensor<16x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> {KIND} {{
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> {KIND}
    %1 = sdy.sharding_constraint %0 <@mesh, [{{}}, {{}}], unreduced={{"x"}}> : {KIND}
    %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{{}}, {{}}], unreduced={{"x"}}>]
        out_shardings=[<@mesh, [{{}}, {{}}]>] manual_axes={{"x"}} (%own: {KIND}) {{
      {inside}
      sdy.return %out : {KIND}
    }} : ({KIND}) -> {KIND}
    return %2 : {KIND}
  }}
}}
"""


@cache
def partitioned(inside: str, folder: Path) -> str:
    hlo_verify.verify(program(inside), keep=folder, refute=False)
    return (folder / "partitioned.hlo").read_text()


@pytest.mark.parametrize("inside", [PSUM, TWICE, LATER, OFFSET], ids=["sum", "twice", "later", "offset"])
def test_what_hangs_on_the_sum_alone_is_proved(inside: str) -> None:
    assert hlo_verify.verify(program(inside)).verdict is Verdict.PROVED


@pytest.mark.parametrize("inside", [EARLY, SQUARES, ALONE], ids=["early", "squares", "alone"])
def test_what_hangs_on_the_addends_is_not(inside: str) -> None:
    """XLA hands over its own addends; others would do as well, and give something else."""
    assert hlo_verify.verify(program(inside)).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("inside", "other"),
    [(PSUM, TWICE), (TWICE, PSUM), (LATER, EARLY), (EARLY, LATER), (PSUM, ALONE), (PSUM, OFFSET), (PSUM, SQUARES)],
)
def test_another_region_is_not_it(inside: str, other: str, tmp_path: Path) -> None:
    found = partitioned(other, tmp_path)
    assert hlo_verify.verify(program(inside), found).verdict is not Verdict.PROVED


def test_a_sum_over_fewer_devices_is_not_it(tmp_path: Path) -> None:
    found = partitioned(PSUM, tmp_path)
    assert "{{0,1,2,3}}" in found
    found = found.replace("{{0,1,2,3}}", "{{0,1},{2,3}}")
    assert hlo_verify.verify(program(PSUM), found).verdict is not Verdict.PROVED


def test_a_loop_is_handed_other_addends_in_every_turn() -> None:
    """A sum over turns of what one device is handed, with alternating signs, would be 0 if they were the same."""
    region = program(PSUM).split("%2 = ")[1].split("return %2")[0]
    loop = f"""%n = stablehlo.constant dense<2> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %last:2 = stablehlo.while(%i = %z, %c = %1) : tensor<i32>, {KIND} cond {{
      %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %2 = {region.replace("(%1)", "(%c)")}
      stablehlo.return %next, %2 : tensor<i32>, {KIND}
    }}
    return %last#1"""
    head, tail = program(PSUM).split("%2 = ")
    text = head + loop + tail.split("return %2")[1]
    assert hlo_verify.verify(text).verdict is Verdict.UNKNOWN
