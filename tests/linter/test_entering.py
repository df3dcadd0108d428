"""Who enters a collective: devices that may choose differently, and devices that surely agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlo_verify import cli
from hlo_verify.linter.finding import Finding
from hlo_verify.linter.lint import lint
from tests.support.hlo import ADD

HEADER = (
    f"HloModule m, num_partitions=4\n{ADD}"
    + """same {
  x = f32[8] parameter(0)
  ROOT n = f32[8] negate(x)
}
"""
)
ALL, ROWS, COLUMNS = "{{0,1,2,3}}", "{{0,1},{2,3}}", "{{0,2},{1,3}}"


def reduce(name: str, operand: str, groups: str, shape: str = "f32[8]", channel: int = 1) -> str:
    said = f"channel_id={channel}, use_global_device_ids=true, replica_groups={groups}, to_apply=add"
    return f"{name} = {shape} all-reduce({operand}), {said}"


def branch(name: str, *groups: str, channel: int = 1) -> str:
    """A computation that reduces its operand over each of the groups in turn."""
    lines = ["  x0 = f32[8] parameter(0)"]
    lines += [f"  {reduce(f'x{n + 1}', f'x{n}', each, channel=channel)}" for n, each in enumerate(groups)]
    return f"{name} {{\n" + "\n".join(lines) + f"\n  ROOT r = f32[8] copy(x{len(groups)})\n}}\n"


def conditional(predicate: str, branches: str, names: str = "here, same", more: str = "") -> str:
    """A module that takes a branch by `predicate`, which is the lines that make `p` of the parameters x and k."""
    return f"""{HEADER}{branches}
