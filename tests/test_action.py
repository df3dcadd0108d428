"""The action of GitHub: its steps, as a shell runs them, with a stand-in for what they run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
BASH = shutil.which("bash")

STUB = """#!/bin/bash
# Notes its arguments, writes what is asked for, and ends as `exit=N` among the arguments says.
printf '[%s]' "$@" >> "$CALLS"; echo >> "$CALLS"
status=0
for argument in "$@"; do
  case $argument in
    exit=*) status=${argument#exit=} ;;
    markdown=* | sarif=* | junit=*) echo "report ${argument%%=*}" > "${argument#*=}" ;;
    --junitxml=*) echo report > "${argument#*=}"; echo '``` 2 failed' ;;
  esac
done
exit "$status"
"""


def test_it_is_an_action() -> None:
    """As https://docs.github.com/actions/reference/workflows-and-actions/metadata-syntax has it for composite ones."""
    assert ACTION["runs"]["using"] == "composite" and ACTION["name"] and ACTION["description"]
    for given in ACTION["inputs"].values():
        assert given.keys() == {"description", "default"} and all(isinstance(each, str) for each in given.values())
    for step in STEPS:
        assert ("run" in step) is not ("uses" in step)
        assert "uses" in step or step["shell"] == "bash"
        assert re.fullmatch(r"[\w-]+(/[\w-]+)+@v\d+", step.get("uses", "a/b@v1"))
    steps = {step["id"] for step in STEPS if "id" in step}
    text = (ROOT / "action.yml").read_text()
    assert set(re.findall(r"steps\.(\w+)\.", text)) <= steps
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == ACTION["inputs"].keys()


def test_what_a_user_says_is_never_a_part_of_a_script() -> None:
    """Expressions stand in the environment of a step, where they are data."""
    assert not any("${{" in step.get("run", "") for step in STEPS)


