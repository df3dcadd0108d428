"""Instructions with two widths of floating-point numbers, as XLA writes them: conversions, and nothing else."""

from __future__ import annotations

import pytest

from hlo_verify.passes.chain.pair_programs import pair_of_wholes
from hlo_verify.passes.diagnose.examine import prove
from hlo_verify.passes.load.load import load
from hlo_verify.report import Verdict

MIXED = [
    "bf16[4] add(%x, %y)",
    "f32[4] add(%p, %y)",
    "bf16[4] multiply(%p, %y)",
    "f32[4] subtract(%p, %q)",
    "bf16[4] select(%c, %y, %p)",
    "bf16[4] divide(%y, %x)",
    "f32[8] concatenate(%y, %p), dimensions={0}",
    "bf16[2,4] broadcast(%y), dimensions={1}",
    "pred[4] compare(%p, %y), direction=LT",
]
"""What is computed of `x` and `y` in float32, `p` and `q` in bfloat16 and the condition `c`."""


def module(mixed: str, *, narrow: str = "bf16", fused: bool = False) -> str:
    """A module that computes it, itself or in a fusion, and gives it in float32."""
    of = mixed.partition(" ")[0].replace("bf16", narrow)
    result = of.replace("bf16", "f32")
    last = "copy" if of == result else "convert"
    given = "x: f32[4], y: f32[4], c: pred[4]"
    parameters = "  %x = f32[4] parameter(0)\n  %y = f32[4] parameter(1)\n  %c = pred[4] parameter(2)\n"
    kind = "copy" if narrow == "f32" else "convert"
    body = f"""({given}) -> {result} {{
{parameters}  %p = {narrow}[4] {kind}(%x)
  %q = {narrow}[4] {kind}(%y)
  %m = {mixed.replace("bf16", narrow)}
  ROOT %l = {result} {last}(%m)
}}
"""
    call = f"  ROOT %f = {result} fusion(%x, %y, %c), kind=kLoop, calls=%inside\n}}\n"
    entry = f"ENTRY %main ({given}) -> {result} {{\n{parameters}{call}" if fused else f"ENTRY %main {body}"
    return f"HloModule m\n\n{f'%inside {body}' if fused else ''}\n{entry}"


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("mixed", MIXED)
def test_it_is_read_with_conversions(mixed: str, fused: bool) -> None:
    found, in_float32 = load(module(mixed, fused=fused)), load(module(mixed, narrow="f32"))
    assert prove(*pair_of_wholes(in_float32, found)).verdict is Verdict.PROVED
    other = load(module(mixed.replace("%y", "%x").replace("%q", "%p"), narrow="f32"))
    assert prove(*pair_of_wholes(other, found)).verdict is not Verdict.PROVED


def test_the_type_that_it_gives_stays() -> None:
    (added, narrowed) = load(module("bf16[4] add(%x, %y)")).main.ops[-3:-1]
    assert (added.name, added.types[0].dtype) == ("add", "f32")
    assert (narrowed.name, narrowed.types[0].dtype) == ("convert", "bf16")


def test_the_result_lies_where_it_lay() -> None:
    placed = "sharding={devices=[2]<=[2]}"
    text = f"""HloModule m, num_partitions=2

ENTRY %main (x: f32[4]) -> bf16[4] {{
  %x = f32[4] parameter(0), {placed}
  ROOT %y = bf16[4] add(%x, %x), {placed}
}}
"""
    (found,) = load(text).result_shardings
    (given,) = load(text).argument_shardings
    assert found is not None and given is not None and found.tiles == given.tiles == (2,)


@pytest.mark.parametrize("mixed", ["f32[4] atan2(%p, %y)", "bf16[4] clamp(%x, %y, %p)"])
def test_all_operands_are_widened(mixed: str) -> None:
    dtypes = {op.name: op.types[0].dtype for op in load(module(mixed)).main.ops}
    assert dtypes[mixed.split()[1].partition("(")[0]] == "f32"
