"""Sequences of thunks: each defect in the smallest one that has it, and none in those that XLA made."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo.thunks import parse_thunks
from hlo_verify.linter.lint import lint

TESTDATA = Path(__file__).parents[2] / "testdata" / "scheduled"

MODULE = """HloModule m, is_scheduled=true, num_partitions=2
g {
  gp = f32[4] parameter(0)
  ROOT ga = f32[8] all-gather(gp), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, dimensions={0}
}
f {
  fp = f32[8] parameter(0)
  ROOT fn = f32[8] negate(fp)
}
ENTRY e {
  p = f32[4] parameter(0)
  s = ((f32[4]), f32[8]) async-start(p), calls=g
  d = f32[8] async-done(s)
  a.1 = f32[8] fusion(d), kind=kLoop, calls=f
  ROOT b.1 = f32[8] fusion(a.1), kind=kLoop, calls=f
}
"""
START = "kAsyncStart   [source       | next=004 (1)] stream=communication_stream[0], async_id=1"
GATHER = "    002: kAllGather [source | sink] kAllGather"
DONE = "kAsyncDone    [source       | sink        ] async_id=1"
A = "kCustomKernel [prev=001 (1) | next=005 (1)] a_1 grid: [1, 1, 1] threads: [32, 1, 1]  shared_memory: 0 bytes"
B = "kCustomKernel [prev=004 (1) | sink        ] b_1 grid: [1, 1, 1] threads: [32, 1, 1]  shared_memory: 0 bytes"


def sequence(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ((f"001: {START}", GATHER, f"003: {DONE}", f"004: {A}", f"005: {B}"), []),
        (
            (
                "000: kCommandBuffer [source | sink] ",
                f"    001: {START}",
                f"    {GATHER}",
                f"    003: {DONE}",
                f"    004: {A}",
                f"    005: {B}",
            ),
            [],
        ),
        ((f"001: {START}", GATHER, f"004: {A}", f"003: {DONE}", f"005: {B}"), [("use_before_done", "a.1")]),
        ((f"001: {START}", GATHER, f"003: {DONE}", f"005: {B}", f"004: {A}"), ["dependency_violation"] * 2),
        ((f"001: {START}", GATHER, f"004: {A}", f"005: {B}"), [("orphan_start", "s")]),
        (
            (f"001: {START}", GATHER, f"003: {DONE}", f"006: {DONE}", f"004: {A}"),
            [("done_twice", "thunk 006 AsyncDone")],
        ),
        (
            (f"001: {START}", GATHER, f"003: {DONE[:-1]}7", f"004: {A}"),
            [("orphan_start", "s"), ("done_kind_mismatch", "thunk 003 AsyncDone")],
        ),
        ((f"003: {DONE}", f"001: {START}", GATHER), [("dependency_violation", "d")]),
        (
            (f"001: {START.replace('source      ', 'prev=005 (1)')}", GATHER, f"003: {DONE}", f"005: {B}"),
            ["dependency_violation"],
        ),
    ],
)
def test_asynchronous_thunks(lines: tuple[str, ...], wanted: list[tuple[str, str] | str]) -> None:
    found = lint(MODULE, thunks=sequence(*lines)).findings
    assert sorted(one.name for one in found) == sorted(one if isinstance(one, str) else one[0] for one in wanted)
    assert {one[1] for one in wanted if not isinstance(one, str)} <= {one.instruction for one in found}


def test_what_a_kernel_of_many_instructions_says_of_none() -> None:
    """Two instructions with one code are launched as one kernel, which has the name of either."""
    twice = sequence(f"001: {START}", GATHER, f"004: {A}", f"003: {DONE}", f"005: {A}")
    assert not lint(MODULE, thunks=twice).findings
    assert lint(MODULE, thunks=twice).looked_at["thunks placed"] == 2


def test_loops_and_branches_hold_what_they_run() -> None:
    text = gzip.decompress((TESTDATA / "h100.cond_inner_axis.thunks.txt.gz").read_bytes()).decode()
    conditional = next(one for top in parse_thunks(text) for one in top.within() if one.kind == "Conditional")
    assert [(label, len(inner)) for label, inner in conditional.inner] == [("false_branch", 4), ("true_branch", 4)]


def test_what_xla_made() -> None:
    report = lint(TESTDATA / "h100.cond_inner_axis.hlo.gz", thunks=TESTDATA / "h100.cond_inner_axis.thunks.txt.gz")
    assert not report.findings
    assert report.looked_at["thunks"] == 17 and report.looked_at["thunks placed"] >= 8


@pytest.mark.parametrize("text", ["", "HloModule m\n", f"001: {START}\nwhat is this\n"])
def test_what_is_no_sequence(text: str) -> None:
    with pytest.raises(InputError):
        parse_thunks(text)
