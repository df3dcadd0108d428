"""SARIF, against the schema of the standard."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator

from hlo_verify.diagnostics import CODES, Diagnostic, Input, Severity
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.linter.lint import lint
from hlo_verify.linter.render import to_sarif
from hlo_verify.render import Failure, Outcome
from hlo_verify.render.sarif import Entry, document, render
from hlo_verify.report import Verdict
from tests.programs import chain, report

P, R, U = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN
SCHEMA = Draft4Validator(json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0.json").read_text()))
MODULE = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[4] parameter(0), metadata={op_name="f/copy" source_file="train.py" source_line=7}
  s = (f32[4], f32[4], u32[]) copy-start(p), metadata={op_name="f/copy" source_file="train.py" source_line=7}
  ROOT n = f32[4] negate(p)
}
"""


def parsed(text: str) -> dict[str, Any]:
    found = json.loads(text)
    SCHEMA.validate(found)
    [run] = found["runs"]
    return dict(run)


@pytest.mark.parametrize(
    ("outcomes", "levels", "successful"),
    [
        ([report(P, P)], ["warning"], True),
        ([report(P, U, U)], ["warning", "warning"], True),
        ([report(P, R)], ["error", "warning"], True),
        ([chain(P, P)], [], True),
        ([chain(P, R, P), replace(report(P), unsupported=())], ["error", "warning"], True),
        ([Failure("a b.txt", InputError("no", Input.DAMAGED).diagnostic)], [], False),
    ],
)
def test_verdicts(outcomes: list[Outcome], levels: list[str], successful: bool) -> None:
    run = parsed(render(outcomes))
    assert [result["level"] for result in run["results"]] == levels
    assert run["invocations"][0]["executionSuccessful"] is successful


def test_a_result_stands_at_the_users_line_with_what_is_known_of_it() -> None:
    run = parsed(render([report(R, name="/dumps/step.mlir")]))
    result = run["results"][0]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("train.py", 57)
    assert result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///dumps/step.mlir"
    assert result["ruleId"] == "HV002" and "expected: " in result["message"]["text"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert rule["id"] == "HV002" and rule["help"]["text"] == CODES["HV002"].explanation


def test_findings_of_the_linter() -> None:
    run = parsed(to_sarif([lint(MODULE, name="dump folder/step.txt")]))
    [result] = run["results"]
    assert (result["ruleId"], result["level"]) == ("HV703", "error")
    [place], [module] = result["locations"], result["relatedLocations"]
    assert place["physicalLocation"]["region"]["startLine"] == 7
    assert place["logicalLocations"] == [{"fullyQualifiedName": "s"}]
    assert module["physicalLocation"] == {
        "artifactLocation": {"uri": "dump%20folder/step.txt"},
        "region": {"startLine": 4},
    }


@pytest.mark.parametrize("code", CODES.values(), ids=str)
def test_each_code_makes_a_rule(code: Any) -> None:
    said = Diagnostic(code, Severity.WARNING, "what", "no line is known")
    run = parsed(document([Entry("m", said)]))
    assert run["results"][0]["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": "m"}}


def test_a_finding_keeps_its_fingerprint_where_lines_move() -> None:
    def fingerprint(text: str) -> str:
        [result] = parsed(to_sarif([lint(text, name="m")]))["results"]
        return str(result["partialFingerprints"]["hloVerify/v1"])

    moved = MODULE.replace("source_line=7", "source_line=9").replace("  s =", "\n  s.12 =")
    assert fingerprint(moved) == fingerprint(MODULE)
    assert fingerprint(MODULE.replace("train.py", "other.py")) != fingerprint(MODULE)
