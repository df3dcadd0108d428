"""Programs of several ranks: sends and receives that meet, collectives in one order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hlo_verify import cli
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.linter.lint import LintReport, lint, lint_ranks
from tests.support.hlo import ADD, reducer

SHAPE = "f32[4]"


def program(events: Sequence[str], dtype: str = "f32") -> str:
    """A rank's program: `send 1 0>1` posts, `done send 1` waits; by channel, with source and target."""
    lines = ["  p = f32[4] parameter(0)", f"  x = {dtype}[4] convert(p)", "  t = token[] after-all()"]
    for number, event in enumerate(events):
        what, channel, *ends = event.replace("done ", "done-").split()
        name = f"{what.replace('done-', 'done_')}{channel}"
        if what in ("all-reduce", "all-top"):
            by = "add" if what == "all-reduce" else "top"
            groups = "replica_groups={{0,1}}, use_global_device_ids=true"
            lines.append(f"  r{number} = f32[4] all-reduce(p), channel_id={channel}, to_apply={by}, {groups}")
        elif what == "send":
            lines.append(f"  {name} = ({dtype}[4], u32[], token[]) send(x, t), channel_id={channel}, {_pairs(ends[0])}")
        elif what == "recv":
            lines.append(f"  {name} = ({dtype}[4], u32[], token[]) recv(t), channel_id={channel}, {_pairs(ends[0])}")
        else:
            end = what.removeprefix("done-")
            shape = "token[]" if end == "send" else f"({dtype}[4], token[])"
            lines.append(f"  {name} = {shape} {end}-done({end}{channel}), channel_id={channel}")
    reducers = ADD + reducer("top", "maximum")
    body = "\n".join([*lines, "  ROOT z = f32[4] negate(p)"])
    return f"HloModule m, is_scheduled=true, num_partitions=2\n{reducers}ENTRY e {{\n{body}\n}}\n"


def _pairs(ends: str) -> str:
    source, target = ends.split(">")
    return f"frontend_attributes={{_xla_send_recv_source_target_pairs={{{{{source},{target}}}}}}}"


def report(folder: Path, *texts: str, buffered: bool = False) -> LintReport:
    paths = {}
    for number, text in enumerate(texts):
        (folder / f"rank{number}.txt").write_text(text)
        paths[folder / f"rank{number}.txt"] = [number]
    return lint_ranks(paths, buffered_sends=buffered)


SEND_FIRST = [
    ["send 1 0>1", "done send 1", "recv 2 1>0", "done recv 2"],
    ["send 2 1>0", "done send 2", "recv 1 0>1", "done recv 1"],
]
POSTED = [
    ["recv 2 1>0", "send 1 0>1", "done send 1", "done recv 2"],
    ["recv 1 0>1", "send 2 1>0", "done send 2", "done recv 1"],
]


@pytest.mark.parametrize(
    ("events", "buffered", "names"),
    [
        ([["send 1 0>1", "done send 1"], ["recv 1 0>1", "done recv 1"]], False, []),
        (POSTED, False, []),
        (SEND_FIRST, False, ["send_recv_deadlock"]),
        (SEND_FIRST, True, []),
        ([[*events[2:], *events[:2]] for events in SEND_FIRST], True, ["send_recv_deadlock"]),  # both receive first
        ([["send 1 0>1", "done send 1"], []], False, ["send_without_recv"]),
        ([[], ["recv 1 0>1", "done recv 1"]], False, ["recv_without_send"]),
        (
            [
                ["send 1 0>1", "send 2 0>1", "done send 1", "done send 2"],
                ["recv 2 0>1", "done recv 2", "recv 1 0>1", "done recv 1"],
            ],
            False,
            [],
        ),
        (
            [
                ["send 1 0>1", "done send 1", "send 2 0>1", "done send 2"],
                ["recv 2 0>1", "done recv 2", "recv 1 0>1", "done recv 1"],
            ],
            False,
            ["send_recv_deadlock"],
        ),
    ],
)
def test_sends_and_receives(events: list[list[str]], buffered: bool, names: list[str], tmp_path: Path) -> None:
    found = report(tmp_path, *map(program, events), buffered=buffered).findings
    assert [one.name for one in found] == names


