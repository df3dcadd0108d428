"""What the command line prints in which format."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hlo_verify import cli
from hlo_verify.diagnostics import CODES
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.render import FORMATS, html
from hlo_verify.render.origin import SMALL, of_command
from hlo_verify.render.output import write
from hlo_verify.render.progress import Bar
from hlo_verify.report import Report, Verdict
from tests.linter.test_cli import WRONG
from tests.programs import FINDING, chain, report
from tests.render.test_html import Outline
from tests.render.test_junit import parsed, stopped
from tests.sources.test_dump_pairs import GSPMD_GPU, SHARDY_CPU, fill
from tests.test_cli import Prover

ROOT = Path(__file__).resolve().parents[1]
P, R, U = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_junit(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["a.mlir", "--format", "junit"], verify=Prover(report(P, U))) == 3
    assert stopped(parsed(capsys.readouterr().out)) == [("result[1]", "failure", "HV301")]
    assert cli.main(["a", "--format", "junit", "--junit-unknown", "skipped"], verify=Prover(report(U))) == 3
    assert stopped(parsed(capsys.readouterr().out)) == [("result[0]", "skipped", "HV301")]


def test_a_project_says_what_becomes_of_unknown_cases(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text('[tool.hlo-verify]\nformat = "junit"\njunit-unknown = "skipped"\n')
    assert cli.main(["a.mlir"], verify=Prover(report(U))) == 3
    assert stopped(parsed(capsys.readouterr().out)) == [("result[0]", "skipped", "HV301")]


def test_markdown_has_the_command_without_what_is_about_printing(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["a b.mlir", "--effort", "high", "--format=markdown", "-o", "x.md"]
    assert cli.main(given, verify=Prover(report(R))) == 1
    text = Path("x.md").read_text()
    assert "```sh\nhlo-verify 'a b.mlir' --effort high\n```" in text and "| jaxlib | `" in text
    assert capsys.readouterr().out == ""


def test_an_issue_holds_a_short_module(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.mlir").write_text("module @m {}")
    assert cli.main(["a.mlir", "--issue", "xla"], verify=Prover(report(R))) == 1
    out = capsys.readouterr().out
    assert "`a.mlir`:\n\n```mlir\nmodule @m {}\n```" in out and "The XLA of this jaxlib partitions `jit_step`" in out
    given = ["a.mlir", "--issue", "xla", "-o", "bug.md", "--report", "markdown=summary.md"]
    assert cli.main(given, verify=Prover(report(R))) == 1
    assert Path("bug.md").read_text() == out and Path("summary.md").read_text().startswith("## REFUTED")
    assert cli.main(["a.mlir", "--issue", "xla", "--format", "json"], verify=Prover(report(R))) == 2
    assert "--issue is written as Markdown" in capsys.readouterr().err


def test_only_short_text_is_shown_whole() -> None:
    paths = [Path(name) for name in ("text", "long", "bytes", "bytecode", "no")]
    for path, content in zip(paths, (b"module", b"x" * (SMALL + 1), b"\xff\xfe", b"ML\xefR", None), strict=True):
        if content is not None:
            path.write_bytes(content)
    assert of_command([], paths, None).modules == (("text", "module"),)


def test_lint(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.txt").write_text(WRONG)
    assert cli.main(["lint", "m.txt", "--format", "junit"]) == 1
    assert stopped(parsed(capsys.readouterr().out)) == [("HV703 s", "failure", "HV703")]
    assert cli.main(["lint", "m.txt", "--format", "markdown"]) == 1
    assert "| error | HV703 | `s` |" in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_that_lacks_characters_gets_escapes(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("m\u03bb.txt").write_text(WRONG)
    with open("out", "w", encoding=encoding) as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert cli.main(["lint", "m\u03bb.txt"]) == 1
    assert "m\\u03bb.txt: 1 error" in Path("out").read_text(encoding=encoding)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("given", [["--help"], ["lint", "--help"], ["cache", "info"], ["--explain", "HV006"]], ids=str)
def test_nothing_fails_for_want_of_characters(encoding: str, given: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with open("out", "w", encoding=encoding) as out:
        monkeypatch.setattr(sys, "stdout", out)
        try:
            status = cli.main(given)
        except SystemExit as ended:
            status = int(ended.code or 0)
    assert status == 0 and Path("out").read_text(encoding=encoding)


def test_what_looks_alike_stands_for_what_an_encoding_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("out", "w", encoding="ascii") as out:
        monkeypatch.setattr(sys, "stdout", out)
        cli.main(["a"], verify=Prover(report(U, finding=replace(FINDING, nearest="8 \u00d7 \u2026 \u2208 \u03bb"))))
    assert "  nearest    8 x ... in \\u03bb\n" in Path("out").read_text(encoding="ascii")


def test_a_module_writes_no_commands_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["a"], verify=Prover(report(U, finding=replace(FINDING, operation="\x1b]0;title\x07 \x9b2J \u202e"))))
    assert "operation  \\x1b]0;title\\x07 \\x9b2J \\u202e\n" in capsys.readouterr().out


def test_quiet_is_the_line_of_the_verdict_alone(capsys: pytest.CaptureFixture[str]) -> None:
    given = replace(report(P, U), preconditions=("x is positive",))
    assert cli.main(["a", "-q"], verify=Prover(given)) == 3
    line = "UNKNOWN  1 of 2 results proved on 8 devices, 2 stages (1 shared), 1.4 s, given that x is positive\n"
    assert capsys.readouterr().out == line
    assert cli.main(["a", "-q", "-v"], verify=Prover(given)) == 2
    assert "--quiet and --verbose" in capsys.readouterr().err
    Path("m.txt").write_text(WRONG)
    assert cli.main(["lint", "m.txt", "--quiet"]) == 1
    assert capsys.readouterr().out == "1 error in 1 module\n"


def test_quiet_of_a_folder_is_the_line_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    fill(Path(), *SHARDY_CPU, *GSPMD_GPU)
    assert cli.main([".", "-q"], verify=Prover(report(P), report(U))) == 3
    assert capsys.readouterr().out == "UNKNOWN  2 modules: 1 proved, 1 unknown\n"


def test_lines_are_as_long_as_a_terminal_is_wide(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    cli.main(["a"], verify=Prover(report(U)))
    assert max(map(len, capsys.readouterr().out.splitlines())) > 40, "no terminal, no width"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    cli.main(["a", "--color", "never"], verify=Prover(report(U)))
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 40
    cli.main(["a", "--format", "json"], verify=Prover(report(U)))
    assert '"operation": "%5 = stablehlo.multiply %3, %4 : tensor<512x4096xf32>"' in capsys.readouterr().out


def test_one_run_writes_several_reports(capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--report", "junit=a.xml", "--report=sarif=a=b.sarif", "--report", "text=a.txt"]
    assert cli.main(["a.mlir", "--color", "always", *more], verify=Prover(report(R))) == 1
    assert "\x1b[1;31mREFUTED" in capsys.readouterr().out
    assert stopped(parsed(Path("a.xml").read_text())) == [("result[0]", "failure", "HV002")]
    assert '"2.1.0"' in Path("a=b.sarif").read_text() and Path("a.txt").read_text().startswith("REFUTED")
    Path("m.txt").write_text(WRONG)
    assert cli.main(["lint", "m.txt", "--report", "markdown=a.md"]) == 1
    assert "1 error" in capsys.readouterr().out and Path("a.md").read_text().startswith("## hlo-verify lint: 1 error")


def test_where_a_report_goes_is_asked_before_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["a.mlir", "--report", "json=nowhere/a.json"], verify=Prover()) == 2
    assert "there is no folder nowhere" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        cli.main(["a.mlir", "--report", "a.json"], verify=Prover())
    assert "'a.json' is not FORMAT=FILE" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
@pytest.mark.parametrize("format_", ["json", "sarif", "junit"])
def test_what_programs_read_is_the_same_in_every_encoding(
    encoding: str, format_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Printed with an encoding and read as UTF-8, as the standards of JSON and XML have it."""
    said = "\u00e9 \u2026 \u03bb \U0001f600"
    with open("out", "w", encoding=encoding) as out:
        monkeypatch.setattr(sys, "stdout", out)
        cli.main(["a", "--format", format_], verify=Prover(report(U, finding=replace(FINDING, nearest=said))))
    text = Path("out").read_bytes().decode()
    read = "".join(parsed(text).itertext()) if format_ == "junit" else json.dumps(json.loads(text), ensure_ascii=False)
    assert said in read


