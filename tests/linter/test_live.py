"""XLA's live ranges against the module."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hlo_verify.diagnostics import Severity
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo.live import parse_live
from hlo_verify.linter.lint import LintReport, lint

TESTDATA = Path(__file__).parents[2] / "testdata" / "scheduled"
LIVE = gzip.decompress((TESTDATA / "h100.cond_inner_axis.live.txt.gz").read_bytes()).decode()


def linted(live: str) -> LintReport:
    files = {what: TESTDATA / f"h100.cond_inner_axis.{what}.txt.gz" for what in ("buffers", "values")}
    return lint(TESTDATA / "h100.cond_inner_axis.hlo.gz", **files, live=live)


def test_what_xla_made() -> None:
    report = linted(LIVE)
    assert not report.findings and report.looked_at["live ranges"] == len(parse_live(LIVE).ranges) > 20


def test_a_range_that_ends_before_the_last_reader() -> None:
    short = LIVE.replace("    loop_reduce_fusion{}:11-15\n", "    loop_reduce_fusion{}:11-12\n")
    [found] = linted(short).findings
    assert (found.name, found.instruction) == ("live_range_mismatch", "loop_reduce_fusion")
    assert found.severity is Severity.WARNING


def test_ranges_of_another_schedule() -> None:
    steps = list(parse_live(LIVE).steps)
    steps[0], steps[1] = steps[1], steps[0]
    text = "HloLiveRange (max 9):\n" + "".join(f"    {n}:{name}\n" for n, name in enumerate(steps))
    [found] = linted(text).findings
    assert found.name == "live_range_mismatch" and "in another order" not in found.message
    assert found.related == (steps[1],)


@pytest.mark.parametrize("text", ["", "what\n", "HloLiveRange (max 2):\n    1:p\n"])
def test_what_holds_no_ranges(text: str) -> None:
    with pytest.raises(InputError):
        parse_live(text)
    with pytest.raises(InputError, match="of use with a buffer assignment alone"):
        lint(TESTDATA / "h100.cond_inner_axis.hlo.gz", live="HloLiveRange (max 2):\n")
