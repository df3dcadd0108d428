"""Statistics of a device's own part; online softmax is none of these."""

from __future__ import annotations

import json

import pytest

from hlo_verify.linter.lint import lint
from tests.support.hlo import ADD, MAX

HEADER = (
    f"HloModule m, num_partitions=4\n{ADD}{MAX}"
    + """ENTRY e {
  x = f32[4,8] parameter(0)
  z = f32[] constant(0)
"""
)
ROWS, COLUMNS = "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}"
MAXIMUM = "m = f32[4] reduce(x, z), dimensions={1}, to_apply=max\n"
EXPONENTIAL = "b = f32[4,8] broadcast(%s), dimensions={0}\nd = f32[4,8] subtract(x, b)\ne = f32[4,8] exponential(d)\n"


def over(name: str, operand: str, reducer: str = "add") -> str:
    said = f"channel_id=1, use_global_device_ids=true, replica_groups={{{{0,1,2,3}}}}, to_apply={reducer}"
    return f"{name} = f32[4] all-reduce({operand}), {said}\n"


def found(lines: str, argument: str = COLUMNS, result: str = COLUMNS) -> list[tuple[str, str, str]]:
    shardings = json.dumps({"in": [argument], "out": [result]})
    findings = lint(f"{HEADER}{lines}}}\n", shardings=shardings).findings
    return [(one.name, one.severity.value, one.instruction) for one in findings]


ROOT_E = EXPONENTIAL.replace("e = ", "ROOT e = ")
LOCAL = [("local_statistic", "warning", "m")]


def test_the_maximum_of_a_softmax_over_a_split_dimension() -> None:
    assert found(MAXIMUM + ROOT_E % "m") == LOCAL
    assert found(MAXIMUM + ROOT_E % "m", ROWS, ROWS) == []
    assert found(MAXIMUM + over("n", "m", "max") + ROOT_E % "n") == []


@pytest.mark.parametrize("average", ["c = f32[4] constant({8, 8, 8, 8})\n", "c = f32[4] exponential(m)\n"])
def test_a_function_of_the_mean(average: str) -> None:
    mean = MAXIMUM.replace("max", "add") + average + "q = f32[4] divide(m, c)\n"
    assert found(mean + ROOT_E % "q") == LOCAL
    assert found(mean + over("n", "q") + ROOT_E % "n") == []


def test_online_softmax_brings_the_parts_together_later() -> None:
    lines = MAXIMUM + EXPONENTIAL % "m" + "l = f32[4] reduce(e, z), dimensions={1}, to_apply=add\n"
    lines += over("n", "m", "max") + "c = f32[4] subtract(m, n)\nk = f32[4] exponential(c)\np = f32[4] multiply(l, k)\n"
    assert found(lines + "ROOT " + over("r", "p"), result="{replicated}") == []


def test_a_running_maximum_is_none_of_one_part() -> None:
    lines = MAXIMUM + EXPONENTIAL % "m" + "y = f32[4,8] collective-permute(x), channel_id=2, "
    lines += "source_target_pairs={{0,1},{1,2},{2,3},{3,0}}\no = f32[4] reduce(y, z), dimensions={1}, to_apply=max\n"
    lines += "n = f32[4] maximum(m, o)\nv = f32[4,8] broadcast(n), dimensions={0}\nROOT w = f32[4,8] subtract(e, v)\n"
    assert found(lines) == []


def test_a_statistic_that_is_a_result_may_be_brought_together_by_who_gets_it() -> None:
    lines = MAXIMUM + EXPONENTIAL % "m" + "ROOT t = (f32[4,8], f32[4]) tuple(e, m)\n"
    shardings = json.dumps({"in": [COLUMNS], "out": [COLUMNS, ""]})
    assert lint(f"{HEADER}{lines}}}\n", shardings=shardings).findings == ()


def test_a_parameter_that_is_a_tuple() -> None:
    """The text says how each of its arrays lies."""
    text = HEADER.replace(
        "x = f32[4,8] parameter(0)",
        f"""p = (f32[4,8], f32[4]) parameter(0), sharding={{{COLUMNS}, {{replicated}}}}
  x = f32[4,8] get-tuple-element(p), index=0""",
    )
    assert [one.name for one in lint(text + MAXIMUM + ROOT_E % "m" + "}\n").findings] == ["local_statistic"]
    swapped = text.replace(f"{{{COLUMNS}, {{replicated}}}}", f"{{{ROWS}, {COLUMNS}}}")
    assert lint(swapped + MAXIMUM + ROOT_E % "m" + "}\n").findings == ()
    of_replicas = text.replace("num_partitions=4", "num_partitions=4, replica_count=2")
    assert lint(of_replicas + MAXIMUM + ROOT_E % "m" + "}\n").findings == ()


@pytest.mark.parametrize(("groups", "expected"), [("{{0,1},{2,3}}", LOCAL), ("{{0,1,2,3}}", [])])
def test_what_a_gather_brings_together_in_another_dimension_is_not_split_any_more(
    groups: str, expected: list[tuple[str, str, str]]
) -> None:
    """Rows are split over devices 0 and 1, columns over 0 and 2: one gather brings rows together, one both."""
    count = 2 if expected else 4
    said = f"channel_id=1, use_global_device_ids=true, replica_groups={groups}, dimensions={{0}}"
    lines = f"g = f32[{4 * count},8] all-gather(x), {said}\nm = f32[{4 * count}] reduce(g, z), dimensions={{1}}, "
    lines += f"to_apply=max\nb = f32[{4 * count},8] broadcast(m), dimensions={{0}}\n"
    lines += f"ROOT d = f32[{4 * count},8] subtract(g, b)\n"
    assert found(lines, "{devices=[2,2]<=[2,2]T(1,0)}", "") == expected
