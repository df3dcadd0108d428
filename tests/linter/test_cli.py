"""`hlo-verify lint` from the command line."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from hlo_verify import cli
from hlo_verify.linter.lint import files_of

CLEAN = "HloModule m\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n"
WRONG = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[4] parameter(0), metadata={op_name="f/copy" source_file="train.py" source_line=7}
  s = (f32[4], f32[4], u32[]) copy-start(p)
  ROOT n = f32[4] negate(p)
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "module_0001.jit_f.cpu_after_optimizations.txt").write_text(CLEAN)
    (tmp_path / "module_0002.jit_g.cpu_after_optimizations.txt.gz").write_bytes(gzip.compress(WRONG.encode()))
    (tmp_path / "module_0001.jit_f.before_optimizations.txt").write_text("of no interest")
    return tmp_path


def test_a_dump_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lint", str(folder)]) == 1
    out, err = capsys.readouterr()
    assert err == "" and "no defect found" in out
    assert "  error[HV703] s: no copy-done waits for it\n    at    line 4\n" in out


def test_what_lies_beside_a_module_is_found_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Buffers and live ranges are named for the final module, thunks and shardings for the module."""
    made = Path(__file__).parents[2] / "testdata" / "scheduled"
    final = "module_0007.jit_f.sm_9.0_gpu_after_optimizations"
    for what, name in {
        "hlo": f"{final}.txt.gz",
        "buffers.txt": f"{final}-buffer-assignment.txt.gz",
        "values.txt": f"{final}-buffer-assignment-values.txt.gz",
        "live.txt": f"{final}-live-range.txt.gz",
        "thunks.txt": "module_0007.jit_f.thunk_sequence_after_thunk_passes.txt.gz",
    }.items():
        (tmp_path / name).write_bytes((made / f"h100.cond_inner_axis.{what}.gz").read_bytes())
    shardings = {"in": ["{replicated}", "{replicated}"], "out": ["{replicated}"]}
    (tmp_path / "module_0007.jit_f.shardings.json.gz").write_bytes(gzip.compress(json.dumps(shardings).encode()))
    [files] = files_of(tmp_path)
    assert None not in files.beside.values()
    assert cli.main(["lint", str(tmp_path)]) == 0
    assert re.search(
        r"\d+ allocations, \d+ values, \d+ live ranges, 17 thunks, \d+ thunks placed", capsys.readouterr().out
    )
    assert cli.main(["lint", str(tmp_path), "--live", str(tmp_path / f"{final}-buffer-assignment.txt.gz")]) == 2
    assert "are no live ranges" in capsys.readouterr().err


def test_json_and_the_exit_status(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lint", str(folder), "--format", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    [found] = data["findings"]
    assert (found["code"], found["class"], found["instruction"]) == ("HV703", "orphan_start", "s")
    assert [one["looked_at"]["transfers"] for one in data["modules"]] == [0, 1]
    assert cli.main(["lint", str(folder), "--ignore", "HV70"]) == 0
    assert cli.main(["lint", str(folder), "--select", "HV6"]) == 0
    assert cli.main(["lint", str(folder), "--select", "hv703", "-o", str(folder / "report.txt")]) == 1
    assert "HV703" in (folder / "report.txt").read_text()


def test_what_nobody_foresaw_is_no_traceback(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(module: object) -> None:
        raise ValueError("no such shape")

    monkeypatch.setattr("hlo_verify.linter.transfers.check", fail)
    assert cli.main(["lint", str(folder)]) == 70
    assert "error[HV9" in capsys.readouterr().err
    with pytest.raises(ValueError, match="no such shape"):
        cli.main(["lint", str(folder), "--traceback"])


def test_sarif_for_code_hosts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lint", str(folder), "--format", "sarif"]) == 1
    [run] = json.loads(capsys.readouterr().out)["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["HV703"]


@pytest.mark.parametrize(
    ("table", "argv", "status"),
    [
        ('ignore = ["HV703"]', [], 0),
        ('ignore = ["HV703"]', ["--ignore", "HV6"], 1),
        ('select = ["HV6"]', [], 0),
        ('select = ["HV6"]', ["--select", "HV7"], 1),
        ("strict = true", [], 1),
    ],
)
def test_a_projects_own_defaults(
    table: str, argv: list[str], status: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.hlo-verify.lint]\n{table}\n")
    monkeypatch.chdir(folder)
    assert cli.main(["lint", ".", *argv]) == status


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("lint = 1", "must be a table"),
        ("lint = { codes = [] }", "has no key 'codes'; it may have select, ignore, strict"),
        ('lint = { strict = "yes" }', "strict must be true or false, not 'yes'"),
        ('lint = { select = "HV7" }', "select must be a list of codes, not 'HV7'"),
        ('lint = { ignore = ["HV999"] }', "no code begins with 'HV999'"),
    ],
)
def test_what_a_project_may_not_say(
    table: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.hlo-verify]\n{table}\n")
    monkeypatch.chdir(folder)
    assert cli.main(["lint", "."]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["missing.txt"], "missing.txt: it cannot be read"),
        (["FOLDER", "--buffers", "b.txt"], "--buffers is of one module; give one"),
        (["FOLDER", "--select", "HV999"], "no code begins with 'HV999'"),
        (["EMPTY"], "there is no *after_optimizations.txt"),
        (["JUNK"], "does not begin with HloModule"),
    ],
)
def test_what_cannot_be_read(argv: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "empty").mkdir()
    (folder / "junk").write_bytes(b"nothing\n")
    there = {"FOLDER": folder, "EMPTY": folder / "empty", "JUNK": folder / "junk"}
    assert cli.main(["lint", *(str(there.get(word, word)) for word in argv)]) == 2
    assert said in capsys.readouterr().err
