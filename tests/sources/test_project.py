"""Defaults in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.sources.project import read_custom_calls, read_defaults


def test_defaults_come_from_the_nearest_table(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.hlo-verify]\nverbose = true\n")
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    assert read_defaults(inner) == {"verbose": True}
    (inner / "pyproject.toml").write_text("[tool.hlo-verify]\n")
    assert read_defaults(inner) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool]\nhlo-verify = 5", "must be a table, not 5"),
        ("[[tool.hlo-verify]]\nformat = 'json'", "must be a table, not "),
        ("[tool.hlo-verify]\ndevices = 0", "devices in .* must be from 1 to 1048576, not 0"),
        ("[tool.hlo-verify]\ndevices = 1048577", "devices in .* must be from 1 to 1048576, not 1048577"),
        ("[tool.hlo-verify]\ndevices = true", "must be of type int, not True"),
        ("[tool.hlo-verify]\nformat = ['json']", "must be 'text' or 'json'"),
        ("[tool.hlo_verify]\nformat = 'json'", r"the table is called \[tool.hlo-verify\]"),
        ("a = " + "[" * 5000, "neither valid TOML nor JSON"),
    ],
)
def test_defaults_that_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(InputError, match=said):
        read_defaults(tmp_path)


def test_a_table_of_tools_that_is_none_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool = 5")
    assert read_defaults(tmp_path) == {}


def test_a_meaning_whose_module_ends_the_program(tmp_path: Path) -> None:
    (tmp_path / "script_that_exits.py").write_text("raise SystemExit(3)")
    (tmp_path / "pyproject.toml").write_text("[tool.hlo-verify.custom-calls]\na = 'script_that_exits:f'")
    with pytest.raises(InputError, match="cannot be imported"):
        read_custom_calls(tmp_path)
