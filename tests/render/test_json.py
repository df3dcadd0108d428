"""JSON for programs, against the schema that docs ship."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hlo_verify import defects
from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.render import Failure, Outcome
from hlo_verify.render.json import render
from hlo_verify.report import Disagreement, Recheck, Verdict
from tests.programs import chain, report

P, R, U = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN
SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text())
WRONG = Disagreement("dot_general", "train.py:57", "x = 1")
CHECKED = Recheck(9, 8, 7, 2, 1, (("while: too long", 1),), (WRONG,), 0.5, limits=("recheck_steps",))
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """The part of JSON Schema that ours uses; an unknown keyword is an error."""
    rest = {k: v for k, v in schema.items() if k not in ("$schema", "title", "$defs")}
    return all(_KEYWORDS[keyword](value, wanted, schema) for keyword, wanted in rest.items())


def _is(value: Any, kind: str) -> bool:
    if kind == "null":
        return value is None
    return isinstance(value, TYPES[kind]) and not (isinstance(value, bool) and kind != "boolean")


_KEYWORDS: dict[str, Any] = {
    "$ref": lambda value, ref, _: fits(value, SCHEMA["$defs"][ref.removeprefix("#/$defs/")]),
    "oneOf": lambda value, options, _: sum(fits(value, option) for option in options) == 1,
    "enum": lambda value, wanted, _: value in wanted,
    "const": lambda value, wanted, _: value == wanted,
    "type": lambda value, kind, _: _is(value, kind),
    "items": lambda value, item, _: not isinstance(value, list) or all(fits(v, item) for v in value),
    "prefixItems": lambda value, items, _: all(map(fits, value, items)),
    "required": lambda value, names, _: not isinstance(value, dict) or set(names) <= set(value),
    "additionalProperties": lambda value, wanted, schema: (
        not isinstance(value, dict)
        or all(wanted and fits(v, wanted) for k, v in value.items() if k not in schema.get("properties", {}))
    ),
    "pattern": lambda value, pattern, _: re.search(pattern, value) is not None,
    "properties": lambda value, properties, _: (
        not isinstance(value, dict) or all(fits(v, properties[k]) for k, v in value.items() if k in properties)
    ),
}


@pytest.mark.parametrize(
    ("outcomes", "several", "verdict"),
    [
        ([report(P, P)], False, "PROVED"),
        ([report(P, U)], False, "UNKNOWN"),
        ([report(P, R, U)], False, "REFUTED"),
        ([report()], False, "UNKNOWN"),
        ([replace(report(P), recheck=CHECKED)], False, "PROVED"),
        ([report(P)], True, "PROVED"),
        ([report(P), report(R)], True, "REFUTED"),
        ([report(P), Failure("b", InputError("no", Input.DAMAGED).diagnostic)], True, "UNKNOWN"),
        ([chain(P, P)], True, "PROVED"),
        ([chain(P, R, P), report(P)], True, "REFUTED"),
        ([chain(P, U), Failure("b", InputError("no", Input.DAMAGED).diagnostic)], True, "UNKNOWN"),
        ([report(P), Failure("b", defects.diagnose(KeyError("no")))], True, "UNKNOWN"),
    ],
)
def test_output_fits_the_schema(outcomes: list[Outcome], several: bool, verdict: str) -> None:
    document = json.loads(render(outcomes, several=several))
    assert fits(document, SCHEMA)
    assert document["verdict"] == verdict


@pytest.mark.parametrize("missing", ["verdict", "results", "assumptions", "stages", "devices", "seconds", "name"])
def test_the_schema_is_not_empty_words(missing: str) -> None:
    document = json.loads(render([report(P, U)], several=False))
    assert not fits({k: v for k, v in document.items() if k != missing}, SCHEMA)
    assert not fits({**document, missing: [{}]}, SCHEMA)
    assert not fits({**document, "more": 1}, SCHEMA)


def test_the_fields_of_a_result() -> None:
    [result] = json.loads(render([report(U)], several=False))["results"]
    assert result["index"] == 0
    assert result["name"] == "result[0]"
    assert result["verdict"] == "UNKNOWN"
    assert result["reason"] == "no logical tensor matches"
    assert result["location"] == "train.py:57"
    assert result["finding"]["nearest"] == "y: sum over d1 is missing"
    assert (result["code"], result["finding"]["code"]) == ("HV301", "HV002")


def test_the_diagnostics() -> None:
    """Each reason once, with the results that it stopped; then what was not understood."""
    document = json.loads(render([report(P, U, U)], several=False))
    stopped, unsupported = document["diagnostics"]
    assert (stopped["code"], stopped["severity"]) == ("HV301", "warning")
    assert stopped["notes"]["results"] == "result[1], result[2]"
    assert stopped["notes"]["suspected"].startswith("HV002: ")
    assert (unsupported["code"], unsupported["operation"], unsupported["location"]) == ("HV202", "sort", "train.py:60")
    assert document["unsupported"] == ["sort at train.py:60: along a split dimension"]
    [refuted, _] = json.loads(render([report(R)], several=False))["diagnostics"]
    assert (refuted["code"], refuted["severity"]) == ("HV002", "error")
    assert "suspected" not in refuted["notes"]


def test_a_pair_in_a_folder_is_still_a_list() -> None:
    """Programs that read folders need not care how many pairs were in them."""
    assert list(json.loads(render([report(P)], several=True))) == ["verdict", "modules"]
