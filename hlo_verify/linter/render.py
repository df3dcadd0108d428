"""Reports of the linter in each format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hlo_verify.diagnostics import Diagnostic, Severity
from hlo_verify.render import junit, markdown
from hlo_verify.render.characters import visible
from hlo_verify.render.quoting import folded, prose, table
from hlo_verify.render.sarif import Entry, document

if TYPE_CHECKING:
    from hlo_verify.linter.finding import Finding
    from hlo_verify.linter.lint import LintReport
    from hlo_verify.render.origin import Origin


def text(reports: Sequence[LintReport]) -> str:
    """For people: what was found, where, and what was looked at."""
    return "".join(f"{_in_one_line(line)}\n" for report in reports for line in _lines(report))


def _in_one_line(text: str) -> str:
    return visible(text).replace("\n", " ")  # what stands before it is where it is for a reason


def in_one_line(reports: Sequence[LintReport]) -> str:
    """How many findings there are."""
    findings = [finding for report in reports for finding in report.findings]
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    counts = [_count(errors, "error"), _count(len(findings) - errors, "warning")]
    said = " and ".join(one for one in counts if one) or "no defect found"
    return f"{said} in {_count(len(reports), 'module') or 'no module'}\n"


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

    found = [entry(report, finding) for report in reports for finding in report.findings]
    return document(found, what=f"lint/{reports[0].name if reports else ''}")


def to_junit(reports: Sequence[LintReport], *, strict: bool = False) -> str:
    """For continuous integration: a case for each module that has passed, or for each finding of it. A warning is
    skipped unless `strict`, as it does not count for the exit status."""

    def suite(report: LintReport) -> junit.Suite:
        cases = [junit.Case("module")] if not report.findings else [case(one) for one in report.findings]
        counted = tuple((what, str(number)) for what, number in report.looked_at.items())
        return junit.Suite(report.name, tuple(cases), counted, text([report]))

    def case(finding: Finding) -> junit.Case:
        fails = strict or finding.severity is Severity.ERROR
        became = junit.Became.FAILURE if fails else junit.Became.SKIPPED
        place = [f"line {finding.line}"] if finding.line else []
        details = (finding.message, *place, finding.location, *finding.related)
        name = f"{finding.code} {finding.instruction}"
        return junit.Case(name, became, str(finding.code), finding.message, "\n".join(filter(None, details)))

    return junit.document(list(map(suite, reports)))


def to_markdown(reports: Sequence[LintReport]) -> str:
    """For an issue or the summary of a job: each module with its findings, those without any in one line."""
    clean = [report.name for report in reports if not report.findings]
    parts = [f"## hlo-verify lint: {in_one_line(reports).rstrip()}"]
    parts += [_module(report) for report in reports if report.findings]
    if clean:
        listed = [f"- {markdown.named(name)}" for name in clean[: markdown.ROWS]]
        left = [f"- {len(clean) - markdown.ROWS} more"] if len(clean) > markdown.ROWS else []
        parts.append(folded(f"Without a defect: {_count(len(clean), 'module')}", "\n".join((*listed, *left))))
    return markdown.fitting(parts)


def to_html(reports: Sequence[LintReport], origin: Origin | None = None, pictures: Sequence[str] = ()) -> str:
    """A page for people, with a picture of each module's schedule, where there is one."""
    from hlo_verify.render import html  # its templates are needed for nothing else

    def said(finding: Finding) -> tuple[Diagnostic, int]:
        notes = (("with", ", ".join(finding.related)),) if finding.related else ()
        return (
            Diagnostic(finding.code, finding.severity, finding.message, finding.location, finding.instruction, notes),
            finding.line,
        )

    modules = [
        html.Linted(one.name, tuple(map(said, one.findings)), tuple(one.looked_at.items()), picture)
        for one, picture in zip(reports, pictures or [""] * len(reports), strict=True)
    ]
    return html.render_lint(modules, origin)


def _module(report: LintReport) -> str:
    rows = []
    for finding in report.findings[: markdown.ROWS]:
        place = ", ".join(filter(None, (f"line {finding.line}" if finding.line else "", finding.location)))
        said = prose(markdown.shortened(finding.message, 500))
        rows.append([finding.severity, finding.code, markdown.named(finding.instruction), markdown.named(place), said])
    left = len(report.findings) - len(rows)
    more = [f"{left} more findings: `--format json` has all."] if left else []
    shown = table(("", "code", "instruction", "at", "what"), rows)
    codes = dict.fromkeys(finding.code for finding in report.findings[: markdown.ROWS])
    meanings = [f"- **{one}** {prose(one.summary)}" for one in codes]
    return "\n\n".join((f"### {markdown.named(report.name)}", shown, "\n".join(meanings), *more))


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
