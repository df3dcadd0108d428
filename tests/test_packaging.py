"""What is installed. `.ci/run` builds a wheel and tries it in an environment of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points, metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

import hlo_verify
import hlo_verify.passes

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_list_of_packages_is_complete() -> None:
    """`package-dir` with automatic discovery does not find mapped packages, so the list is written by hand."""
    own = {path.parent for path in (ROOT / "hlo_verify").rglob("*.py")}
    folders = {path.relative_to(ROOT) for path in own if (ROOT / "hlo_verify" / "passes") not in (path, *path.parents)}
    folders |= {Path("hlo_verify") / path.parent.relative_to(ROOT) for path in (ROOT / "passes").rglob("*.py")}
    setuptools = PROJECT["tool"]["setuptools"]
    assert sorted(setuptools["packages"]) == sorted(".".join(folder.parts) for folder in folders)
    assert setuptools["package-dir"] == {"hlo_verify": "hlo_verify", "hlo_verify.passes": "passes"}


def test_passes_are_installed_under_their_name_only() -> None:
    assert Path(hlo_verify.passes.__file__ or "").resolve() == (ROOT / "passes" / "__init__.py").resolve()
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('passes') is not None)"
    assert subprocess.run([sys.executable, "-P", "-c", code], cwd="/", check=False).returncode == 0


def test_the_link_for_tools_that_run_no_import_hooks() -> None:
    link = ROOT / "hlo_verify" / "passes"
    assert link.is_symlink()
    assert link.resolve() == ROOT / "passes"


def test_version_and_console_script() -> None:
    assert metadata("hlo-verify")["Version"] == hlo_verify.__version__
    [script] = [e for e in entry_points(group="console_scripts") if e.name == "hlo-verify"]
    assert script.value == "hlo_verify.cli:main"


def test_every_runtime_dependency_has_its_reason() -> None:
    names = [re.split(r"[<>=]", requirement)[0] for requirement in PROJECT["project"]["dependencies"]]
    reasons = (ROOT / "docs" / "decisions" / "dependencies.md").read_text()
    assert sorted(re.findall(r"^\| ([\w-]+) \|", reasons, re.MULTILINE)[1:]) == sorted(names)


@pytest.mark.parametrize("name", ["hlo_verify.cli", "hlo_verify.passes.load.load", "hlo_verify.passes.prove.prove"])
def test_modules_can_be_found(name: str) -> None:
    assert find_spec(name) is not None


def test_the_readme_starts_with_two_commands() -> None:
    """`.ci/run` runs the first two shell blocks; it fails where they are not what it expects."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    install, test = blocks[:2]
    assert "pip install" in install
    assert "hlo-verify testdata/" in install
    assert "pytest" in test
    paths = re.findall(r"testdata/\S+", install)
    assert paths
    assert all((ROOT / path).exists() for path in paths)
