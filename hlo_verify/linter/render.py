"""Reports of the linter as text, as JSON and as SARIF."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hlo_verify.diagnostics import Diagnostic
from hlo_verify.render.sarif import Entry, document

if TYPE_CHECKING:
    from hlo_verify.linter.finding import Finding
    from hlo_verify.linter.lint import LintReport


def text(reports: Sequence[LintReport]) -> str:
    """For people: what was found, where, and what was looked at."""
    return "".join(f"{line}\n" for report in reports for line in _lines(report))


def _lines(report: LintReport) -> Iterator[str]:
    errors = len(report.errors)
    warnings = len(report.findings) - errors
    counts = [_count(errors, "error"), _count(warnings, "warning")]
    yield f"{report.name}: {' and '.join(one for one in counts if one) or 'no defect found'}"
    for finding in report.findings:
        yield f"  {finding.severity}[{finding.code}] {finding.instruction}: {finding.message}"
        place = [f"line {finding.line}"] if finding.line else []
        place += [finding.location] if finding.location else []
        if place:
            yield f"    at    {', '.join(place)}"
        if finding.related:
            yield f"    with  {', '.join(finding.related)}"
        yield f"    is    {finding.name}; `hlo-verify --explain {finding.code}` says what to do"
    looked_at = ", ".join(f"{number} {what}" for what, number in report.looked_at.items())
    yield f"  looked at {looked_at}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}" if number else ""


def to_json(reports: Sequence[LintReport]) -> str:
    """For programs: the findings of all modules, and what was looked at in each."""
    data = {
        "findings": [_record(report.name, finding) for report in reports for finding in report.findings],
        "modules": [{"name": report.name, "looked_at": report.looked_at} for report in reports],
    }
    return json.dumps(data, indent=2) + "\n"


def to_sarif(reports: Sequence[LintReport]) -> str:
    """For code hosts and editors."""

    def entry(report: LintReport, finding: Finding) -> Entry:
        notes = (("with", ", ".join(finding.related)),) if finding.related else ()
        message = f"{finding.instruction}: {finding.message}"
        said = Diagnostic(finding.code, finding.severity, message, finding.location, finding.instruction, notes)
        return Entry(report.name, said, finding.line)

    return document([entry(report, finding) for report in reports for finding in report.findings])


def _record(module: str, finding: Finding) -> dict[str, Any]:
    return {
        "module": module,
        "code": finding.code,
        "class": finding.name,
        "severity": finding.severity,
        "instruction": finding.instruction,
        "line": finding.line,
        "location": finding.location,
        "message": finding.message,
        "related": list(finding.related),
    }
