"""Aliases of results with arguments, and of operations' results with their operands."""

from __future__ import annotations

import pytest

from hlo_verify.linter.lint import lint


def module(aliases: str) -> str:
    return f"""HloModule m, input_output_alias={{ {aliases} }}
ENTRY e {{
  p = f32[4] parameter(0)
  q = (f32[8], s32[4]) parameter(1)
  n = f32[4] negate(p)
  m = f32[8] get-tuple-element(q), index=0
  ROOT r = (f32[4], f32[8], f32[4]) tuple(n, m, n)
}}
"""


@pytest.mark.parametrize(
    ("aliases", "wanted"),
    [
        ("{0}: (0, {}, may-alias), {1}: (1, {0}, must-alias)", []),
        ("{0}: (1, {1}, may-alias)", []),  # as many bytes
        ("{0}: (2, {}, may-alias)", [("alias_no_such_parameter", "output {0}")]),
        ("{0}: (1, {2}, may-alias)", [("alias_no_such_parameter", "output {0}")]),
        ("{5}: (0, {}, may-alias)", [("alias_no_such_parameter", "output {5}")]),
        ("{1}: (0, {}, may-alias)", [("alias_size_mismatch", "output {1}")]),
        ("{0}: (0, {}, may-alias), {2}: (0, {}, may-alias)", [("alias_two_outputs", "output {2}")]),
    ],
)
def test_of_the_entry(aliases: str, wanted: list[tuple[str, str]]) -> None:
    assert [(one.name, one.instruction) for one in lint(module(aliases)).findings] == wanted


STARTED = """HloModule m
called {
  p0 = f32[8] parameter(0)
  ROOT c = (f32[8]) custom-call(p0), custom_call_target="t"
}
ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), (f32[8]), s32[]) async-start(p), calls=called, output_to_operand_aliasing={ALIAS}
  ROOT d = (f32[8]) async-done(s)
}
"""


@pytest.mark.parametrize(
    ("alias", "wrong"),
    [
        ("{1,0}: (0, {})", False),
        ("{}: (0, {})", True),
        ("{5}: (0, {})", True),
        ("{1,0}: (3, {})", True),
        ("{2}: (0, {})", True),
    ],
)
def test_of_an_operation(alias: str, *, wrong: bool) -> None:
    found = lint(STARTED.replace("ALIAS", alias)).findings
    assert [(one.name, one.instruction) for one in found] == [("alias_illegal", "s")] * wrong
