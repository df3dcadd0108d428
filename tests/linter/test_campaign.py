"""Mutants of scheduled modules: the linter against bytes that are written and read (tools/lint_campaign)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from hlo_verify.hlo.buffers import parse_assignment, parse_values
from hlo_verify.hlo.text import parse_hlo
from hlo_verify.linter import buffers
from hlo_verify.linter.lint import lint
from tests.linter.test_buffers import assignment
from tools.lint_campaign.__main__ import judge, read
from tools.lint_campaign.machine import faults
from tools.lint_campaign.mutations import OF_BYTES, OF_ORDER

FOLDER = Path(__file__).parents[2] / "testdata" / "scheduled"
MODULES = sorted(FOLDER.glob("*.hlo.gz"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_what_xla_made_is_right(path: Path) -> None:
    given = read(path)
    assert faults(given.module, given.allocations, given.lifetimes) == []
    for lifetimes in (given.lifetimes, None):
        assert list(buffers.check(given.module, given.allocations, lifetimes)) == []


@pytest.mark.drawn(2)
@pytest.mark.parametrize("derive", [False, True])
@pytest.mark.parametrize("kind", [*OF_BYTES, *OF_ORDER])
def test_what_is_said_of_mutants(kind: str, derive: bool, seed: int) -> None:
    random, counts, examples = Random(f"{kind} {derive} {seed}"), Counter[str](), []
    while counts.total() < 30 or (not counts["found"] and counts.total() < 300):  # few swaps do any harm
        path, drawn = random.choice(MODULES), random.randrange(1 << 31)
        judged = judge(read(path), kind, drawn, derive=derive)
        if judged is not None:
            counts[judged[0]] += 1
            examples += [(path.name, drawn, judged[1])] if judged[0] in ("missed", "false alarm") else []
    assert not examples
    assert counts["found"]


LOOP = """HloModule m, is_scheduled=true
body {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  y = f32[4] negate(x)
  ROOT t = (s32[], f32[4]) tuple(i, y)
}
cond {
  q = (s32[], f32[4]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(j, n), direction=LT
}
ENTRY e {
  a = s32[] parameter(0)
  b = f32[4] parameter(1)
  ca = s32[] copy(a)
  cb = f32[4] copy(b)
  s = (s32[], f32[4]) tuple(ca, cb)
  w = (s32[], f32[4]) while(s), condition=cond, body=body
  ROOT g = f32[4] get-tuple-element(w), index=1
}
"""


@pytest.mark.parametrize(
    ("places", "wanted"),
    [
        ({"cb": 0, "p{1}": 0, "q{1}": 0, "y": 0, "w{1}": 0}, set()),
        ({"cb": 32, "p{1}": 0, "q{1}": 0, "y": 0, "w{1}": 0}, {"p", "q"}),
        ({"cb": 0, "p{1}": 0, "q{1}": 0, "y": 0, "w{1}": 64}, {"w"}),
        ({"cb": 0, "p{1}": 0, "q{1}": 32, "y": 0, "w{1}": 0}, {"q"}),
        ({"cb": 0, "p{1}": 0, "q{1}": 0, "y": 32, "w{1}": 32}, {"p", "q"}),
    ],
)
def test_what_a_loop_carries_stays_where_it_is(places: dict[str, int], wanted: set[str]) -> None:
    """In the last one the body's result is where the loop's is, and the next turn looks for it elsewhere."""
    found = lint(LOOP, buffers=assignment(LOOP, places)).findings
    assert {one.instruction for one in found if one.name == "handed_on_elsewhere"} == wanted


def test_two_results_of_one_operation_do_not_meet_even_if_nobody_reads_one() -> None:
    text = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[4] parameter(0)
  s = (f32[4], f32[4]) custom-call(p), custom_call_target="two"
  g = f32[4] get-tuple-element(s), index=0
  ROOT r = f32[4] negate(g)
}
"""
    for second, wanted in ((16, []), (0, ["buffers_overlap"])):
        placed = assignment(text, {"s{0}": 0, "s{1}": second})
        assert [one.name for one in lint(text, buffers=placed).findings] == wanted


def test_arguments_do_not_meet() -> None:
    text = "HloModule m, is_scheduled=true\nENTRY e {\n  p = f32[4] parameter(0)\n  q = f32[4] parameter(1)\n"
    text += "  ROOT r = f32[4] add(p, q)\n}\n"
    found = lint(text, buffers=assignment(text, {"p": 0, "q": 8})).findings
    assert [one.name for one in found] == ["donated_input_read_after_write"]


def test_what_is_started_and_handed_on_without_a_done() -> None:
    text = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[4] parameter(0)
  s = (f32[4], f32[4], u32[]) copy-start(p)
  ROOT t = (f32[4]) tuple(s#0)
}
"""
    assert [one.name for one in lint(text).findings] == ["missing_done"]


def test_the_data_of_a_receive_goes_on_behind_its_done() -> None:
    """Found out from the module as in XLA's own list: of `recv-done` the first part is the data, its second a token."""
    text = """HloModule m, is_scheduled=true
ENTRY e {
  k = token[] after-all()
  r = (f32[4], u32[], token[]) recv(k), channel_id=1
  d = (f32[4], token[]) recv-done(r), channel_id=1
  g = f32[4] get-tuple-element(d), index=0
  x = f32[4] negate(g)
  ROOT y = f32[4] add(g, x)
}
"""
    module, allocations = parse_hlo(text), parse_assignment(assignment(text, {"r{0}": 0, "x": 0, "y": 32}))
    assert [one.name for one in buffers.check(module, allocations)] == ["overwritten_while_live"]
    assert parse_values("") == {}
