"""JSON for programs. The schema is docs/report.schema.json; docs/json.md says what the fields mean."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from hlo_verify.diagnostics import Diagnostic
from hlo_verify.render import Failure, Outcome, overall
from hlo_verify.report import ChainReport, Report


def render(outcomes: Sequence[Outcome], *, several: bool) -> str:
    """One report as an object, or `{"verdict", "modules"}` where `several` modules may have been asked for."""
    document = _several(outcomes) if several else _object(outcomes[0])
    return json.dumps(_in_json(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _in_json(value: Any) -> Any:
    """A value in which numbers that JSON has not, which witnesses may have, are written as strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _in_json(each) for key, each in value.items()}
    return [_in_json(each) for each in value] if isinstance(value, list | tuple) else value


def report_object(report: Report) -> dict[str, Any]:
    """A report as plain dictionaries, lists, strings and numbers."""
    plain = asdict(report)
    for result in plain["results"]:
        if result["finding"] is not None:  # many results have the same
            del result["finding"]["scene"]
    return {
        "verdict": str(overall([report])),
        **plain,
        "headline": report.headline,
        "unsupported": [str(diagnostic) for diagnostic in report.unsupported],
        "diagnostics": list(map(_diagnostic, report.diagnostics)),
        "hints": list(map(_diagnostic, report.hints)),
        "scenes": list(_scenes(report)),
    }


def _scenes(report: Report) -> Iterator[dict[str, Any]]:
    """What is around findings, each once, with the results that it is about."""
    for held in report.stopped():
        finding = held[0].finding
        if finding is not None and finding.scene is not None:
            yield {"results": [result.index for result in held], **asdict(finding.scene)}


def _diagnostic(said: Diagnostic) -> dict[str, Any]:
    return {**asdict(said), "notes": dict(said.notes)}


def _several(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {"verdict": str(overall(outcomes)), "modules": [_object(outcome) for outcome in outcomes]}


def _object(outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, Failure):
        category = "internal" if outcome.internal else "input"
        said = outcome.diagnostic
        return {
            "verdict": str(overall([outcome])),
            "name": outcome.name,
            "error": said.message,
            "kind": category,
            "code": said.code,
        }
    return _chain_object(outcome) if isinstance(outcome, ChainReport) else report_object(outcome)


def _chain_object(chain: ChainReport) -> dict[str, Any]:
    report = None if chain.report is None else report_object(chain.report)
    return {"verdict": str(overall([chain])), **asdict(chain), "report": report}
