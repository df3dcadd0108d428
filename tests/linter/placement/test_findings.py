"""Addends that are never added up, or twice, or over other devices; and programs in which nothing is wrong."""

from __future__ import annotations

import json

import pytest

from hlo_verify.linter.finding import Finding
from hlo_verify.linter.lint import lint
from tests.support.hlo import ADD, MAX

HEADER = f"HloModule m, num_partitions=4\n{ADD}{MAX}"
ROWS, COLUMNS, ALL = "{{0,1},{2,3}}", "{{0,2},{1,3}}", "{{0,1,2,3}}"
BY_ROW = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"
BY_COLUMN = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"
ROW_PARALLEL = ("{devices=[2,2]<=[4]}", BY_COLUMN)
"""A batch that is split over rows, whose features and the weights are split within each."""
MANUAL, COMPILED = "jit(f)/shard_map/dot_general", "jit(f)/dot_general"


def reduced(
    name: str, operand: str, groups: str, shape: str = "f32[4,4]", reducer: str = "add", called: str = ""
) -> str:
    said = f"channel_id=1, use_global_device_ids=true, replica_groups={groups}, to_apply={reducer}"
    return f'{name} = {shape} all-reduce({operand}), {said}, metadata={{op_name="{called}"}}\n'


def product(name: str = "d", called: str = MANUAL) -> str:
    """The product of the two parameters, contracted over the dimension that both are split along."""
    said = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    return f'{name} = f32[4,4] dot(x, w), {said}, metadata={{op_name="{called}"}}\n'


def found(lines: str, result: str = BY_ROW, arguments: tuple[str, ...] = ROW_PARALLEL) -> list[Finding]:
    text = f"{HEADER}ENTRY e {{\n  x = f32[4,4] parameter(0)\n  w = f32[4,4] parameter(1)\n{lines}}}\n"
    shardings = json.dumps({"in": arguments, "out": [result]})
    return [one for one in lint(text, shardings=shardings).findings if one.code.startswith("HV5")]


def names(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(one.name, one.severity.value, one.instruction) for one in findings]


def test_a_reduced_product_is_right() -> None:
    assert not found(product() + "ROOT " + reduced("r", "d", ROWS))


@pytest.mark.parametrize(
    ("called", "expected"), [(MANUAL, "partial_into_replicated_result"), (COMPILED, "missing_reduction")]
)
def test_an_addend_at_a_result(called: str, expected: str) -> None:
    assert names(found(product(called=called) + "ROOT r = f32[4,4] negate(d)\n")) == [(expected, "error", "d")]


def test_a_result_may_be_an_addend_where_it_is_said_to_be_split() -> None:
    assert not found(product() + "ROOT r = f32[4,4] negate(d)\n", result="{devices=[2,2]<=[4]}")


def test_an_addend_in_a_function() -> None:
    assert names(found(product() + "ROOT r = f32[4,4] tanh(d)\n")) == [("partial_into_nonlinear", "error", "r")]


def test_a_function_of_an_addend_that_is_added_up_later_is_a_warning() -> None:
    lines = product() + "t = f32[4,4] tanh(d)\nROOT " + reduced("r", "t", ROWS)
    assert names(found(lines)) == [("partial_into_nonlinear", "warning", "t")]


def test_the_greatest_addend_is_a_warning() -> None:
    lines = product() + "ROOT " + reduced("r", "d", ROWS, reducer="max")
    assert names(found(lines)) == [("partial_into_nonlinear", "warning", "r")]


def test_hidden_units_are_no_addends() -> None:
    """What a device computes of its own columns, and sums over its own rows of the next weights, is right."""
    said = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    lines = f'h = f32[4,4] dot(x, w), {said}, metadata={{op_name="{MANUAL}"}}\nt = f32[4,4] tanh(h)\n'
    lines += f'v = f32[4,4] parameter(2)\nd = f32[4,4] dot(t, v), {said}, metadata={{op_name="{MANUAL}"}}\n'
    columns = "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"
    assert not found(lines + "ROOT " + reduced("r", "d", ROWS), arguments=(BY_ROW, columns, BY_COLUMN))


def test_two_addends_in_a_product() -> None:
    said = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    lines = f'{product()}c = f32[4,4] dot(x, w), {said}, metadata={{op_name="{MANUAL}"}}\n'
    lines += "ROOT p = f32[4,4] multiply(d, c)\n"
    assert names(found(lines)) == [("partial_times_partial", "error", "p")]


@pytest.mark.parametrize("called", [MANUAL, COMPILED])
def test_a_reduction_over_other_devices(called: str) -> None:
    lines = product(called=called) + reduced("r", "d", COLUMNS, called=called) + "ROOT t = f32[4,4] tanh(r)\n"
    assert ("wrong_axis_reduction", "error", "r") in names(found(lines))


def test_a_sum_that_is_completed_in_two_steps_is_right() -> None:
    lines = product() + reduced("r", "d", COLUMNS) + "ROOT " + reduced("q", "r", ROWS)
    split = "{devices=[1,4]<=[4]}", "{devices=[4,1]<=[4]}"
    assert not found(lines, result="{replicated}", arguments=split)