class Runner:
    """Runs the steps of the action as GitHub's runner does, with `hlo-verify` and `python` in its place."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, ""
        self.calls, self.summary = folder / "calls", folder / "summary"
        (folder / "bin").mkdir()
        for name in ("hlo-verify", "python"):
            (folder / "bin" / name).write_text(STUB)
            (folder / "bin" / name).chmod(0o755)

    def expand(self, text: str, inputs: dict[str, str], outputs: dict[str, str]) -> str:
        known = {f"inputs.{name}": value for name, value in inputs.items()} | {"github.action_path": str(ROOT)}
        known |= {f"steps.run.outputs.{name}": value for name, value in outputs.items()}
        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: known[found[1]], text)

    def is_on(self, step: dict[str, Any], inputs: dict[str, str]) -> bool:
        if "if" not in step:
            return True
        found = re.fullmatch(r"inputs\.([\w-]+) (==|!=) '(.*)'", step["if"])
        assert found is not None, step["if"]
        return (inputs[found[1]] == found[3]) is (found[2] == "==")

    def run(self, **given: str) -> tuple[int, dict[str, str]]:
        """The status of the job and the outputs, with those inputs."""
        inputs = {name: each["default"] for name, each in ACTION["inputs"].items()}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        outputs: dict[str, str] = {}
        for step in STEPS:
            if "run" not in step or step["name"].startswith("Install") or not self.is_on(step, inputs):
                continue
            env = {name: self.expand(value, inputs, outputs) for name, value in step.get("env", {}).items()}
            path = os.environ["PATH"]
            if step["name"] == "Write the summary":  # its Python is the real one
                path = f"{Path(sys.executable).parent}:{path}"
            else:
                path = f"{self.folder / 'bin'}:{path}"
            kept = {name: str(self.folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "CALLS", "HOME")}
            kept["PYTHONPATH"] = str(ROOT)
            command = [str(BASH), "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(command, cwd=self.folder, env={"PATH": path, **kept, **env}, capture_output=True)
            self.log += done.stdout.decode()
            written = self.folder / "GITHUB_OUTPUT"
            if written.exists():
                outputs |= dict(line.split("=", 1) for line in written.read_text().splitlines())
            if done.returncode:
                return done.returncode, outputs
        return 0, outputs

    def read(self, name: str) -> str:
        return (self.folder / name).read_text() if (self.folder / name).exists() else ""


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    if BASH is None:
        pytest.skip("no bash")
    return Runner(tmp_path)


@pytest.mark.parametrize(
    ("given", "status", "verdict"),
    [
        ({"verify": "a b exit=0\n\n  c exit=0"}, 0, "PROVED"),
        ({"verify": "a exit=0\na exit=1\na exit=3"}, 1, "REFUTED"),
        ({"verify": "a exit=3"}, 1, "UNKNOWN"),
        ({"verify": "a exit=3\nb exit=0", "unknown": "allow"}, 0, "UNKNOWN"),
        ({"verify": "a exit=3\nb exit=2", "unknown": "allow"}, 1, "ERROR"),
        ({"verify": "a exit=70"}, 1, "ERROR"),
        ({"verify": "a exit=9", "lint": "b exit=3"}, 1, "ERROR"),
        ({"verify": "a exit=1\nb exit=2"}, 1, "REFUTED"),
        ({"verify": "a exit=0", "lint": "b exit=1"}, 1, "DEFECTS"),
        ({"lint": "b exit=0"}, 0, "PASSED"),
        ({"pytest": "tests exit=0"}, 0, "PASSED"),
        ({"pytest": "tests exit=1", "unknown": "allow"}, 1, "DEFECTS"),
        ({"pytest": "tests exit=5"}, 1, "ERROR"),
        ({"verify": "a exit=3", "pytest": "tests exit=5", "unknown": "allow"}, 1, "ERROR"),
        ({}, 1, "ERROR"),
    ],
    ids=str,
)
def test_the_worst_decides(runner: Runner, given: dict[str, str], status: int, verdict: str) -> None:
    ended, outputs = runner.run(**given)
    assert (ended, outputs["verdict"]) == (status, verdict)


def test_lines_are_arguments_and_nothing_else(runner: Runner) -> None:
    """Quotes hold spaces together; what a shell would carry out is text."""
    runner.run(verify="'a b.mlir' $(touch\\ x) ;touch y `z` --assume 't in [0, 8)'", lint="dumps", pytest="-k 'a or b'")
    first, second, third = runner.read("CALLS").splitlines()
    reports = "".join(f"[--report][{each}=hlo-verify-reports/01-verify.{end}]" for each, end in FILES)
    kept = f"[--cache][{runner.folder}/HOME/.cache/hlo-verify]"
    assert first == f"{kept}[a b.mlir][$(touch x)][;touch][y][`z`][--assume][t in [0, 8)]{reports}"
    assert second.startswith("[lint][dumps][--report]")
    assert third == "[-m][pytest][-k][a or b][--junitxml=hlo-verify-reports/03-pytest.xml]"
    assert {path.name for path in runner.folder.iterdir()}.isdisjoint({"x", "y"})


FILES = (("markdown", "md"), ("sarif", "sarif"), ("junit", "xml"))


@pytest.mark.parametrize("cache", ["true", "false"])
def test_verdicts_are_kept_where_they_are_to_be(cache: str, runner: Runner) -> None:
    runner.run(verify="a", lint="b", cache=cache)
    verified, linted = runner.read("CALLS").splitlines()
    assert verified.startswith(f"[--cache][{runner.folder}/HOME/.cache/hlo-verify][a]") is (cache == "true")
    assert "[--cache]" not in linted


def test_the_summary_has_all_reports(runner: Runner) -> None:
    assert runner.run(verify="a\nb", lint="c", pytest="d exit=1")[0] == 1
    summary = runner.read("GITHUB_STEP_SUMMARY")
    assert summary.count("report markdown") == 3
    assert "## Tests\n\n````text\n``` 2 failed\n````\n" in summary
    runner.run(verify="a", summary="false")
    assert runner.read("GITHUB_STEP_SUMMARY") == summary


@pytest.mark.parametrize("kind", ["verify", "lint", "pytest"])
def test_a_line_that_is_no_line_runs_nothing(kind: str, runner: Runner) -> None:
    """A quote that is not closed: what stands before it would be another question than the one that was asked."""
    status, outputs = runner.run(**{kind: "a.mlir it's.mlir exit=0"})
    assert (status, outputs["verdict"], runner.read("CALLS")) == (1, "ERROR", "")


def test_only_what_this_run_wrote_is_in_the_summary(runner: Runner) -> None:
    """A folder may hold reports of an earlier use of the action: of more lines, or where this one writes none."""
    runner.run(verify="a\nb\nc", summary="false")
    stub = (runner.folder / "bin" / "hlo-verify").read_text().replace("markdown=*", "never=*")
    (runner.folder / "bin" / "hlo-verify").write_text(stub)
    runner.run(verify="a\nb")
    assert "report markdown" not in runner.read("GITHUB_STEP_SUMMARY")
    assert "report" in runner.read("hlo-verify-reports/03-verify.md")


def test_a_summary_is_one_that_github_takes(runner: Runner) -> None:
    large = "markdown=*) head -c 60000 /dev/zero | tr '\\0' x > \"${each#*=}\" ;;"
    stub = f'#!/bin/bash\nfor each in "$@"; do case $each in {large} esac; done\n'
    (runner.folder / "bin" / "hlo-verify").write_text(stub)
    runner.run(verify="a\n" * 20, pytest="b")
    summary = runner.read("GITHUB_STEP_SUMMARY")
    assert 900_000 < len(summary) < 1_048_576 and "5 more reports are in hlo-verify-reports." in summary
    assert "## Tests" in summary


def test_what_a_module_says_is_no_command_to_the_runner(runner: Runner) -> None:
    stub = (runner.folder / "bin" / "hlo-verify").read_text()
    (runner.folder / "bin" / "hlo-verify").write_text(stub.replace("status=0\n", "status=0; echo ::add-mask::a\n", 1))
    runner.run(verify="a exit=1", lint="b")
    off, said, on, end = [line for line in runner.log.splitlines() if line.startswith("::")][1:5]
    assert said == "::add-mask::a" and end == "::endgroup::"
    assert off.startswith("::stop-commands::") and on == f"::{off.removeprefix('::stop-commands::')}::" and len(on) > 30


@pytest.mark.slow
def test_with_the_real_tool(runner: Runner) -> None:
    """A proved pair, a refuted one, and a folder without modules of XLA."""
    (runner.folder / "bin" / "hlo-verify").write_text(
        f'#!/bin/bash\nPYTHONPATH={ROOT} exec {sys.executable} -m hlo_verify "$@"\n'
    )
    made = ROOT / "testdata" / "mlp_tp"
    logical, right, wrong = (made / f"{each}.hlo.gz" for each in ("logical", "partitioned", "broken_dropped_psum"))
    status, outputs = runner.run(verify=f"{logical} {right}\n{logical} {wrong}")
    assert (status, outputs["verdict"]) == (1, "REFUTED"), outputs
    assert "## PROVED" in runner.read("GITHUB_STEP_SUMMARY") and "## REFUTED" in runner.read("GITHUB_STEP_SUMMARY")