ENTRY e {{
  x = f32[8] parameter(0)
  k = s32[] parameter(1)
  zero = f32[] constant(0)
  id = u32[] partition-id()
  one = u32[] constant(1)
  {predicate}
  c = f32[8] conditional(p, x, x), true_computation={names.split(", ")[0]}, false_computation={names.split(", ")[1]}
  {more or "ROOT r = f32[8] copy(c)"}
}}
"""


ROW = "high = u32[] shift-right-logical(id, one)\n  p = pred[] compare(high, one), direction=EQ"
COLUMN = "low = u32[] and(id, one)\n  p = pred[] compare(low, one), direction=EQ"
TOTAL = "t = f32[] reduce(x, zero), dimensions={0}, to_apply=add\n  "
LOCAL = TOTAL + "p = pred[] compare(t, zero), direction=GT"
SPLIT = ("{devices=[4]<=[4]}", "{replicated}")
BY_ROW = ("{devices=[2,2]<=[4] last_tile_dim_replicate}", "{replicated}")
COPIES = ("{replicated}", "{replicated}")


def found(text: str, shardings: tuple[str, ...] | None = SPLIT) -> list[tuple[str, str]]:
    given = None if shardings is None else json.dumps({"in": shardings})
    findings = lint(text, shardings=given).findings
    return [(one.severity.value, one.name) for one in findings if not one.code.startswith("HV5")]


NOT_ALL, ORDER, TRIPS = "collective_not_entered_by_all", "collective_order", "device_dependent_trip_count"


@pytest.mark.parametrize(
    ("predicate", "groups", "shardings", "wanted"),
    [
        (ROW, ALL, COPIES, [("error", NOT_ALL)]),  # the other row takes the other branch
        (ROW, COLUMNS, COPIES, [("error", NOT_ALL)]),
        (ROW, ROWS, COPIES, []),  # each group takes one branch
        (COLUMN, COLUMNS, COPIES, []),
        (COLUMN, ROWS, COPIES, [("error", NOT_ALL)]),
        (LOCAL, ALL, COPIES, []),
        (LOCAL, ALL, SPLIT, [("error", NOT_ALL)]),
        (LOCAL, ROWS, SPLIT, [("error", NOT_ALL)]),
        (LOCAL, ROWS, BY_ROW, []),  # the devices of a row hold one shard
        (LOCAL, COLUMNS, BY_ROW, [("error", NOT_ALL)]),
        (LOCAL, ALL, None, [("warning", NOT_ALL)]),  # nobody says how x lies
        (LOCAL, "{{0},{1},{2},{3}}", SPLIT, []),
        ("p = pred[] constant(true)", ALL, SPLIT, []),
        ("z = s32[] constant(3)\n  p = pred[] compare(k, z), direction=LT", ALL, SPLIT, []),
    ],
)
def test_branches_by_device_and_by_data(
    predicate: str, groups: str, shardings: tuple[str, ...] | None, wanted: list[tuple[str, str]]
) -> None:
    assert found(conditional(predicate, branch("here", groups)), shardings) == wanted


REDUCED = TOTAL + reduce("u", "t", "GROUPS", "f32[]") + "\n  p = pred[] compare(u, zero), direction=GT"
RING = """t = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  y = f32[] collective-permute(t), channel_id=2, source_target_pairs={{0,1},{1,0},{2,3},{3,2}}
  u = f32[] add(t, y)
  p = pred[] compare(u, zero), direction=GT"""
GLOBAL = "channel_id=2, use_global_device_ids=true, replica_groups={{0,1,2,3}}"
GATHERED = f"""g = f32[32] all-gather(x), {GLOBAL}, dimensions={{0}}
  t = f32[] reduce(g, zero), dimensions={{0}}, to_apply=add
  p = pred[] compare(t, zero), direction=GT"""
SCATTERED = f"""y = f32[2] reduce-scatter(x), {GLOBAL}, dimensions={{0}}, to_apply=add
  t = f32[] reduce(y, zero), dimensions={{0}}, to_apply=add
  p = pred[] compare(t, zero), direction=GT"""
DRAWN = """one_f = f32[] constant(1)
  t = f32[] rng(zero, one_f), distribution=rng_uniform
  p = pred[] compare(t, zero), direction=GT"""
FINITE = TOTAL + "p = pred[] is-finite(t)"
ITSELF = TOTAL + "p = pred[] compare(t, t), direction=NE"
MIXED = """t = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  low = u32[] and(id, one)
  l = pred[] compare(low, one), direction=EQ
  u = f32[] select(l, t, zero)
  p = pred[] compare(u, zero), direction=GT"""


@pytest.mark.parametrize(
    ("predicate", "groups", "wanted"),
    [
        (REDUCED.replace("GROUPS", ALL), ALL, []),
        (REDUCED.replace("GROUPS", ROWS), ROWS, []),
        (REDUCED.replace("GROUPS", ROWS), ALL, [("error", NOT_ALL)]),
        (REDUCED.replace("GROUPS", "{{0,1,2},{3}}"), ALL, [("error", NOT_ALL)]),
        (GATHERED, ALL, []),
        (SCATTERED, ALL, [("warning", NOT_ALL)]),
        (RING, ROWS, [("warning", NOT_ALL)]),  # they do agree: it is a sum around a ring
        (DRAWN, ALL, [("warning", NOT_ALL)]),
        (FINITE, ALL, [("warning", NOT_ALL)]),  # true of all that are numbers
        (ITSELF, ALL, [("warning", NOT_ALL)]),
        (MIXED, ALL, [("warning", NOT_ALL)]),  # not the same function on all devices
    ],
)
def test_what_becomes_of_data(predicate: str, groups: str, wanted: list[tuple[str, str]]) -> None:
    assert found(conditional(predicate, branch("here", groups))) == wanted


def test_a_sum_of_copies_differs_by_groups_alone() -> None:
    """Groups of unequal size: 3 t and t, of one t on all devices. There is no input for which it is known to matter."""
    text = conditional(REDUCED.replace("GROUPS", "{{0,1,2},{3}}"), branch("here", ALL))
    assert found(text, COPIES) == [("warning", NOT_ALL)]


@pytest.mark.parametrize(
    ("here", "there", "wanted"),
    [
        ((ALL,), (ALL,), []),
        ((ALL, ROWS), (ALL, ROWS), []),
        ((ALL, COLUMNS), (COLUMNS, ALL), [("error", ORDER)]),
        ((ALL, ROWS), (ROWS, ALL), []),  # devices of one row take one branch: each meets the other row in one alone
        ((ALL, ALL), (ALL,), [("error", NOT_ALL)]),
        ((ALL,), (COLUMNS,), [("error", NOT_ALL)]),
        ((ROWS,), (ROWS, ROWS), []),
    ],
)
def test_two_branches_with_collectives(
    here: tuple[str, ...], there: tuple[str, ...], wanted: list[tuple[str, str]]
) -> None:
    branches = branch("here", *here) + branch("there", *there)
    assert found(conditional(ROW, branches, "here, there"), COPIES) == wanted


@pytest.mark.parametrize(("channel", "wanted"), [(1, []), (2, [("warning", ORDER)])])
def test_the_same_on_other_channels(channel: int, wanted: list[tuple[str, str]]) -> None:
    """GPUs match by the order alone, TPUs by channel as well."""
    branches = branch("here", ALL) + branch("there", ALL, channel=channel)
    for predicate in (ROW, LOCAL):
        assert found(conditional(predicate, branches, "here, there")) == wanted


def test_what_one_branch_lacks_and_a_later_one_has() -> None:
    """In the order of the communicator all devices meet once: no error, and a warning of each."""
    more = """q = pred[] not(p)
  d = f32[8] conditional(q, c, c), true_computation=later, false_computation=same
  ROOT r = f32[8] copy(d)"""
    branches = branch("here", ALL) + branch("later", ALL).replace(" x", " y").replace("(x", "(y").replace("r =", "v =")
    for predicate in (ROW, LOCAL):
        assert found(conditional(predicate, branches, more=more)) == [("warning", NOT_ALL)] * 2


def test_two_that_do_not_make_up_for_each_other() -> None:
    """Both are errors: whatever the second does, on devices with the data of the first or without, the first hangs."""
    again = branch("later", COLUMNS).replace(" x", " y").replace("(x", "(y").replace("r =", "v =")
    more = "d = f32[8] conditional(p, c, c), true_computation=later, false_computation=same\n  ROOT r = f32[8] copy(d)"
    assert found(conditional(LOCAL, branch("here", ALL) + again, more=more)) == [("error", NOT_ALL)] * 2


def test_a_later_collective_does_not_make_up_for_it() -> None:
    text = conditional(LOCAL, branch("here", ALL), more="ROOT " + reduce("r", "c", ALL))
    assert found(text) == [("error", NOT_ALL)]


def test_permutes_are_asked_pair_by_pair() -> None:
    pairs = {"{{0,1},{1,0},{2,3},{3,2}}": [], "{{0,2},{2,0}}": [("error", NOT_ALL)], "{{0,0},{3,3}}": []}
    for each, wanted in pairs.items():
        body = f"ROOT y = f32[8] collective-permute(x0), channel_id=1, source_target_pairs={each}"
        here = f"here {{\n  x0 = f32[8] parameter(0)\n  {body}\n}}\n"
        assert found(conditional(ROW, here), COPIES) == wanted


ASYNC = """inner {
  x9 = f32[8] parameter(0)
  ROOT REDUCE
}
here {
  x0 = f32[8] parameter(0)
  s = ((f32[8]), f32[8]) async-start(x0), calls=inner
  ROOT d = f32[8] async-done(s)
}
"""


@pytest.mark.parametrize("groups", [ALL, ROWS])
def test_collectives_that_are_started(groups: str) -> None:
    here = ASYNC.replace("REDUCE", reduce("y", "x9", groups))
    assert found(conditional(ROW, here), COPIES) == ([("error", NOT_ALL)] if groups == ALL else [])


THREE = conditional(
    "p = s32[] reduce(v, nil), dimensions={0}, to_apply=whole",
    "whole {\n  a2 = s32[] parameter(0)\n  b2 = s32[] parameter(1)\n  ROOT s2 = s32[] add(a2, b2)\n}\n"
    + branch("here", ALL)
    + branch("there", ALL, ALL),
).replace("  zero =", "  nil = s32[] constant(0)\n  v = s32[8] convert(x)\n  zero =")


@pytest.mark.parametrize(("names", "severity"), [("same, same, here", "warning"), ("same, here, there", "error")])
def test_branches_by_number(names: str, severity: str) -> None:
    """A conditional of three branches on data is an error only where no two of them would do."""
    old = "conditional(p, x, x), true_computation=here, false_computation=same"
    assert old in THREE
    text = THREE.replace(old, f"conditional(p, x, x, x), branch_computations={{{names}}}")
    assert found(text) == [(severity, NOT_ALL)]


def loop(entering: str, condition: str, groups: str, step: str = "more = s32[] add(n, one)") -> str:
    """A loop over (n, limit, x): `entering` makes `limit`, `condition` makes `go` of n, limit and x."""
    return f"""{HEADER}
