"""Keys: other content is another key, and so is another tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_verify.cache import keys


def test_parts_are_kept_apart() -> None:
    different = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ("c", "ab")]
    assert len({keys.key(*parts) for parts in different}) == len(different)
    assert keys.key("ä") == keys.key("ä".encode())


def test_the_tool_is_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = keys.files_of_this_tool()
    assert {"hlo_verify/report.py", "passes/prove/prove.py", "hlo_verify/terms/laws.py"} <= names.keys()
    (tmp_path / "a.py").write_text("1")
    monkeypatch.setattr(keys, "homes", lambda: [tmp_path])
    found = []
    for change in (
        lambda: None,
        lambda: (tmp_path / "a.py").write_text("2"),
        lambda: (tmp_path / "a.py").rename(tmp_path / "b.py"),
        lambda: monkeypatch.setattr(keys, "version", lambda name: "9"),
    ):
        change()
        keys.this_tool.cache_clear()
        found.append(keys.this_tool())
    keys.this_tool.cache_clear()
    assert len(set(found)) == len(found)
