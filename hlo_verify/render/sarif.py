"""SARIF 2.1.0, which code hosts and editors read: verdicts and findings as results, codes as rules.

What is not proved is a result, a refutation an error and the rest a warning; a module for which there is no report is a
notification. A result stands at the user's source line, where one is known, with the module's line beside it. A repair
that is an edit of the source is a fix. The verdicts themselves are among the properties of the run.

Source: OASIS, Static Analysis Results Interchange Format Version 2.1.0, sections 3.13 to 3.58.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hlo_verify.diagnostics import CODES, Code, Diagnostic, Internal, Severity, Solver
from hlo_verify.render import Failure, Outcome, overall
from hlo_verify.render.characters import visible
from hlo_verify.render.source_edits import SourceEdit, source_edit
from hlo_verify.report import ChainReport, Report, Verdict, diagnostic
from hlo_verify.version import __version__

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_LINE = re.compile(r"(.+):([0-9]{1,9})(?::[0-9]+)?$")

_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Halves of characters that stand for no byte of a file's name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A diagnostic of a module: a file, or the name of a function; `line` is where in the module's text, if known."""

    module: str
    diagnostic: Diagnostic
    line: int = 0
    suggestion: str = ""
    """A repair, in words."""


def render(outcomes: Sequence[Outcome]) -> str:
    """The document of verdicts."""
    entries: list[Entry] = []
    problems: list[Entry] = []
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            problems.append(Entry(outcome.name, outcome.diagnostic))
        else:
            found = list(_of_chain(outcome) if isinstance(outcome, ChainReport) else _of_report(outcome, outcome.name))
            if outcome.verdict is Verdict.UNKNOWN and not found:
                nothing = "there is nothing to prove, or not all was looked at, so nothing is proved"
                found = [Entry(outcome.name, Diagnostic(Solver.NO_PROOF, Severity.WARNING, nothing))]
            entries += found
            problems += _disagreements(outcome) if isinstance(outcome, Report) else ()
    first = outcomes[0].name if outcomes else ""
    return document(entries, problems, f"verify/{first}", {"verdicts": list(map(_verdict, outcomes))})


def _verdict(outcome: Outcome) -> dict[str, Any]:
    """The verdict about a module, with what it is subject to, as far as there is something."""
    said = {"module": visible(outcome.name), "verdict": str(overall([outcome]))}
    given: dict[str, Any] = {}
    if isinstance(outcome, Report):
        given = {"headline": visible(outcome.headline), "preconditions": list(map(visible, outcome.preconditions))}
    if not isinstance(outcome, Failure):
        given["assumptions"] = list(map(visible, outcome.assumptions))
    return said | {key: value for key, value in given.items() if value}


def _disagreements(report: Report) -> Iterator[Entry]:
    """Where a second check of the proof disagrees with it."""
    for wrong in report.recheck.disagreements if report.recheck is not None else ():
        message = f"the proof is wrong, a defect of hlo-verify: {wrong.model}"
        said = Diagnostic(Internal.DISAGREEMENT, Severity.ERROR, message, wrong.location, wrong.operation)
        yield Entry(report.name, said)


