"""What the partitioned module of a pair shows by itself, where nothing was decided about the two."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hlo_verify.diagnostics import Diagnostic
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.linter.lint import lint
from hlo_verify.linter.reading import is_partitioned
from hlo_verify.report import Report, Verdict


def with_hints(report: Report, partitioned: Path) -> Report:
    """The report, if it is UNKNOWN with the defects of the partitioned module: those that the linter finds. A module
    that XLA would have to partition is not looked at: that may take longer than the verification did."""
    if report.verdict is not Verdict.UNKNOWN:
        return report
    try:
        found = lint(partitioned).errors if is_partitioned(partitioned) else ()
    except InputError:  # nothing that the linter reads
        return report
    hints = (Diagnostic(one.code, one.severity, one.message, one.location, one.instruction) for one in found)
    return replace(report, hints=tuple(hints))
