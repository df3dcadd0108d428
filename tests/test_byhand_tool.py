"""The tool that verifies programs which people distributed by hand."""

from __future__ import annotations

from tools.byhand import Found, render


def test_false_verdicts_are_marked() -> None:
    right, wrong = Found("s1", "ring", "REFUTED"), Found("s1", "ring_wrong_axis", "PROVED")
    assert right.is_false
    assert wrong.is_false
    assert not Found("s1", "ring", "UNKNOWN").is_false
    assert render([right, wrong], []).count("FALSE: ") == 2


def test_what_changed_is_listed() -> None:
    before = [Found("lab", "sqrt", "UNKNOWN"), Found("lab", "relu", "PROVED")]
    now = [Found("lab", "sqrt", "PROVED"), Found("lab", "relu", "PROVED"), Found("lab", "added", "PROVED")]
    assert [line for line in render(now, before).splitlines() if line.startswith("- was")] == [
        "- was UNKNOWN: lab sqrt: PROVED in 0.0 s: "
    ]
