"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from hlo_verify.memory import Memory

ROOT = Path(__file__).resolve().parents[1]


def modules() -> list[str]:
    """The modules that have examples."""
    folders = {ROOT / "hlo_verify": "hlo_verify", ROOT / "passes": "hlo_verify.passes"}
    found = {
        ".".join((prefix, *path.relative_to(folder).with_suffix("").parts))
        for folder, prefix in folders.items()
        for path in folder.rglob("*.py")
        if ">>> " in path.read_text() and "passes" not in path.relative_to(folder).parts
    }
    return sorted(found)


@pytest.mark.parametrize("name", modules())
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    with Memory().on():
        found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed
