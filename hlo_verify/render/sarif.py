"""SARIF 2.1.0, which code hosts and editors read: verdicts and findings as results, codes as rules.

What is not proved is a result, a refutation an error and the rest a warning; a module for which there is no report is a
notification. A result stands at the user's source line, where one is known, with the module's line beside it.

Source: OASIS, Static Analysis Results Interchange Format Version 2.1.0, sections 3.13 to 3.58.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hlo_verify.diagnostics import Code, Diagnostic, Severity
from hlo_verify.render import Failure, Outcome
from hlo_verify.report import ChainReport, Report
from hlo_verify.version import __version__

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_LINE = re.compile(r"(.+):(\d+)(?::(\d+))?$")


@dataclass(frozen=True, slots=True)
class Entry:
    """A diagnostic of a module: a file, or the name of a function; `line` is where in the module's text, if known."""

    module: str
    diagnostic: Diagnostic
    line: int = 0


def render(outcomes: Sequence[Outcome]) -> str:
    """The document of verdicts."""
    entries, problems = [], []
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            problems.append(Entry(outcome.name, outcome.diagnostic))
            continue
        report = outcome.report if isinstance(outcome, ChainReport) else outcome
        entries += [Entry(outcome.name, said) for said in _of_report(report)]
    return document(entries, problems)


def document(entries: Sequence[Entry], problems: Sequence[Entry] = ()) -> str:
    """The document of diagnostics, and of modules that could not be looked at."""
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
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _of_report(report: Report | None) -> tuple[Diagnostic, ...]:
    return () if report is None else (*report.diagnostics, *report.hints)


def _rule(code: Code) -> dict[str, Any]:
    return {
        "id": str(code),
        "name": code.name.title().replace("_", ""),
        "shortDescription": {"text": code.summary},
        "help": {"text": code.explanation, "markdown": code.explanation},
    }


def _result(entry: Entry, codes: Sequence[Code]) -> dict[str, Any]:
    said = entry.diagnostic
    notes = [f"{label}: {text}" for label, text in said.notes]
    own, source = _of_module(entry), _of_source(said.location)
    found: dict[str, Any] = {
        "ruleId": str(said.code),
        "ruleIndex": codes.index(said.code),
        "level": _level(said),
        "message": {"text": "\n".join((said.message, *notes))},
        "locations": [_location(source or own, said.operation)],
        "partialFingerprints": {"hloVerify/v1": _fingerprint(entry)},
    }
    if source is not None:
        found["relatedLocations"] = [_location(own, "", "the module")]
    return found


def _notification(entry: Entry, codes: Sequence[Code]) -> dict[str, Any]:
    said = entry.diagnostic
    return {
        "descriptor": {"id": str(said.code), "index": codes.index(said.code)},
        "level": _level(said),
        "message": {"text": said.message},
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
    uri = Path(path).as_uri() if Path(path).is_absolute() else quote(Path(path).as_posix())
    region = {"region": {"startLine": line}} if line else {}
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, **region}}


def _location(where: dict[str, Any], operation: str, message: str = "") -> dict[str, Any]:
    said = {"message": {"text": message}} if message else {}
    logical = {"logicalLocations": [{"fullyQualifiedName": operation}]} if operation else {}
    return {**where, **logical, **said}


def _fingerprint(entry: Entry) -> str:
    """The same for one defect in two versions of a program: without line numbers, and numbers in names of values."""
    said = entry.diagnostic
    place = _LINE.match(said.location)
    parts = (str(said.code), place[1] if place else "", re.sub(r"[\d.]+", "", said.operation))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
