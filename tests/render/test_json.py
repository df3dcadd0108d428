"""JSON for programs, against the schema that docs ship."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

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
FITS = Draft202012Validator(SCHEMA).is_valid


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
    assert FITS(document)
    assert document["verdict"] == verdict


@pytest.mark.parametrize("missing", ["verdict", "results", "assumptions", "stages", "devices", "seconds", "name"])
def test_the_schema_is_not_empty_words(missing: str) -> None:
    document = json.loads(render([report(P, U)], several=False))
    assert not FITS({k: v for k, v in document.items() if k != missing})
    assert not FITS({**document, missing: [{}]})
    assert not FITS({**document, "more": 1})


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
    assert stopped["notes"]["looks like"].startswith("HV002: ")
    assert (unsupported["code"], unsupported["operation"], unsupported["location"]) == ("HV202", "sort", "train.py:60")
    assert document["unsupported"] == ["sort at train.py:60: along a split dimension"]
    [refuted, _] = json.loads(render([report(R)], several=False))["diagnostics"]
    assert (refuted["code"], refuted["severity"]) == ("HV002", "error")
    assert not {"suspected", "looks like"} & refuted["notes"].keys()


def test_a_pair_in_a_folder_is_still_a_list() -> None:
    """Programs that read folders need not care how many pairs were in them."""
    assert list(json.loads(render([report(P)], several=True))) == ["verdict", "modules"]
