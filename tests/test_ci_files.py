"""The hook of pre-commit and the container file name what there is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_hook_runs_the_linter_on_modules() -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["language"] == "python" and hook["entry"].split()[0] in PROJECT["project"]["scripts"]
    names = {
        "dump/module_0001.jit_f.cpu_after_optimizations.txt": True,
        "dump/module_0001.jit_f.cpu_after_optimizations.txt.gz": True,
        "a.hlo": True,
        "a.stablehlo.gz": True,
        "a.mlir": True,
        "module_0001.jit_f.before_optimizations.txt": False,
        "a.py": False,
        "hlo/readme.md": False,
    }
    assert {name: bool(re.search(hook["files"], name)) for name in names} == names


def test_the_container_is_built_of_what_the_package_needs() -> None:
    """What is copied is there and not ignored; what the package is made of is copied."""
    text = (ROOT / "Containerfile").read_text()
    copied = {word for line in re.findall(r"^COPY (.*)", text, re.MULTILINE) for word in line.split()[:-1]}
    assert all((ROOT / each).exists() for each in copied)
    for ignoring in (".containerignore", ".dockerignore"):
        kept = {line[1:] for line in (ROOT / ignoring).read_text().splitlines() if line.startswith("!")}
        assert kept == copied
    folders = {name.split(".")[0] for name in PROJECT["tool"]["setuptools"]["packages"]}
    assert folders | set(PROJECT["tool"]["setuptools"]["package-dir"].values()) <= copied
    assert f'ENTRYPOINT ["{next(iter(PROJECT["project"]["scripts"]))}"]' in text