cond {{
  q = (s32[], s32[], f32[8]) parameter(0)
  n = s32[] get-tuple-element(q), index=0
  limit = s32[] get-tuple-element(q), index=1
  x = f32[8] get-tuple-element(q), index=2
  zero = f32[] constant(0)
  {condition}
}}
body {{
  q2 = (s32[], s32[], f32[8]) parameter(0)
  n = s32[] get-tuple-element(q2), index=0
  limit2 = s32[] get-tuple-element(q2), index=1
  x2 = f32[8] get-tuple-element(q2), index=2
  one = s32[] constant(1)
  {step}
  {reduce("y", "x2", groups)}
  ROOT t2 = (s32[], s32[], f32[8]) tuple(more, limit2, y)
}}
ENTRY e {{
  x3 = f32[8] parameter(0)
  k = s32[] parameter(1)
  start = s32[] constant(0)
  id = u32[] partition-id()
  {entering}
  t = (s32[], s32[], f32[8]) tuple(start, limit3, x3)
  w = (s32[], s32[], f32[8]) while(t), condition=cond, body=body
  ROOT r = f32[8] get-tuple-element(w), index=2
}}
"""


COUNTED = "ROOT go = pred[] compare(n, limit), direction=LT"
BY_DEVICE = "limit3 = s32[] convert(id)"
BY_ROW_NUMBER = "one3 = u32[] constant(1)\n  high = u32[] shift-right-logical(id, one3)\n  limit3 = s32[] convert(high)"
BY_NORM = "s = f32[] reduce(x, zero), dimensions={0}, to_apply=add\n  ROOT go = pred[] compare(s, zero), direction=GT"


@pytest.mark.parametrize(
    ("entering", "condition", "groups", "shardings", "wanted"),
    [
        ("limit3 = s32[] copy(k)", COUNTED, ALL, SPLIT, []),
        ("limit3 = s32[] copy(k)", COUNTED, ALL, ("{replicated}", ""), [("warning", TRIPS)]),
        (BY_DEVICE, COUNTED, ALL, COPIES, [("error", TRIPS)]),
        (BY_DEVICE, COUNTED, "{{0},{1},{2},{3}}", COPIES, []),
        (BY_ROW_NUMBER, COUNTED, ROWS, COPIES, []),
        (BY_ROW_NUMBER, COUNTED, COLUMNS, COPIES, [("error", TRIPS)]),
        ("limit3 = s32[] constant(1000000)", COUNTED, ALL, SPLIT, []),
        ("limit3 = s32[] copy(k)", BY_NORM, ALL, SPLIT, [("error", TRIPS)]),
        ("limit3 = s32[] copy(k)", BY_NORM, ALL, COPIES, []),
        ("limit3 = s32[] copy(k)", BY_NORM, ROWS, BY_ROW, []),
    ],
)
def test_loops(
    entering: str, condition: str, groups: str, shardings: tuple[str, ...], wanted: list[tuple[str, str]]
) -> None:
    assert found(loop(entering, condition, groups), shardings) == wanted


def test_turns_that_are_the_same_after_all() -> None:
    """Devices count from their own number to that and 3: nothing but the replay sees that they agree."""
    text = loop(
        "three = s32[] constant(3)\n  mine = s32[] convert(id)\n  limit3 = s32[] add(mine, three)", COUNTED, ALL
    )
    assert found(text.replace("tuple(start, limit3", "tuple(mine, limit3"), COPIES) == [("warning", TRIPS)]


def test_turns_beyond_the_limit_are_no_error() -> None:
    text = loop(
        "many = s32[] constant(500)\n  mine = s32[] convert(id)\n  limit3 = s32[] add(mine, many)", COUNTED, ALL
    )
    assert found(text, COPIES) == [("warning", TRIPS)]


def test_each_device_in_its_own_turn() -> None:
    """In turn n device n alone comes to the collective: all have come once in the end, which the order allows."""
    inner = f"{branch('here', ALL)}body {{"
    step = """id2 = u32[] partition-id()
  mine = s32[] convert(id2)
  p = pred[] compare(n, mine), direction=EQ
  more = s32[] add(n, one)"""
    text = loop("limit3 = s32[] constant(4)", COUNTED, ALL, step).replace("body {", inner, 1)
    old = reduce("y", "x2", ALL)
    new = "y = f32[8] conditional(p, x2, x2), true_computation=here, false_computation=same"
    assert found(text.replace(f"  {old}\n  ROOT t2", f"  {new}\n  ROOT t2"), COPIES) == [("warning", NOT_ALL)]
    never = text.replace(f"  {old}\n  ROOT t2", f"  {new}\n  ROOT t2").replace("constant(4)", "constant(3)")
    assert found(never, COPIES) == [("error", NOT_ALL)]


def test_what_a_loop_leaves_differs_where_devices_left_it_apart() -> None:
    text = loop(BY_DEVICE, COUNTED, "{{0},{1},{2},{3}}")
    text = text.replace("cond {", branch("here", ALL) + "cond {", 1).replace(
        "  ROOT r = f32[8] get-tuple-element(w), index=2",
        """  n3 = s32[] get-tuple-element(w), index=0
  two = s32[] constant(2)
  p = pred[] compare(n3, two), direction=LT
  ROOT r2 = f32[8] conditional(p, x3, x3), true_computation=here, false_computation=same""",
    )
    assert [name for _, name in found(text, COPIES)] == [NOT_ALL]


def test_the_groups_count_replicas() -> None:
    text = conditional(ROW, branch("here", ALL)).replace("num_partitions=4", "replica_count=4")
    text = text.replace("partition-id", "replica-id").replace("channel_id=1, use_global_device_ids=true, ", "")
    assert found(text, None) == [("error", NOT_ALL)]


def test_what_is_said_of_it() -> None:
    finding: Finding = lint(conditional(ROW, branch("here", ALL))).findings[0]
    assert (finding.instruction, finding.related) == ("x1", ("c",))
    assert "device 2 comes to it in branch 0 of %c, and device 0" in finding.message


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.txt").write_text(conditional(LOCAL, branch("here", ALL)))
    (tmp_path / "s.json").write_text(json.dumps({"in": SPLIT}))
    given = ["lint", str(tmp_path / "m.txt")]
    assert cli.main(given) == 0  # a warning
    assert cli.main([*given, "--strict"]) == 1
    assert cli.main([*given, "--shardings", str(tmp_path / "s.json")]) == 1
    assert "error[HV612] x1: device 0 may come to it in branch 0 of %c" in capsys.readouterr().out
    (tmp_path / "s.json").write_text(json.dumps({"in": SPLIT[:1]}))
    assert cli.main([*given, "--shardings", str(tmp_path / "s.json")]) == 2
    assert "1 shardings for 2 parameters" in capsys.readouterr().err


def test_a_computation_that_enters_itself_is_left_alone() -> None:
    assert found(conditional(ROW, branch("here", ALL).replace("copy(x1)", "call(x1), to_apply=here"))) == []


def test_a_part_that_there_is_not() -> None:
    """A broken module: nothing is known of the predicate, and nothing is said."""
    assert found(conditional("t = () tuple()\n  p = pred[] get-tuple-element(t), index=3", branch("here", ALL))) == []


@pytest.mark.parametrize(("first", "second", "differ"), [("add", "top", True), ("add", "wide", False)])
def test_reductions_by_other_operations_are_others(first: str, second: str, differ: bool) -> None:
    """One branch adds up and then takes the greatest, the other begins with that. What converts and adds up adds up."""
    reducers = "top {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] maximum(a, b)\n}\n"
    reducers += (
        "wide {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = f64[] convert(a)\n  d = f64[] convert(b)\n"
    )
    reducers += "  e = f64[] add(c, d)\n  ROOT s = f32[] convert(e)\n}\n"

    def branch_by(name: str, *by: str) -> str:
        lines = branch(name, ALL, ALL).splitlines()
        return "\n".join([lines[0], lines[1], *map(_joined_by, lines[2:4], by), *lines[4:]]) + "\n"

    def _joined_by(line: str, reducer: str) -> str:
        return line.replace("to_apply=add", f"to_apply={reducer}")

    branches = reducers + branch_by("here", first, second) + branch_by("there", second, first)
    said = found(conditional(COLUMN, branches, "here, there"))
    assert said == ([("error", ORDER)] if differ else [])
