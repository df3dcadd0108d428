"""Reports as text for the disk, and back: JSON in which what is not plain names its class.

Only classes that a report is made of are ever made of what is read, so that a file of another's doing runs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from hlo_verify import report as model
from hlo_verify import scene, witness
from hlo_verify.diagnostics import CODES, Code, Diagnostic, Severity

_CLASSES: Mapping[str, type] = {
    each.__name__: each
    for each in (
        Diagnostic,
        model.ChainReport,
        model.Finding,
        model.LawUse,
        model.Report,
        model.Result,
        model.Spent,
        model.Stage,
        model.Step,
        model.Suggestion,
        scene.Around,
        scene.Excerpt,
        scene.Held,
        scene.Meeting,
        scene.Part,
        scene.Scene,
        witness.Point,
        witness.Witness,
    )
}
_WORDS: Mapping[str, type[model.Verdict] | type[Severity]] = {"Verdict": model.Verdict, "Severity": Severity}


def encoded(report: model.Report | model.ChainReport) -> str:
    """A report as text. Raises `TypeError` for one with a second check, which is not kept."""
    return json.dumps(_plain(report), separators=(",", ":"))


def decoded(text: str) -> model.Report | model.ChainReport:
    """The report. Raises `ValueError` for anything else."""
    try:
        found = _made(json.loads(text))
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"no report: {error}") from error
    if not isinstance(found, model.Report | model.ChainReport):
        raise ValueError("no report")
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, model.Report):
        names = [field.name for field in fields(model.Report)]
        return {"": "Report", **{name: _plain(getattr(value, name)) for name in names}}
    if is_dataclass(value) and type(value).__name__ in _CLASSES:
        return {"": type(value).__name__, **{each.name: _plain(getattr(value, each.name)) for each in fields(value)}}
    if isinstance(value, Code):
        return {"": "Code", "is": value.value}
    if isinstance(value, model.Verdict | Severity):
        return {"": type(value).__name__, "is": value.value}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if value is None or type(value) in (str, bool, int, float):
        return value
    raise TypeError(f"no part of a report that is kept: {type(value).__name__}")


def _made(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_made(each) for each in value)
    if not isinstance(value, dict):
        return value
    name = value.pop("")
    if name == "Code":
        return CODES[value["is"]]
    if name in _WORDS:
        return _WORDS[name](value["is"])
    return _CLASSES[name](**{key: _made(each) for key, each in value.items()})
