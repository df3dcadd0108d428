"""The command line, with a stand-in for the prover: what it is asked, and what becomes of its answer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

import pytest

import hlo_verify
from hlo_verify import cli, comparing
from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import DisagreementError, InputError
from hlo_verify.jobs import Job
from hlo_verify.program.ir import Op
from hlo_verify.report import Report, Verdict
from tests.programs import report
from tests.sources.test_dump_pairs import GSPMD_GPU, SHARDY_CPU, TPU, fill

P, R, U = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN


class Prover:
    """Answers with a report (or raises) for each call, and remembers how it was called."""

    def __init__(self, *answers: Report | BaseException) -> None:
        self.answers = list(answers)
        self.calls: list[dict[str, Any]] = []

    def __call__(self, logical: Path, partitioned: Path | None, **options: Any) -> Report:
        self.calls.append({"logical": logical, "partitioned": partitioned, **options})
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("cwd"))


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (report(P, P), 0),
        (report(P, R, U), 1),
        (report(P, U), 3),
        (report(), 3),
        (InputError("no", Input.DAMAGED), 2),
        (KeyError("no"), 70),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_status(answer: Report | BaseException, status: int) -> None:
    assert cli.main(["a.mlir"], verify=Prover(answer)) == status


def test_what_the_prover_is_asked() -> None:
    prover = Prover(report(P), report(P))
    cli.main(["a.mlir", "--keep", "kept", "--devices", "8"], verify=prover)
    cli.main(["a.hlo", "b.hlo", "--shardings", "s.toml"], verify=prover)
    one, pair = ({k: v for k, v in call.items() if k != "progress"} for call in prover.calls)
    plain = {"devices": None, "shardings": None, "keep": None, "refute": True, "witness": None}
    assert one == {**plain, "logical": Path("a.mlir"), "partitioned": None, "keep": Path("kept"), "devices": 8}
    shardings = Path("s.toml")
    assert pair == {**plain, "logical": Path("a.hlo"), "partitioned": Path("b.hlo"), "shardings": shardings}


def test_progress_may_be_called(capsys: pytest.CaptureFixture[str]) -> None:
    """On no terminal it draws nothing."""
    prover = Prover(report(P))
    cli.main(["a.mlir"], verify=prover)
    progress: Callable[[int, int], None] = prover.calls[0]["progress"]
    progress(0, 0)
    progress(1, 2)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--replay", "a", "b", "c", "d"],
        ["a", "--format", "xml"],
        ["a", "--devices", "0"],
        ["a", "--devices", "many"],
        ["a", "--devices", "1048577"],
        ["a", "--devices", "99999999999"],
        [""],
        ["a", ""],
        ["a", "-o", ""],
        ["a", "--witness", ""],
        ["--replay", ""],
        ["a", "--no-such-option"],
        ["a", "-o", "no/such/folder/report.json"],
        [".", "--keep", "x"],
        ["--replay", "a", "--witness", "b"],
        ["--replay", "a", "--recheck"],
    ],
)
def test_usage_errors_are_one_line(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = cli.main(argv, verify=Prover())
    except SystemExit as exit_:
        status = exit_.code
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert re.match(r"hlo-verify: error\[HV40[02]\]: ", err)
    assert err.count("\n") == 1


def test_as_many_devices_as_a_mesh_may_have() -> None:
    prover = Prover(report(P))
    assert cli.main(["a", "b", "--devices", "1048576"], verify=prover) == 0
    assert prover.calls[0]["devices"] == 1048576
    text = "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }\n"
    with pytest.raises(InputError, match="1048577 devices; 1048576 at most are understood"):
        hlo_verify.verify(text, text, devices=1048577)


@pytest.mark.parametrize(
    "argv",
    [
        [""],
        ["a", ""],
        ["a", "-o", ""],
        ["--cache", "", "a"],
        ["lint", ""],
        ["lint", "a", "-o", ""],
        ["lint", "a", "--svg", ""],
        ["export", "a", "", "--model-explorer", "b"],
        ["export", "a", "--model-explorer", ""],
        ["cache", "info", "--cache", ""],
    ],
    ids=str,
)
def test_an_empty_path_is_not_the_folder_that_one_is_in(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`hlo-verify "$DUMP"`, where the variable has no value."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(argv, verify=Prover())
    out, err = capsys.readouterr()
    assert (stopped.value.code, out) == (2, "") and "the path is empty" in err


def test_an_internal_error_names_the_place_and_the_operation(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: Any, **__: Any) -> Report:
        op = Op("dot_general", (), (), ())
        return hlo_verify.render.overall(op)  # type: ignore[no-any-return, attr-defined]

    assert cli.main(["a.mlir"], verify=broken) == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("hlo-verify: internal error[HV901]: TypeError: ")
    assert "in render/__init__.py:" in err
    assert "(overall), at dot_general from unknown location" in err
    assert "defect of hlo-verify" in err
    assert "Traceback" not in err


def test_a_disagreement_has_a_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["a.mlir"], verify=Prover(DisagreementError("proved, and differs"))) == 70
    assert capsys.readouterr().err.startswith("hlo-verify: internal error[HV902]: ")


def test_traceback_on_request() -> None:
    with pytest.raises(KeyError, match="no"):
        cli.main(["a.mlir", "--traceback"], verify=Prover(KeyError("no")))


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["a.mlir", "--format", "json"], verify=Prover(report(P, U))) == 3
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "UNKNOWN"
    assert err == ""


def test_output_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.txt"
    assert cli.main(["a.mlir", "-o", str(target)], verify=Prover(report(P))) == 0
    assert capsys.readouterr().out == ""
    assert target.read_text().splitlines()[-1].startswith("PROVED   1 result on 8 devices")


def test_output_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["a.mlir", "-o", str(tmp_path)], verify=Prover(report(P))) == 2
    assert capsys.readouterr().err.startswith(f"hlo-verify: error[HV402]: cannot write {tmp_path}")


def test_names_that_no_file_can_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["x" * 300]) == 2
    assert capsys.readouterr().err.startswith("hlo-verify: error[HV401]: ")


def test_a_name_that_is_not_text(tmp_path: Path) -> None:
    """Such as a file that an old archive left, with a name in Latin-1."""
    target = tmp_path / "report.txt"
    named = report(P, U, name=os.fsdecode(b"caf\xe9"))
    assert cli.main(["a.mlir", "-o", str(target)], verify=Prover(named)) == 3
    assert target.read_text()
    assert cli.main(["a.mlir", "-o", str(target), "--format", "json"], verify=Prover(named)) == 3
    assert json.loads(target.read_text())["name"] == os.fsdecode(b"caf\xe9")


class TestFolders:
    def test_every_pair_and_the_worst_verdict(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        prover = Prover(report(P), report(U))
        assert cli.main([str(fill(tmp_path, *SHARDY_CPU, *TPU))], verify=prover) == 3
        assert [(c["logical"].name, c["partitioned"].name) for c in prover.calls] == [SHARDY_CPU, TPU]
        out = capsys.readouterr().out
        assert out.startswith("module_0000.jit_loss\n\nPROVED   result[0]\n")
        assert "\n\nmodule_0011.jit_train_step.cl_813921542\n\nUNKNOWN  result[0]" in out
        assert out.splitlines()[-1] == "UNKNOWN  2 modules: 1 proved, 1 unknown"

    def test_one_failure_does_not_stop_the_others(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        fill(tmp_path, *SHARDY_CPU, *TPU, *GSPMD_GPU)
        prover = Prover(InputError("constants are missing", Input.ELIDED_CONSTANTS), report(P), KeyError("oops"))
        assert cli.main([str(tmp_path), "--format", "json"], verify=prover) == 2
        document = json.loads(capsys.readouterr().out)
        assert document["verdict"] == "UNKNOWN"
        assert [m["verdict"] for m in document["modules"]] == ["UNKNOWN", "PROVED", "UNKNOWN"]
        assert [m.get("kind") for m in document["modules"]] == ["input", None, "internal"]
        assert [m.get("code") for m in document["modules"]] == ["HV405", None, "HV901"]

    def test_half_a_pair_is_not_passed_over(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        fill(tmp_path, *SHARDY_CPU, GSPMD_GPU[0])
        assert cli.main([str(tmp_path)], verify=Prover(report(P))) == 2
        assert "the one after it is missing" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("answers", "status"),
        [
            ((report(P), report(P)), 0),
            ((report(R), InputError("x", Input.DAMAGED)), 1),
            ((KeyError("x"), InputError("x", Input.DAMAGED)), 2),
            ((KeyError("x"), report(U)), 70),
            ((report(P), report(U)), 3),
        ],
    )
    def test_exit_status(self, tmp_path: Path, answers: tuple[Report | BaseException, ...], status: int) -> None:
        assert cli.main([str(fill(tmp_path, *SHARDY_CPU, *TPU))], verify=Prover(*answers)) == status


class TestColor:
    @pytest.mark.parametrize(
        ("argv", "environment", "colored"),
        [
            (["--color", "always"], {"NO_COLOR": "1"}, True),
            (["--color", "never"], {}, False),
            (["--color", "auto"], {}, True),
            (["--color", "auto"], {"NO_COLOR": "1"}, False),
            (["--color", "auto"], {"NO_COLOR": ""}, True),
            (["--color", "auto"], {"TERM": "dumb"}, False),
            ([], {}, True),
        ],
    )
    def test_on_a_terminal(
        self,
        argv: list[str],
        environment: dict[str, str],
        colored: bool,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")
        for key, value in environment.items():
            monkeypatch.setenv(key, value)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        cli.main(["a.mlir", *argv], verify=Prover(report(P)))
        assert ("\033[1;32m" in capsys.readouterr().out) is colored

    def test_elsewhere(self, capsys: pytest.CaptureFixture[str]) -> None:
        cli.main(["a.mlir"], verify=Prover(report(P)))
        assert "\033" not in capsys.readouterr().out


class TestDefaults:
    def test_from_pyproject(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("pyproject.toml").write_text('[tool.hlo-verify]\nformat = "json"\ndevices = 16\n')
        prover = Prover(report(P), report(P))
        cli.main(["a.mlir"], verify=prover)
        json.loads(capsys.readouterr().out)
        cli.main(["a.mlir", "--format", "text", "--devices", "4"], verify=prover)
        assert capsys.readouterr().out.startswith("PROVED")
        assert [call["devices"] for call in prover.calls] == [16, 4]

    @pytest.mark.parametrize("line", ['formt = "json"', 'devices = "16"', "verbose = 1", 'format = "xml"', "= 3"])
    def test_that_are_wrong(self, line: str, capsys: pytest.CaptureFixture[str]) -> None:
        Path("pyproject.toml").write_text(f"[tool.hlo-verify]\n{line}\n")
        assert cli.main(["a.mlir"], verify=Prover(report(P))) == 2
        assert "pyproject.toml" in capsys.readouterr().err


def run(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *argv], capture_output=True, text=True, check=False, **options)


def test_version() -> None:
    said = {run("-m", "hlo_verify", *options).stdout for options in (["--version"], ["-q", "--version"])}
    assert said == {f"hlo-verify {hlo_verify.__version__} (jaxlib {version('jaxlib')}, Python {python_version()})\n"}


def test_as_a_module() -> None:
    done = run("-m", "hlo_verify", "nowhere.mlir")
    assert (done.returncode, done.stdout) == (2, "")
    message = "nowhere.mlir: there is no such file (see hlo-verify --explain HV401)"
    assert done.stderr == f"hlo-verify: error[HV401]: {message}\n"


def test_a_reader_who_has_seen_enough() -> None:
    code = (
        "import sys\nfrom hlo_verify import Verdict, cli\nfrom tests.programs import report\n"
        "sys.exit(cli.main(['a'], verify=lambda *a, **k: report(Verdict.PROVED)))"
    )
    read, write = os.pipe()
    os.close(read)
    root = Path(__file__).resolve().parent.parent
    process = subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


def test_an_interruption_keeps_what_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of several modules, those that were verified are reported."""
    done: list[str] = []

    def verify(logical: Path, partitioned: Path, **options: object) -> Report:
        if done:
            raise KeyboardInterrupt
        done.append(logical.name)
        return report(P)

    pairs = [Job("a", Path("a"), Path("a")), Job("b", Path("b"), Path("b"))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "find_jobs", lambda paths: pairs)
        assert cli.main([str(tmp_path)], verify=verify) == 130
    out, err = capsys.readouterr()
    assert "PROVED" in out
    assert "interrupted after 1 of 2 modules" in err
