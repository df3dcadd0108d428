"""SARIF, against the schema of the standard."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator

from hlo_verify.diagnostics import CODES, Diagnostic, Input, Severity, Solver
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.linter.lint import lint
from hlo_verify.linter.render import to_sarif
from hlo_verify.render import Failure, Outcome, overall
from hlo_verify.render.sarif import Entry, document, render
from hlo_verify.report import Verdict
from tests.programs import FINDING, chain, report
from tests.render.test_hostile import reported
from tests.render.test_json import CHECKED

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
        ([chain(P, R, U)], ["error", "warning", "warning"], True),
        ([replace(chain(P, U), report=None)], ["warning"], True),
        ([replace(report(), unsupported=())], ["warning"], True),
        ([chain(P, R, P), replace(report(P), unsupported=())], ["error", "warning"], True),
        ([Failure("a b.txt", InputError("no", Input.DAMAGED).diagnostic)], [], False),
        ([replace(report(P), preconditions=("x in [0, 4)",), recheck=CHECKED, unsupported=())], [], False),
        ([replace(chain(P, P), missing=2)], ["warning"], True),
        (
            [*reported("\udc80 |\n/a:0")],
            ["error", "warning", "warning", "error", "warning", "warning", "warning"],
            False,
        ),
    ],
)
def test_verdicts(outcomes: list[Outcome], levels: list[str], successful: bool) -> None:
    run = parsed(render(outcomes))
    assert [result["level"] for result in run["results"]] == levels
    assert run["invocations"][0]["executionSuccessful"] is successful
    assert [each["verdict"] for each in run["properties"]["verdicts"]] == [overall([one]) for one in outcomes]


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


def fixed(line: str, suggestion: str, file: Path) -> str | None:
    """The file of one line after the fix that SARIF suggests, as an editor would apply it."""
    file.write_text(line)
    finding = replace(FINDING, suggestion=f"{suggestion} at {file}:1")
    [result, *_] = parsed(render([report(R, finding=finding)]))["results"]
    if "fixes" not in result:
        return None
    [fix] = result["fixes"]
    [change] = fix["artifactChanges"]
    assert change["artifactLocation"]["uri"] == file.as_uri()
    [replacement] = change["replacements"]
    region = replacement["deletedRegion"]
    assert region["startLine"] == region["endLine"] == 1
    before, after = line[: region["startColumn"] - 1], line[region["endColumn"] - 1 :]
    return str(before + replacement["insertedContent"]["text"] + after)


def test_a_repair_of_one_word_is_a_fix(tmp_path: Path) -> None:
    file, mean = tmp_path / "f.py", "the mean (pmean) over 'd' in place of the sum (psum)"
    assert fixed("return lax.psum(x, 'd')  # psum\n", mean, file) == "return lax.pmean(x, 'd')  # psum\n"
    assert fixed("return lax.psum(lax.psum(x, 'd'), 'e')", mean, file) is None, "which of the two is not known"
    assert fixed("return lax.pmean(lax.psum(x, 'd'), 'e')", mean, file) is None
    assert fixed("return my_psum(x)", mean, file) is None, "the line is another one than it was"
    assert fixed("return lax.psum(x, 'd')", "an all_reduce over all 8 devices after dot", file) is None


def test_paths_below_the_working_folder_are_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path, uri in ((tmp_path / "a b.mlir", "a%20b.mlir"), (Path("/elsewhere/m"), "file:///elsewhere/m")):
        run = parsed(document([Entry(str(path), Diagnostic(Solver.NO_PROOF, Severity.WARNING, "what"))]))
        assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_a_repair_that_was_proved_mends_the_source(tmp_path: Path) -> None:
    """A program with a mean for a sum is refuted, and the program with the suggested fix is proved."""
    source = """
import jax, hlo_verify
from jax.sharding import AbstractMesh, PartitionSpec as P
def total(x):
    return jax.numpy.tanh(x).sum()
def on_devices(x):
    return jax.lax.pmean(jax.numpy.tanh(x).sum(), "d")
distributed = jax.shard_map(on_devices, mesh=AbstractMesh((4,), ("d",)), in_specs=P("d"), out_specs=P())
report = hlo_verify.check(total, distributed, jax.ShapeDtypeStruct((8,), "float32"))
"""
    file = tmp_path / "program.py"

    def ran(text: str) -> Any:
        file.write_text(text)
        found: dict[str, Any] = {}
        exec(compile(text, str(file), "exec"), found)
        return found["report"]

    wrong = ran(source)
    [fix] = parsed(render([wrong]))["results"][0]["fixes"]
    [replacement] = fix["artifactChanges"][0]["replacements"]
    region = replacement["deletedRegion"]
    lines = source.split("\n")
    line = lines[region["startLine"] - 1]
    mended = (
        line[: region["startColumn"] - 1] + replacement["insertedContent"]["text"] + line[region["endColumn"] - 1 :]
    )
    lines[region["startLine"] - 1] = mended
    assert (wrong.verdict, ran("\n".join(lines)).verdict) == (R, P)