@pytest.mark.parametrize(
    ("events", "buffered", "is_stuck"),
    [
        (["send 1 0>1", "done send 1", "all-reduce 9"], False, False),
        (["all-reduce 9", "send 1 0>1", "done send 1"], False, True),  # the other one receives before it
        (["all-reduce 9", "send 1 0>1", "done send 1"], True, True),
        (["send 1 0>1", "all-reduce 9", "done send 1"], False, False),
    ],
)
def test_sends_and_collectives_wait_for_each_other(
    events: list[str], buffered: bool, is_stuck: bool, tmp_path: Path
) -> None:
    receives = ["recv 1 0>1", "done recv 1", "all-reduce 9"]
    found = report(tmp_path, program(events), program(receives), buffered=buffered).findings
    assert [one.name for one in found] == ["send_recv_deadlock"] * is_stuck
    if is_stuck:
        assert found[0].message == "device 0 waits in %r0 for device 1; device 1 waits in %done_recv1 for device 0"


def test_a_collective_that_is_waited_for_later_keeps_nobody(tmp_path: Path) -> None:
    sends = program(["all-reduce 9", "send 1 0>1", "done send 1"])
    later = sends.replace(" all-reduce(p)", " all-reduce-start(p)").replace("r0 = ", "s0 = ")
    later = later.replace("  ROOT", "  r0 = f32[4] all-reduce-done(s0)\n  ROOT")
    receives = program(["recv 1 0>1", "done recv 1", "all-reduce 9"])
    assert report(tmp_path, later, receives).findings == ()


def test_sends_and_collectives_of_one_program_wait_for_each_other() -> None:
    alone = ["all-reduce 9", "send 1 0>1", "done send 1", "recv 1 0>1", "done recv 1"]
    assert lint(program(alone)).findings == ()
    turned = program(["recv 1 0>1", "done recv 1", *alone[:3]])
    assert [one.name for one in lint(turned).findings] == ["send_recv_deadlock"]


def test_how_often_a_loop_meets_is_not_known(tmp_path: Path) -> None:
    """So where one does, nobody is taken to wait in a collective."""
    texts = [
        program(["all-reduce 9", "send 1 0>1", "done send 1"]),
        program(["recv 1 0>1", "done recv 1", "all-reduce 9"]),
    ]
    body = """b {
  s = f32[4] parameter(0)
  ROOT n = f32[4] all-reduce(s), channel_id=8, to_apply=add, replica_groups={{0,1}}, use_global_device_ids=true
}
c {
  a = f32[4] parameter(0)
  ROOT f = pred[] constant(false)
}
ENTRY"""
    loop = "  l = f32[4] while(p), condition=c, body=b\n  ROOT"
    looped = [text.replace("ENTRY", body).replace("  ROOT z", f"{loop} z") for text in texts]
    assert report(tmp_path, *looped).findings == ()


def test_a_deadlock_says_who_waits_for_whom(tmp_path: Path) -> None:
    [found] = report(tmp_path, *map(program, SEND_FIRST)).findings
    assert found.message == ("device 0 waits in %done_send1 for device 1; device 1 waits in %done_send2 for device 0")


def test_shapes_and_pairs(tmp_path: Path) -> None:
    sender, receiver = program(["send 1 0>1", "done send 1"], "bf16"), program(["recv 1 0>1", "done recv 1"])
    assert [one.name for one in report(tmp_path, sender, receiver).findings] == ["send_recv_shape_mismatch"]
    both = program(["recv 1 0>1", "send 1 0>1", "done send 1", "done recv 1"])
    assert lint(both).findings == ()
    other = both.replace(
        "recv(t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}",
        "recv(t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{1,0}}}",
    )
    assert {one.name for one in lint(other).findings} == {"send_recv_pairs_mismatch"}
    twice = both.replace("{{0,1}}", "{{0,1},{0,0}}")
    assert "send_recv_illegal" in {one.name for one in lint(twice).findings}