def document(
    entries: Sequence[Entry],
    problems: Sequence[Entry] = (),
    what: str = "",
    properties: Mapping[str, Any] | None = None,
) -> str:
    """The document of diagnostics, and of modules that could not be looked at. `what` was done tells documents apart
    that are uploaded for one commit; `properties` are those of the run."""
    codes = list(dict.fromkeys(entry.diagnostic.code for entry in (*entries, *problems)))
    driver = {
        "name": "hlo-verify",
        "semanticVersion": __version__,
        "rules": [_rule(code) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(entry, codes) for entry in entries],
        "invocations": [
            {
                "executionSuccessful": not problems,
                "toolExecutionNotifications": [_notification(entry, codes) for entry in problems],
            }
        ],
        "automationDetails": {"id": f"hlo-verify/{visible(what)}/"},
        "properties": dict(properties or {}),
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _of_report(report: Report, module: str) -> list[Entry]:
    entries = []
    for held in report.stopped():
        suggestion = held[0].finding.suggestion if held[0].finding is not None else ""
        entries.append(Entry(module, diagnostic(held), suggestion=suggestion))
    if not report.results:
        nothing = "there are no results, so nothing is proved"
        entries.append(Entry(module, Diagnostic(Solver.NO_PROOF, Severity.WARNING, nothing)))
    return entries + [Entry(module, said) for said in (*report.unsupported, *report.hints)]


def _of_chain(chain: ChainReport) -> Iterator[Entry]:
    """What is said of the step that the report is about, and a line for each other that is not proved."""
    reported = None if chain.report is None else chain.reported
    for step in chain.steps:
        if step is reported and chain.report is not None:
            yield from _of_report(chain.report, chain.name)
        elif step.verdict is not Verdict.PROVED:
            severity = Severity.ERROR if step.verdict is Verdict.REFUTED else Severity.WARNING
            message = f"{step.pipeline}: {step.after}: {step.reason}"
            code = CODES.get(step.code, Solver.NO_PROOF)
            yield Entry(chain.name, Diagnostic(code, severity, message, notes=(("dump", step.file),)))


def _rule(code: Code) -> dict[str, Any]:
    return {
        "id": str(code),
        "name": code.name.title().replace("_", ""),
        "shortDescription": {"text": code.summary},
        "fullDescription": {"text": code.summary},
        "help": {"text": code.explanation, "markdown": code.explanation},
        "properties": {"tags": ["sharding", type(code).__name__.lower()]},
    }


def _result(entry: Entry, codes: Sequence[Code]) -> dict[str, Any]:
    said = entry.diagnostic
    notes = [f"{label}: {text}" for label, text in said.notes]
    own, source = _of_module(entry), _of_source(said.location)
    found: dict[str, Any] = {
        "ruleId": str(said.code),
        "ruleIndex": codes.index(said.code),
        "level": _level(said),
        "message": {"text": visible("\n".join((said.message, *notes)))},
        "locations": [_location(source or own, said.operation)],
        "partialFingerprints": {"hloVerify/v1": _fingerprint(entry)},
    }
    if source is not None:
        found["relatedLocations"] = [_location(own, "", "the module")]
    edit = source_edit(entry.suggestion)
    if edit is not None:
        found["fixes"] = [_fix(edit, entry.suggestion)]
    return found


def _fix(edit: SourceEdit, suggestion: str) -> dict[str, Any]:
    region = {"startLine": edit.line, "startColumn": edit.start, "endLine": edit.line, "endColumn": edit.end}
    changes = {
        "artifactLocation": {"uri": _uri(edit.file)},
        "replacements": [{"deletedRegion": region, "insertedContent": {"text": edit.text}}],
    }
    return {"description": {"text": visible(f"{suggestion} makes it PROVED")}, "artifactChanges": [changes]}


def _notification(entry: Entry, codes: Sequence[Code]) -> dict[str, Any]:
    said = entry.diagnostic
    return {
        "descriptor": {"id": str(said.code), "index": codes.index(said.code)},
        "level": _level(said),
        "message": {"text": visible(said.message)},
        "locations": [_location(_of_module(entry), said.operation)],
    }


def _level(said: Diagnostic) -> str:
    return "error" if said.severity is Severity.ERROR else "warning"


def _of_module(entry: Entry) -> dict[str, Any]:
    return _physical(entry.module, entry.line)


def _of_source(location: str) -> dict[str, Any] | None:
    """The place of `FILE:LINE`; None for what names none."""
    found = _LINE.match(location)
    return None if found is None else _physical(found[1], int(found[2]))


def _physical(path: str, line: int) -> dict[str, Any]:
    region = {"region": {"startLine": line}} if line else {}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(path)}, **region}}


def _uri(path: str) -> str:
    """A path as a URI: below the working folder a relative one, which code hosts resolve by the repository."""
    place = Path(_HALF.sub(lambda found: ascii(found[0])[1:-1], path))
    if place.is_absolute() and place.is_relative_to(Path.cwd()):
        place = place.relative_to(Path.cwd())
    return place.as_uri() if place.is_absolute() else quote(os.fsencode(place.as_posix()))


def _location(where: dict[str, Any], operation: str, message: str = "") -> dict[str, Any]:
    said = {"message": {"text": message}} if message else {}
    logical = {"logicalLocations": [{"fullyQualifiedName": visible(operation)}]} if operation else {}
    return {**where, **logical, **said}


def _fingerprint(entry: Entry) -> str:
    """The same for one defect in two versions of a program: without line numbers, and numbers in names of values."""
    said = entry.diagnostic
    place = _LINE.match(said.location)
    parts = (str(said.code), place[1] if place else "", re.sub(r"[\d.]+", "", said.operation))
    return hashlib.sha256("\0".join(parts).encode(errors="backslashreplace")).hexdigest()[:32]
