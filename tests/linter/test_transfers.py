"""Starts and dones: each defect in the smallest module that has it."""

from __future__ import annotations

import pytest

from hlo_verify.linter.lint import lint


def module(*lines: str, header: str = "is_scheduled=true") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule m, {header}\nENTRY e {{\n  p = f32[4] parameter(0)\n{body}\n}}\n"


START = "s = (f32[4], f32[4], u32[]) copy-start(p)"
OTHER = "s.1 = (f32[4], f32[4], u32[]) copy-start(p)"
RESULT = "g = f32[4] get-tuple-element(s), index=0"
OPERAND = "g = f32[4] get-tuple-element(s), index=1"
READ = "n = f32[4] negate(g)"
BOTH = "ROOT r = f32[4] add(n, d)"
DONE = "d = f32[4] copy-done(s)"
PERMUTE = "c = (f32[4], f32[4], u32[], u32[]) collective-permute-start(p), source_target_pairs={{0,1}}"


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ((START, DONE, "ROOT r = f32[4] negate(d)"), []),
        ((START, "ROOT r = f32[4] copy-done(s)"), []),
        ((START, "ROOT r = f32[4] negate(p)"), [("orphan_start", "s")]),
        ((START, RESULT, "ROOT r = f32[4] negate(g)"), [("missing_done", "s")]),
        (
            (
                START,
                RESULT,
                READ,
                DONE,
                BOTH,
            ),
            [("use_before_done", "n")],
        ),
        (
            (
                START,
                OPERAND,
                READ,
                DONE,
                BOTH,
            ),
            [],  # the operand may be read while it is copied
        ),
        ((START, "n = f32[4] negate(%s#0)", DONE, BOTH), [("use_before_done", "n")]),
        ((START, DONE, "d.1 = f32[4] copy-done(s)", "ROOT r = f32[4] add(d, d.1)"), [("done_twice", "d.1")]),
        (
            (START, OTHER, DONE, "d.1 = f32[4] copy-done(s)", "ROOT r = f32[4] add(d, d.1)"),
            [("done_of_another_start", "d.1")],
        ),
        ((START, "ROOT r = f32[4] collective-permute-done(s)"), [("done_kind_mismatch", "r")]),
        ((PERMUTE, "ROOT r = f32[4] copy-done(c)"), [("done_kind_mismatch", "r")]),
        (("t = (f32[4], f32[4]) tuple(p, p)", "ROOT r = f32[4] copy-done(t)"), [("done_kind_mismatch", "r")]),
        ((PERMUTE, "ROOT r = f32[5] collective-permute-done(c)"), [("async_illegal", "r")]),
        (
            ("n = f32[4] negate(q)", "q = f32[4] negate(p)", "ROOT r = f32[4] add(n, q)"),
            [("dependency_violation", "n")],
        ),
        (
            ("n = f32[4] negate(p), control-predecessors={q}", "q = f32[4] negate(p)", "ROOT r = f32[4] add(n, q)"),
            [("dependency_violation", "n")],
        ),
    ],
)
def test_in_a_schedule(lines: tuple[str, ...], wanted: list[tuple[str, str]]) -> None:
    assert [(one.name, one.instruction) for one in lint(module(*lines)).findings] == wanted


def test_the_order_of_a_module_without_a_schedule_says_nothing() -> None:
    lines = ("n = f32[4] negate(p), control-predecessors={q}", "q = f32[4] negate(p)", "ROOT r = f32[4] add(n, q)")
    assert lint(module(*lines, header="num_partitions=2")).findings == ()


CALLED = """HloModule m
called {
  p = f32[2,3] parameter(0)
  ROOT r = f32[3,2] custom-call(p), custom_call_target="t"
}
ENTRY e {
  a = f32[2,3] parameter(0)
  s = ((f32[2,3]), f32[3,2], s32[]) async-start(a), calls=called
  u = ((f32[2,3]), f32[3,2], s32[]) async-update(s)
  ROOT d = f32[3,2] async-done(u)
}
"""


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("", "", []),
        ("  ROOT d = f32[3,2] async-done(u)", "  ROOT d = f32[2,2] async-done(u)", [("async_illegal", "d")]),
        (
            "f32[3,2], s32[]) async-start",
            "f32[9,2], s32[]) async-start",
            [("async_illegal", "s"), ("async_illegal", "d")],
        ),
        ("s = ((f32[2,3])", "s = ((f32[9,3])", [("async_illegal", "s")] * 2),
        ("  p = f32[2,3]", "  p = f32[7,3]", [("async_illegal", "s")]),
        ("s = ((f32[2,3]), f32[3,2], s32[])", "s = (f32[2,3], f32[3,2], s32[])", [("async_illegal", "s")]),
        ("  ROOT d = f32[3,2] async-done(u)", "  ROOT d = f32[2,3] negate(a)", [("orphan_start", "s")]),
    ],
)
def test_an_asynchronous_call_has_the_shapes_of_what_it_calls(
    old: str, new: str, wanted: list[tuple[str, str]]
) -> None:
    found = lint(CALLED.replace(old, new) if old else CALLED).findings
    assert [(one.name, one.instruction) for one in found] == wanted
