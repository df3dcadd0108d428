"""Each defect of a collective is found in the smallest module that has it, and not in the one that has not."""

from __future__ import annotations

import pytest

from hlo_verify.linter.lint import lint
from tests.support.hlo import ADD


def module(line: str, header: str = "num_partitions=4") -> str:
    return f"HloModule m, {header}\n{ADD}ENTRY e {{\n  p = f32[8,4] parameter(0)\n  ROOT c = {line}\n}}\n"


REDUCE = "f32[8,4] all-reduce(p), channel_id=1, use_global_device_ids=true, to_apply=add, replica_groups="
GATHER = "f32[16,4] all-gather(p), channel_id=1, use_global_device_ids=true, dimensions={0}, replica_groups="
SCATTER = GATHER.replace("16", "4").replace("all-gather(p)", "reduce-scatter(p), to_apply=add")
EXCHANGE = "f32[8,4] all-to-all(p), channel_id=1, dimensions={0}, replica_groups="
PARTS = "(f32[8,4], f32[8,4]) all-to-all(p, p), channel_id=1, replica_groups="
SEND = "f32[8,4] collective-permute(p), channel_id=1, source_target_pairs="


@pytest.mark.parametrize(
    "line",
    [
        REDUCE + "{{0,1},{2,3}}",
        REDUCE + "{{0,1,2},{3}}",
        REDUCE + "[2,2]<=[4]",
        REDUCE + "mesh['a'=2,'b'=2] {'b'}",
        GATHER + "{{0,2},{1,3}}",
        SCATTER + "{{0,1},{2,3}}",
        REDUCE.replace("f32[8,4]", "bf16[8,4]") + "{{0,1,2,3}}",  # compilers mix precisions
        EXCHANGE + "{{0,1,2,3}}",
        PARTS + "{{0,1},{2,3}}",
        SEND + "{}",
        SEND + "{{0,1},{1,2},{2,3}}",
        SEND + "{{0,0},{1,1},{2,2},{3,3}}",
        "f32[8,4] all-reduce(p), to_apply=add, replica_groups={}",
    ],
)
def test_what_is_right(line: str) -> None:
    assert lint(module(line)).findings == ()


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (REDUCE + "{{0,1},{1,2,3}}", ["groups_overlap"]),
        (REDUCE + "{{0,0,1},{2,3}}", ["groups_overlap"]),
        (REDUCE + "{{0,1},{2,3,4}}", ["groups_id_out_of_range"]),
        (REDUCE + "{{0,1}}", ["groups_not_covering"]),
        (GATHER + "{{0,1,2},{3}}", ["groups_unequal"]),
        (GATHER + "{{0,1,2,3}}", ["group_size_shape_mismatch"]),
        (SCATTER + "{{0,1,2,3}}", ["group_size_shape_mismatch"]),
        (GATHER.replace("[16,4]", "[16,8]") + "{{0,1},{2,3}}", ["group_size_shape_mismatch"]),
        (GATHER.replace("f32[16,4]", "s32[16,4]") + "{{0,1},{2,3}}", ["group_size_shape_mismatch"]),
        (GATHER.replace("{0}", "{2}") + "{{0,1},{2,3}}", ["group_size_shape_mismatch"]),
        (REDUCE.replace("[8,4]", "[4,4]") + "{{0,1,2,3}}", ["group_size_shape_mismatch"]),
        (REDUCE.replace("f32[8,4]", "s32[8,4]") + "{{0,1,2,3}}", ["group_size_shape_mismatch"]),
        (REDUCE.replace("f32[8,4]", "(f32[8,4], f32[8,4])") + "{{0,1,2,3}}", ["group_size_shape_mismatch"]),
        (EXCHANGE.replace("{0}", "{1}").replace("4]", "2]") + "{{0,1,2,3}}", ["group_size_shape_mismatch"]),
        (EXCHANGE.replace("{0}", "{2}") + "{{0,1,2,3}}", ["group_size_shape_mismatch"]),
        (PARTS + "{{0,1,2,3}}", ["group_size_shape_mismatch"]),
        (REDUCE + "{{-1,0},{1,2}}", ["groups_illegal"]),
        (REDUCE + "{{0,1,2,x}}", ["groups_illegal"]),
        (REDUCE + "[2,3]<=[4]", ["groups_illegal"]),
        (REDUCE + "[2,2]<=[2,2]T(0,0)", ["groups_illegal"]),
        (SEND + "{{0,-1}}", ["permute_illegal"]),
        (SEND + "{{0,1,2}}", ["permute_illegal"]),
        (SEND + "{{0,1},{0,2}}", ["permute_duplicate_source"]),
        (SEND + "{{0,1},{2,1}}", ["permute_duplicate_target"]),
        (SEND + "{{3,4}}", ["permute_id_out_of_range"]),
        (SEND.replace("f32[8,4]", "f32[8,8]") + "{{0,1}}", ["permute_illegal"]),
        (
            "f32[8,4] all-reduce(p), use_global_device_ids=true, to_apply=add, replica_groups={{0,1,2,3}}",
            ["channel_illegal"],
        ),
        (
            "f32[8,4] all-reduce(p), channel_id=1, use_global_device_ids=true, to_apply=add, replica_groups={}",
            ["groups_illegal"],
        ),
    ],
)
def test_what_is_wrong(line: str, names: list[str]) -> None:
    found = lint(module(line)).findings
    assert [finding.name for finding in found] == names
    assert {finding.instruction for finding in found} == {"c"}


def test_numbers_are_those_of_the_mode() -> None:
    """Without a channel the groups are of replicas, of which there is one here; with global numbers, of devices."""
    line = "f32[8,4] all-reduce(p), to_apply=add, replica_groups={{0,1,2,3}}"
    assert [one.name for one in lint(module(line)).findings] == ["groups_id_out_of_range"]
    assert lint(module(line, "replica_count=4")).findings == ()
    assert lint(module(line, "is_scheduled=true")).findings == (), "nothing says how many devices there are"


def test_a_start_is_read_as_what_it_starts() -> None:
    start = "  s = (f32[8,4], f32[16,4]) all-gather-start(p), dimensions={0}, replica_groups={{0,1,2,3}}\n"
    text = module("f32[16,4] all-gather-done(s)", "replica_count=4").replace("  ROOT c", f"{start}  ROOT c")
    assert [(one.name, one.instruction) for one in lint(text).findings] == [("group_size_shape_mismatch", "s")]