@pytest.mark.parametrize(
    "between",
    [
        "",
        "n = f32[4,4] negate(r)\n",
        "z = f32[] constant(0)\ny = f32[4,4] broadcast(z), dimensions={}\nn = f32[4,4] maximum(r, y)\n",
    ],
)
def test_a_sum_that_is_added_up_again(between: str) -> None:
    lines = product() + reduced("r", "d", ROWS) + between + "ROOT " + reduced("q", "n" if between else "r", ROWS)
    assert names(found(lines)) == [("double_reduction", "error", "q")]


@pytest.mark.parametrize(
    ("factor", "severity"),
    [
        ("0.5", "warning"),
        ("0.125", "warning"),
        ("0.05", "warning"),  # 0.1 over two devices
        ("12.5", "warning"),
        ("0.001", "error"),
        ("3", "error"),
    ],
)
def test_a_factor_that_may_take_the_mean(factor: str, severity: str) -> None:
    lines = product() + reduced("r", "d", ROWS) + reduced("q", "r", ROWS) + f"c = f32[] constant({factor})\n"
    lines += "y = f32[4,4] broadcast(c), dimensions={}\nROOT m = f32[4,4] multiply(q, y)\n"
    assert names(found(lines)) == [("double_reduction", severity, "q")]


def test_a_quotient_of_two_sums_that_are_too_large_is_a_warning() -> None:
    lines = product() + reduced("r", "d", ROWS) + reduced("q", "r", ROWS) + reduced("p", "r", ROWS)
    assert {one.severity.value for one in found(lines + "ROOT m = f32[4,4] divide(q, p)\n")} == {"warning"}


@pytest.mark.parametrize(
    "after",
    [
        "y = f32[4,4] broadcast(z), dimensions={}\nROOT m = pred[4,4] compare(q, y), direction=GT\n",
        "y = f32[4,4] broadcast(z), dimensions={}\nROOT m = f32[4,4] divide(y, q)\n",
        "ROOT m = f32[4,4] divide(q, r)\n",
        "t = f32[] log(n)\ny = f32[4,4] broadcast(t), dimensions={}\nROOT m = f32[4,4] multiply(y, q)\n",
        "a = f32[4,4] abs(q)\nROOT m = f32[4,4] log(a)\n",
        "ROOT m = f32[4] reduce(q, z), dimensions={0}, to_apply=max\n",
    ],
)
def test_what_does_not_ask_for_the_factor_of_a_sum_is_a_warning(after: str) -> None:
    lines = product() + reduced("r", "d", ROWS) + reduced("q", "r", ROWS) + "z = f32[] constant(1)\n"
    lines += "n = f32[] reduce(r, z), dimensions={0,1}, to_apply=max\n" * ("log(n)" in after) + after
    result = "" if "f32[4] reduce" in after else BY_ROW
    said = [one for one in names(found(lines, result=result)) if one[0] != "local_statistic"]
    assert said == [("double_reduction", "warning", "q")]


@pytest.mark.parametrize("columns", [1, 2])
def test_the_sum_of_a_spread_broadcast_is_right(columns: int) -> None:
    """Each device has its columns of a broadcast of row sums: equal ones, that have to be added up."""
    lines = product() + reduced("r", "d", ROWS)
    lines += f"b = f32[4,4,{columns}] broadcast(r), dimensions={{0,1}}\nz = f32[] constant(0)\n"
    lines += "s = f32[4,4] reduce(b, z), dimensions={2}, to_apply=add\n"
    assert not found(lines + "ROOT " + reduced("q", "s", ROWS))


def test_a_sum_that_the_compiler_adds_up_again_is_a_warning() -> None:
    """Of a broadcast of which each device has one column, nothing is left in the module but its sum."""
    again = reduced("q", "r", ROWS, called="jit(f)/reduce_sum")
    lines = product(called=COMPILED) + reduced("r", "d", ROWS, called=COMPILED) + "ROOT " + again
    assert names(found(lines)) == [("double_reduction", "warning", "q")]


@pytest.mark.parametrize(
    ("called", "line", "severity"),
    [("dot_general", 7, "error"), ("dot_general", 8, "warning"), ("reduce_sum", 7, "warning")],
)
def test_a_product_that_the_compiler_adds_up_twice(called: str, line: int, severity: str) -> None:
    """A product has one reduction. Another one may be next to it, and a sum may be of a broadcast."""

    def at_line(said: str, number: int) -> str:
        return said.replace('"}', f'" source_file="train.py" source_line={number}}}')

    first = at_line(reduced("r", "d", ROWS, called=f"jit(f)/{called}"), 7)
    again = at_line(reduced("q", "r", ROWS, called=f"jit(f)/{called}"), line)
    assert names(found(product(called=COMPILED) + first + "ROOT " + again)) == [("double_reduction", severity, "q")]