@pytest.mark.parametrize(
    ("ours", "theirs", "name"),
    [
        (["all-reduce 1", "all-reduce 2"], ["all-reduce 1", "all-reduce 2"], None),
        (["all-reduce 1", "all-reduce 2"], ["all-reduce 7", "all-reduce 8"], None),  # numbered apart
        (["all-reduce 1", "all-reduce 2"], ["all-reduce 2", "all-reduce 1"], "collective_order"),
        (["all-reduce 1", "all-top 1"], ["all-top 1", "all-reduce 1"], "collective_order"),
        (["all-reduce 1", "all-reduce 2"], ["all-reduce 2"], "collective_missing_on_rank"),
        ([], ["all-reduce 2"], "collective_missing_on_rank"),
    ],
)
def test_collectives(ours: list[str], theirs: list[str], name: str | None, tmp_path: Path) -> None:
    assert [one.name for one in report(tmp_path, program(ours), program(theirs)).findings] == ([name] if name else [])


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, events in enumerate(SEND_FIRST):
        (tmp_path / f"rank{number}.txt").write_text(program(events))
    paths = [str(tmp_path / "rank0.txt"), str(tmp_path / "rank1.txt")]
    assert cli.main(["lint", "--ranks", *paths]) == 1
    assert "HV803" in capsys.readouterr().out
    assert cli.main(["lint", "--ranks", "--buffered-sends", f"{paths[0]}=0", f"{paths[1]}=1"]) == 0
    capsys.readouterr()
    for argv in (
        ["--ranks", f"{paths[0]}=x"],
        ["--ranks", f"{paths[0]}=0-99999999999"],
        ["--ranks", f"{paths[0]}=1", f"{paths[1]}=0-1"],
        ["--buffered-sends", paths[0]],
    ):
        assert cli.main(["lint", *argv]) == 2
        assert "error[HV400]" in capsys.readouterr().err


def test_a_device_runs_one_program(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(program([]))
    (tmp_path / "b.txt").write_text(program([]))
    with pytest.raises(InputError, match="device 1 is said to run two"):
        lint_ranks({tmp_path / "a.txt": [0, 1], tmp_path / "b.txt": [1]})
    for numbers in ([], [-1, 0]):
        with pytest.raises(InputError, match="one device or more, numbered from 0"):
            lint_ranks({tmp_path / "a.txt": numbers})


ENTERED = """HloModule m, num_partitions=4
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
joined {
  x = f32[4] parameter(0)
  ROOT r = f32[4] all-reduce(x), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=add
}
alone {
  ROOT y = f32[4] parameter(0)
}
ENTRY e {
  p = f32[4] parameter(0)
  id = u32[] partition-id()
  first = u32[] constant(FIRST)
  is_first = pred[] compare(id, first), direction=EQ
  ROOT c = f32[4] conditional(is_first, p, p), true_computation=joined, false_computation=alone
}
"""


@pytest.mark.parametrize(("first", "found"), [(0, ["collective_not_entered_by_all"]), (2, [])])
def test_who_enters_is_asked_of_a_program_of_some_devices(first: int, found: list[str], tmp_path: Path) -> None:
    """Device 0 comes to a collective without device 1, which runs the same program; of what 2 and 3 do in one that they
    do not run, nothing is said."""
    other = ENTERED.replace(
        "conditional(is_first, p, p), true_computation=joined, false_computation=alone", "negate(p)"
    )
    for name, text in (("a", ENTERED.replace("FIRST", str(first))), ("b", other.replace("FIRST", "0"))):
        (tmp_path / name).write_text(text)
    report = lint_ranks({tmp_path / "a": [0, 1], tmp_path / "b": [2, 3]})
    assert [one.name for one in report.findings if one.name.startswith("collective_not")] == found