ABORTED = (
    "a.mlir: XLA was ended by SIGABRT while it partitioned the module: F1 gather.cc:240] Unsupported indices type: S16"
)
WRONG_SHAPE = (
    "result r: the partitioned module returns [1], but its sharding into (2,) tiles makes [2] of the logical [4]"
)


@pytest.mark.parametrize(
    ("message", "number", "title"),
    [(ABORTED, "HV415", "Unsupported indices type: S16"), (WRONG_SHAPE, "HV106", "a module of a wrong shape")],
)
def test_what_xla_does_wrong_before_there_is_a_verdict_is_said_and_reported(
    message: str, number: str, title: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> Report:
        raise InputError(message, CODES[number])

    Path("a.mlir").write_text("module @m {}")
    assert cli.main(["a.mlir"], verify=fails) == 2
    assert "this is a defect of XLA, not of the module: with --issue xla a report" in capsys.readouterr().err
    assert cli.main(["a.mlir", "--issue", "xla", "-o", "bug.md"], verify=fails) == 2
    text = Path("bug.md").read_text()
    assert text.startswith(f"**Title:** SPMD partitioner: {title}\n") and "module @m {}" in text and message in text
    assert cli.main(["a.mlir", "--shardings", "s.json"], verify=fails) == 2
    assert "defect of XLA" not in capsys.readouterr().err.splitlines()[-1]


def test_errors_of_input_are_nobody_elses(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(*_: object, **__: object) -> Report:
        raise InputError("XLA was ended by SIGKILL while it partitioned the module", CODES["HV415"])

    Path("a.mlir").write_text("module @m {}")
    assert cli.main(["a.mlir", "--issue", "xla", "-o", "bug.md"], verify=fails) == 2
    assert "defect of XLA" not in capsys.readouterr().err and not Path("bug.md").exists()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_a_page_is_the_same_in_every_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says itself that it is UTF-8. What looks alike does not stand in it: a quote ends an attribute."""
    said = "\u00e9 \u2026 \u201d onclick=\u201d \U0001f600"
    steps = [replace(step, after=said) for step in chain(P, R).steps]
    with open("out", "w", encoding=encoding) as out:
        monkeypatch.setattr(sys, "stdout", out)
        write(html.render([replace(chain(P, R), steps=tuple(steps))]), None, "html")
    page = Outline(Path("out").read_bytes().decode())
    assert said in page.text and not any("onclick" in attributes for _, attributes in page.tags)


def test_a_file_has_no_width(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    cli.main(["a", "--report", "text=a.txt"], verify=Prover(report(U)))
    lines = capsys.readouterr().out.splitlines(), Path("a.txt").read_text().splitlines()
    assert max(map(len, lines[0])) < 60 < max(map(len, lines[1]))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["a", "-o", "folder"], "cannot write folder: it is a folder"),
        (["a", "--report", "json=r", "--report", "sarif=./r"], "cannot write r: it is written twice"),
        (["a", "--report", "json=r", "-o", "r"], "it is written twice"),
        (["a", "--witness", "r", "-o", "r"], "it is written twice"),
        (["a", "m.txt", "-o", "link"], "cannot write link: it is read"),
        (["--replay", "m.txt", "--report", "markdown=m.txt"], "it is read"),
        (["lint", "m.txt", "-o", "m.txt"], "it is read"),
        (["lint", "m.txt", "--svg", "r", "--report", "json=r"], "it is written twice"),
        (["lint", "m.txt", "--report", "json=no/r"], "there is no folder no"),
        (["export", "m.txt", "--model-explorer", "m.txt"], "it is read"),
        (["export", "m.txt", "--model-explorer", "folder"], "it is a folder"),
    ],
    ids=str,
)
def test_where_reports_cannot_go_is_known_before_the_work(
    given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("folder").mkdir()
    Path("m.txt").write_text(WRONG)
    Path("link").symlink_to("m.txt")
    assert cli.main(given, verify=Prover()) == 2
    assert said in capsys.readouterr().err.replace("./r", "r") and Path("m.txt").read_text() == WRONG


def test_what_is_no_file_takes_any_number_of_reports() -> None:
    assert cli.main(["a", "-o", "/dev/null", "--report", "json=/dev/null"], verify=Prover(report(R))) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_a_report_that_cannot_be_written_leaves_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--report", "json=/dev/full", "--report", "sarif=a.sarif"]
    assert cli.main(["a", *more], verify=Prover(report(R))) == 2
    out, err = capsys.readouterr()
    assert "cannot write /dev/full: No space left" in err and out.startswith("REFUTED") and Path("a.sarif").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_standard_output_that_takes_nothing_is_no_defect() -> None:
    """Nor does Python fail when it flushes once more at its end, with a status of its own."""
    command = [sys.executable, "-m", "hlo_verify", "--explain", "HV006"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "cannot write standard output: No space left" in done.stderr


@pytest.mark.parametrize("format_", FORMATS)
def test_the_caller_may_have_no_output(format_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed (`>&- 2>&-`, a service of Windows), or in memory."""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    given = ["a", "--format", format_, "--report", f"{format_}=r"]
    assert cli.main(given, verify=Prover(report(R))) == 1
    memory = io.StringIO()
    monkeypatch.setattr(sys, "stdout", memory)
    assert cli.main(["a"], verify=Prover(report(R))) == 1
    assert memory.getvalue().startswith("REFUTED") and Path("r").read_text()


def test_names_of_files_write_no_commands_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Bar(shown=False)
    bar.works_on("a\x1b[2J\nb", 2)
    assert bar.description == "(2 left) a\\x1b[2J b"
    Path("a\x1b[2J\nb.txt").write_text(WRONG)
    assert cli.main(["lint", "a\x1b[2J\nb.txt"]) == 1
    assert capsys.readouterr().out.startswith("a\\x1b[2J b.txt: 1 error\n")