def test_a_sum_of_a_spread_broadcast_in_two_steps_is_right() -> None:
    summed = 'metadata={op_name="jit(f)/reduce_sum"}'
    lines = "z = f32[] constant(0)\nb = f32[2,1,3] broadcast(x), dimensions={0,1}\n"
    lines += f"s = f32[] reduce(b, z), dimensions={{0,1,2}}, to_apply=add, {summed}\n"
    lines += reduced("r", "s", ROWS, "f32[]", called="jit(f)/reduce_sum")
    lines += "ROOT " + reduced("q", "r", COLUMNS, "f32[]", called="jit(f)/reduce_sum")
    text = f"{HEADER}ENTRY e {{\n  x = f32[2,1] parameter(0)\n{lines}}}\n"
    shardings = json.dumps({"in": [BY_ROW], "out": ["{replicated}"]})
    assert not [one for one in lint(text, shardings=shardings).findings if one.code.startswith("HV5")]


def test_an_addend_that_is_added_up_over_its_own_devices_later_is_a_warning() -> None:
    lines = product(called=COMPILED) + reduced("r", "d", COLUMNS, called=COMPILED)
    found_ = found(lines + "ROOT " + reduced("q", "r", ROWS, called=COMPILED))
    assert ("wrong_axis_reduction", "warning", "r") in names(found_)
    assert all(one.severity.value == "warning" for one in found_)


def test_counting_devices_is_right() -> None:
    lines = "c = f32[] constant(1)\n" + reduced("n", "c", ROWS, "f32[]") + "ROOT " + reduced("r", "n", COLUMNS, "f32[]")
    assert not found(lines, result="{replicated}")


def test_a_result_of_ones_own_shard() -> None:
    assert names(found("ROOT r = f32[4,4] tanh(x)\n")) == [("unequal_replicated_result", "error", "r")]


def test_what_is_taken_away_again_makes_no_difference() -> None:
    """`x + (q - x)` is `q`, as in a straight-through estimator."""
    lines = reduced("q", "x", ROWS) + "m = f32[4,4] subtract(q, x)\nROOT r = f32[4,4] add(x, m)\n"
    assert not found(lines)


@pytest.mark.parametrize("start", ["0", "4"])
def test_a_loop_without_a_turn_changes_nothing(start: str) -> None:
    """A body that makes what it carries differ, entered or not."""
    text = f"""{HEADER}body {{
  c = (s32[], f32[4,4]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  o = s32[] constant(1)
  j = s32[] add(i, o)
  v = f32[4,4] get-tuple-element(c), index=1
  k = f32[4,4] copy(v)
  ROOT t = (s32[], f32[4,4]) tuple(j, k)
}}
more {{
  c = (s32[], f32[4,4]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(4)
  ROOT p = pred[] compare(i, n), direction=LT
}}
ENTRY e {{
  x = f32[4,4] parameter(0)
  w = f32[4,4] parameter(1)
  {product()}  s = s32[] constant({start})
  t = (s32[], f32[4,4]) tuple(s, d)
  l = (s32[], f32[4,4]) while(t), condition=more, body=body
  ROOT r = f32[4,4] get-tuple-element(l), index=1
}}
"""
    shardings = json.dumps({"in": ROW_PARALLEL, "out": [BY_ROW]})
    assert [one.name for one in lint(text, shardings=shardings).errors] == ["partial_into_replicated_result"]


LOOKUP = """  low = u32[] partition-id()
  one = u32[] constant(1)
  two = u32[] constant(2)
  column = u32[] and(low, one)
  offset = u32[] multiply(column, two)
  first = s32[] convert(offset)
  firsts = s32[4] broadcast(first), dimensions={}
  at = s32[4] subtract(x, firsts)
  zero = s32[] constant(0)
  last = s32[] constant(1)
  lows = s32[4] broadcast(zero), dimensions={}
  lasts = s32[4] broadcast(last), dimensions={}
  inside = s32[4] clamp(lows, at, lasts)
  is = pred[4] compare(inside, at), direction=EQ
  rows = f32[4,4] gather(w, inside), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
      index_vector_dim=1, slice_sizes={1,4}
  mask = pred[4,4] broadcast(is), dimensions={0}
  none = f32[] constant(0)
  nones = f32[4,4] broadcast(none), dimensions={}
  found = f32[4,4] select(mask, rows, nones)
"""
"""What a device finds in its part of a table, for indices that others may have: zero for those."""


@pytest.mark.parametrize("is_right", [True, False])
def test_a_lookup_in_a_table_that_is_split(is_right: bool) -> None:
    last = reduced("r", "found", ROWS) if is_right else "r = f32[4,4] negate(found)\n"
    text = f"{HEADER}ENTRY e {{\n  x = s32[4] parameter(0)\n  w = f32[2,4] parameter(1)\n{LOOKUP}  ROOT {last}}}\n"
    shardings = json.dumps({"in": ["{devices=[2,2]<=[4] last_tile_dim_replicate}", BY_COLUMN], "out": [BY_ROW]})
    errors = [(one.name, one.related[-1]) for one in lint(text, shardings=shardings).errors]
    assert errors == ([] if is_right else [("missing_reduction", "r")])
