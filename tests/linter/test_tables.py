"""Integers of every device, against the reference interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.evaluate import dense, evaluate
from hlo_verify.hlo.meetings import Meetings
from hlo_verify.hlo.text import parse_hlo
from hlo_verify.linter.agreement import Value
from hlo_verify.linter.flow import Flow
from hlo_verify.linter.tables import RULES
from hlo_verify.passes.load.load import load

PROGRAM = """HloModule m, num_partitions=6
ENTRY e {{
  id = u32[] partition-id()
  d = s32[] convert(id)
  two = s32[] constant(2)
  small = s8[] convert(d)
  odd = s8[] constant(77)
  table = s32[6]{{0}} constant({{7, -3, 5, 0, -2147483648, 4}})
  pair = s32[2,3]{{1,0}} constant({{ {{1, 2, 3}}, {{-4, 5, -6}} }})
  at = s32[1]{{0}} dynamic-slice(table, d), dynamic_slice_sizes={{1}}
  mine = s32[] reshape(at)
  spread = s32[2,3]{{1,0}} broadcast(mine), dimensions={{}}
  low = pred[] compare(d, two), direction=LT
  {line}
}}
"""

LINES = {
    "constant": "ROOT r = s32[2,3]{1,0} add(pair, spread)",
    "iota": "n = s32[2,3]{1,0} iota(), iota_dimension=1\n  ROOT r = s32[2,3]{1,0} multiply(n, spread)",
    "add": "ROOT r = s32[] add(mine, mine)",
    "subtract": "ROOT r = s32[] subtract(two, mine)",
    "multiply": "x = s8[] multiply(small, odd)\n  ROOT r = s8[] multiply(x, small)",
    "and": "ROOT r = s32[] and(mine, d)",
    "or": "ROOT r = s32[] or(mine, d)",
    "xor": "ROOT r = s32[] xor(mine, d)",
    "not": "b = pred[] not(low)\n  ROOT r = s32[] convert(b)",
    "negate": "ROOT r = s32[] negate(mine)",
    "maximum": "ROOT r = s32[] maximum(mine, d)",
    "minimum": "ROOT r = s32[] minimum(mine, d)",
    "clamp": "ROOT r = s32[2,3]{1,0} clamp(d, pair, two)",
    "divide": "x = s32[] subtract(mine, two)\n  y = s32[] constant(-3)\n  ROOT r = s32[] divide(x, y)",
    "remainder": "x = s32[] subtract(mine, two)\n  y = s32[] constant(-3)\n  ROOT r = s32[] remainder(x, y)",
    "shift-left": "ROOT r = s32[] shift-left(mine, d)",
    "shift-right-logical": "ROOT r = s32[] shift-right-logical(mine, d)",
    "shift-right-arithmetic": "ROOT r = s32[] shift-right-arithmetic(mine, d)",
    "compare": "b = pred[] compare(mine, d), direction=GE\n  ROOT r = s32[] convert(b)",
    "select": "ROOT r = s32[2,3]{1,0} select(low, pair, spread)",
    "convert": "b = pred[] convert(mine)\n  c = u8[] convert(mine)\n  e = s32[] convert(c)\n  f = s32[] convert(b)\n"
    "  ROOT r = s32[] add(e, f)",
    "copy": "ROOT r = s32[] copy(mine)",
    "reshape": "ROOT r = s32[3,2]{1,0} reshape(spread)",
    "bitcast": "ROOT r = s32[] bitcast(at)",
    "broadcast": "v = s32[2]{0} broadcast(mine), dimensions={}\n  ROOT r = s32[2,3]{1,0} broadcast(v), dimensions={0}",
    "transpose": "x = s32[2,3]{1,0} add(pair, spread)\n  ROOT r = s32[3,2]{1,0} transpose(x), dimensions={1,0}",
    "slice": "x = s32[2,3]{1,0} add(pair, spread)\n  ROOT r = s32[1,2]{1,0} slice(x), slice={[1:2], [0:3:2]}",
    "dynamic-slice": "ROOT r = s32[1,2]{1,0} dynamic-slice(pair, d, mine), dynamic_slice_sizes={1,2}",
    "concatenate": "ROOT r = s32[2,6]{1,0} concatenate(spread, pair), dimensions={1}",
}


def value_of(text: str) -> Value:
    module = parse_hlo(text)
    found = Flow(module, Meetings(module)).run([])
    assert isinstance(found, Value)
    return found


def test_every_rule_is_asked() -> None:
    assert set(LINES) == set(RULES)


@pytest.mark.parametrize("opcode", LINES)
def test_tables_are_what_the_interpreter_computes(opcode: str) -> None:
    text = PROGRAM.format(line=LINES[opcode])
    found = value_of(text)
    assert found.table is not None
    module = load(text.replace("bitcast(", "reshape("))
    [wanted] = evaluate(module, [], 6).results
    assert wanted is not None
    for device in range(6):
        row = found.table[device % found.table.shape[0]]
        np.testing.assert_array_equal(row, dense(wanted, device))


@pytest.mark.parametrize(
    "line",
    [
        "ROOT r = s32[] divide(two, mine)",
        "ROOT r = s32[] remainder(two, mine)",
        "y = s32[] constant(-1)\n  ROOT r = s32[] divide(mine, y)",
        "ROOT r = s32[] shift-left(two, mine)",
        "x = s32[2,3]{1,0} add(pair, spread)\n  ROOT r = s32[3,2]{1,0} bitcast(x)",
        "ROOT r = s32[6]{0} constant({...})",
        "ROOT r = f32[] convert(mine)",
    ],
)
def test_what_is_not_known_has_no_table(line: str) -> None:
    assert value_of(PROGRAM.format(line=line)).table is None
