"""How often loops run."""

from __future__ import annotations

import pytest

from hlo_verify.hlo.text import parse_hlo
from hlo_verify.linter.dataflow import turns

TEXT = """HloModule m
body {{
  p = (s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  o = s32[] constant(1)
  n = s32[] add(i, o)
  ROOT t = (s32[]) tuple(n)
}}
condition {{
  p = (s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  l = s32[] {last}
  ROOT c = pred[] compare(i, l), direction={direction}
}}
ENTRY e {{
  a = s32[] parameter(0)
  z = s32[] {first}
  s = (s32[]) tuple(z)
  ROOT w = (s32[]) while(s), condition=condition, body=body{noted}
}}
"""
NOTED = ', backend_config={"known_trip_count":{"n":"7"}}'


@pytest.mark.parametrize(
    ("first", "last", "direction", "noted", "expected"),
    [
        ("constant(0)", "constant(5)", "LT", "", 5),
        ("constant(2)", "constant(5)", "LT", "", 3),
        ("constant(6)", "constant(5)", "LT", "", 0),
        ("copy(a)", "constant(5)", "LT", "", None),
        ("constant(0)", "add(i, i)", "LT", "", None),
        ("constant(0)", "constant(5)", "GT", "", None),
        ("copy(a)", "constant(5)", "LT", NOTED, 7),
    ],
)
def test_turns(first: str, last: str, direction: str, noted: str, expected: int | None) -> None:
    module = parse_hlo(TEXT.format(first=first, last=last, direction=direction, noted=noted))
    assert turns(module.entry.by_name["w"]) == expected
