"""Two programs of the same devices are told apart exactly where some device gets another result."""

from __future__ import annotations

import pytest

from hlo_verify.passes.chain.pair_programs import knows_devices, pair_of_programs, pair_of_wholes
from hlo_verify.passes.diagnose.examine import prove
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.prove import glance
from hlo_verify.report import Verdict

HEAD = """HloModule m, num_partitions=4

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

"""
ALL = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%sum"
HALVES = "channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%sum"


def program(*lines: str, root: str = "y") -> str:
    body = "".join(f"  {'ROOT ' if line.startswith(f'%{root} ') else ''}{line}\n" for line in lines)
    return f"{HEAD}ENTRY %main (x: f32[8]) -> f32[8] {{\n  %x = f32[8]{{0}} parameter(0)\n{body}}}\n"


SUM = program(f"%y = f32[8] all-reduce(%x), {ALL}")
TWICE = program("%z = f32[8] add(%x, %x)", f"%y = f32[8] all-reduce(%z), {ALL}")
TWICE_AFTER = program(f"%z = f32[8] all-reduce(%x), {ALL}", "%y = f32[8] add(%z, %z)")
SCATTERED = program(
    f"%z = f32[2] reduce-scatter(%x), {ALL}, dimensions={{0}}",
    "%y = f32[8] all-gather(%z), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true",
)
FOUR_TIMES = program(
    "%c = f32[] constant(4)", "%b = f32[8] broadcast(%c), dimensions={}", "%y = f32[8] multiply(%x, %b)"
)
NUMBERED = program(
    "%p = u32[] partition-id()",
    "%c = f32[] convert(%p)",
    "%b = f32[8] broadcast(%c), dimensions={}",
    "%y = f32[8] multiply(%x, %b)",
)
PLAIN = program("%y = f32[8] add(%x, %x)")


@pytest.mark.parametrize(
    ("first", "second"), [(SUM, SUM), (TWICE, TWICE_AFTER), (SUM, SCATTERED), (NUMBERED, NUMBERED)]
)
def test_equal_programs(first: str, second: str) -> None:
    assert glance(*pair_of_programs(load(first), load(second), 4)).is_all


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (SUM, program("%y = f32[8] copy(%x)")),
        (SUM, program(f"%y = f32[8] all-reduce(%x), {HALVES}")),
        (SUM, FOUR_TIMES),  # equal where all devices hold the same, which nothing says
        (NUMBERED, program("%y = f32[8] add(%x, %x)")),
        (TWICE, SUM),
    ],
)
def test_programs_that_differ(first: str, second: str) -> None:
    assert prove(*pair_of_programs(load(first), load(second), 4)).verdict is not Verdict.PROVED
    assert prove(*pair_of_programs(load(second), load(first), 4)).verdict is not Verdict.PROVED


def test_which_programs_know_of_devices() -> None:
    assert all(map(knows_devices, map(load, (SUM, SCATTERED, NUMBERED))))
    assert not knows_devices(load(PLAIN))


def test_programs_for_no_device() -> None:
    twice = PLAIN.replace("add(%x, %x)", "subtract(%x, %x)")
    assert prove(*pair_of_wholes(load(PLAIN), load(PLAIN))).verdict is Verdict.PROVED
    assert prove(*pair_of_wholes(load(PLAIN), load(twice))).verdict is not Verdict.PROVED
