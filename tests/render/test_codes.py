"""What is said of codes, on a terminal and on the page."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hlo_verify import cli
from hlo_verify.diagnostics import CODES, Mismatch
from hlo_verify.render.codes import explanation, page


def test_the_page_is_up_to_date() -> None:
    """`python -m hlo_verify.render.codes > docs/codes.md` writes it."""
    assert (Path(__file__).parents[2] / "docs" / "codes.md").read_text() == page()


def test_the_page_has_every_code_once() -> None:
    lines = page().splitlines()
    assert all(lines.count(f"### {code}: {code.summary}") == 1 for code in CODES.values())


@pytest.mark.parametrize("text", ["HV002", "hv002", " Hv002 "])
def test_explain(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--explain", text]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out == explanation(Mismatch.NEVER_REDUCED)
    assert out.startswith("HV002: a partial value is never reduced\n\n")


def test_an_unknown_code_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--explain", "HV02"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("hlo-verify: error[HV400]: there is no code 'HV02'; did you mean HV002 or ")
    assert cli.main(["--explain", "nonsense"]) == 2
    assert "docs/codes.md lists them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "no_color", "colored"),
    [([], "", True), ([], "1", False), (["--color", "never"], "", False), (["--color", "always"], "1", True)],
)
def test_colors(
    argv: list[str],
    no_color: str,
    colored: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert cli.main(["--explain", "HV002", *argv]) == 0
    assert ("\033[1m" in capsys.readouterr().out) is colored


def test_a_broken_pyproject_is_explained_nevertheless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.hlo-verify]\ncolour = 1\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["--explain", "HV412"]) == 0
    assert capsys.readouterr().out.startswith("HV412: ")
