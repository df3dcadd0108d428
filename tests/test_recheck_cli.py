"""`--recheck` on the command line: what it prints, and that a disagreement is an internal error."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hlo_verify import api, cli, options
from hlo_verify.passes.diagnose.examine import Examination
from hlo_verify.report import Disagreement, Recheck, Report, Result, Verdict
from hlo_verify.sources.modules import module_of

FOUND = Recheck(12, 7, 8, 2, 1, (("while: no second transcription", 1),), (), 0.5, partly=3, limits=("recheck_steps",))
WRONG = replace(FOUND, agreed=7, disagreements=(Disagreement("dot_general", "train.py:57", "at p0=0: x = 1"),))


def _report(found: Recheck) -> Report:
    return Report("m", (Result(0, "y", Verdict.PROVED),), (), 8, 0.1, recheck=found)


@pytest.mark.parametrize(("found", "status"), [(FOUND, options.PROVED), (WRONG, options.INTERNAL_ERROR)])
def test_exit_status(found: Recheck, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked: dict[str, Any] = {}

    def verify(*_: Any, **options: Any) -> Report:
        asked.update(options)
        return _report(found)

    arguments = [str(tmp_path / "a.mlir"), str(tmp_path / "b.mlir"), "--recheck", "--jobs", "3", "-v"]
    assert cli.main(arguments, verify=verify) == status
    assert (asked["recheck"], asked["jobs"]) == (True, 3)
    shown = capsys.readouterr().out
    assert f"Checked again: {found.agreed} of 12 steps agree" in shown
    assert f"{found.partly} checked in part, 1 not checked" in shown
    assert "not checked: 1 x while: no second transcription" in shown
    assert "limits: recheck_steps" in shown
    assert ("INTERNAL ERROR: the proof is wrong at dot_general (train.py:57)" in shown) == bool(found.disagreements)
    assert cli.main([*arguments, "--format", "json"], verify=verify) == status
    assert json.loads(capsys.readouterr().out)["recheck"]["agreed"] == found.agreed


@pytest.mark.usefixtures("prover_alone")
def test_a_disagreement_takes_the_verdict_away(monkeypatch: pytest.MonkeyPatch) -> None:
    examined = Examination(replace(_report(FOUND), recheck=None), {})
    monkeypatch.setattr("hlo_verify.passes.chain.between.examine", lambda *_, **__: examined)
    monkeypatch.setattr("hlo_verify.passes.recheck.recheck.recheck", lambda *_, **__: WRONG)
    module = module_of("module @m { func.func public @main() { return } }\n", 8)
    report = api.verify(module, module, recheck=True, refute=False)
    assert (report.verdict, report.recheck) == (Verdict.UNKNOWN, WRONG)
    assert api.verify(module, module, refute=False).verdict is Verdict.PROVED
