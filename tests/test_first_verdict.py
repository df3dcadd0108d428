"""The page for newcomers says what is so."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hlo_verify.passes.refute import refute

PAGE = Path(__file__).resolve().parents[1] / "docs" / "first-verdict.md"


def test_the_blocks_of_the_page_do_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refute, "is_small", lambda pair: False)  # XLA need not run them as well
    program, question, mend = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    train: Any = ModuleType("train")
    monkeypatch.setitem(sys.modules, "train", train)
    exec(compile(program, str(tmp_path / "train.py"), "exec"), train.__dict__)
    exec(question, {})
    told = capsys.readouterr().out
    (shown,) = re.findall(r"```\n(REFUTED.*?)```", PAGE.read_text(), re.DOTALL)
    for line in shown.splitlines():
        assert line.partition("  witness")[0] in told.replace(f"{tmp_path}/", ""), told
    exec(mend, train.__dict__)
    exec(question, {})
    assert capsys.readouterr().out.splitlines()[-1].startswith("PROVED   4 results on 4 devices")
