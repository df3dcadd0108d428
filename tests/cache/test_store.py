"""Verdicts on disk: what was kept is found, by nothing but its key, and nothing else is ever taken for a verdict."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from hlo_verify.cache import cli
from hlo_verify.cache.codec import encoded
from hlo_verify.cache.keys import key
from hlo_verify.cache.store import FOLDER, Store, named, usual
from hlo_verify.cli import main
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.report import Report, Result, Verdict

EMPTY = "module @m { func.func public @main() { return } }"


def report(name: str = "step", size: int = 0) -> Report:
    """One whose text does not compress."""
    noise = "".join(key(name, str(n)).hex() for n in range(size // 64))
    return Report(name, (Result(0, "result", Verdict.PROVED, noise),), (), 8, 0.5)


def test_what_was_kept_is_found_by_its_key_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "new")
    assert store.find(b"a") is None and not store.folder.exists()
    store.keep(b"a", report())
    assert store.find(b"a") == report() and store.find(b"b") is None
    store.keep(b"a", report("other"))
    assert store.find(b"a") == report("other") and store.info().verdicts == 1


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE verdicts SET report = substr(report, 1, length(report) - 1)",
        "UPDATE verdicts SET report = (SELECT report FROM verdicts WHERE key = x'62')",
        "UPDATE verdicts SET report = (SELECT report FROM verdicts WHERE key = x'62'), "
        "seal = (SELECT seal FROM verdicts WHERE key = x'62')",
        "UPDATE verdicts SET report = 'text'",
        "UPDATE verdicts SET report = zeroblob(1000000)",
    ],
)
def test_a_damaged_verdict_is_none(tmp_path: Path, damage: str) -> None:
    store = Store(tmp_path)
    store.keep(b"a", report("a"))
    store.keep(b"b", report("b"))
    with sqlite3.connect(store.path) as table:
        table.execute(f"{damage} WHERE key = x'61'")
    table.close()
    assert store.find(b"a") is None and store.find(b"b") == report("b")
    assert store.info().verdicts == 1, "what is no verdict is not kept"


@pytest.mark.parametrize(
    "written",
    ["", "[]", "{}", '{"": "Result"}', '{"": "Path", "name": "x"}', encoded(report()).replace('"Report"', '"Point"')],
)
def test_what_is_sealed_but_no_report_is_none(tmp_path: Path, written: str) -> None:
    store = Store(tmp_path)
    store.keep(b"a", report())
    packed = zlib.compress(written.encode())
    with sqlite3.connect(store.path) as table:
        table.execute("UPDATE verdicts SET report = ?, seal = ?", (packed, key(b"a", packed)))
    table.close()
    assert store.find(b"a") is None


def test_a_file_that_is_no_table_keeps_and_finds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path)
    store.path.write_bytes(b"no table of SQLite, though as long as one" * 100)
    store.keep(b"a", report())
    assert store.find(b"a") is None
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert main(["cache", "info"]) == 2 and "remove the file" in capsys.readouterr().err
    assert main(["cache", "clear"]) == 0
    store.keep(b"a", report())
    assert store.find(b"a") == report()


def test_those_go_first_that_nobody_asked_for(tmp_path: Path) -> None:
    store = Store(tmp_path, largest=20_000, after_trimming=16_000)
    for name in ("a", "b", "c"):
        store.keep(name.encode(), report(name, 8_000))  # some 5,000 bytes each
    assert store.find(b"a") is not None
    for name in ("d", "e"):
        store.keep(name.encode(), report(name, 8_000))
    assert store.info().size <= 16_000
    left = {name for name in "abcde" if store.find(name.encode()) is not None}
    assert left == {"a", "d", "e"}, "b and c were not asked for since"


WRITES = """
import sys
from pathlib import Path
from hlo_verify.cache.store import Store
from hlo_verify.report import Report, Result, Verdict
store = Store(Path(sys.argv[1]))
for n in range(40):
    name = f"{sys.argv[2]} {n}"
    store.keep(name.encode(), Report(name, (Result(0, "result", Verdict.PROVED),), (), 8, 0.5))
    assert store.find(name.encode()).name == name
"""


def test_many_processes_write_at_a_time(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITES, tmp_path]
    running = [subprocess.Popen([*command, str(n)]) for n in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    assert Store(tmp_path).info().verdicts == 160


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv(FOLDER, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert usual() == Store(tmp_path / "hlo-verify")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert usual() == Store(tmp_path / ".cache" / "hlo-verify")
    monkeypatch.setenv(FOLDER, str(tmp_path / "own"))
    assert usual() == Store(tmp_path / "own")
    monkeypatch.setenv(FOLDER, "")
    assert usual() is None


def test_a_folder_that_nothing_can_be_kept_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match="verdicts cannot be kept in"):
            named(folder)
    module = tmp_path / "module.mlir"
    module.write_text(EMPTY)
    assert main([str(module), "--cache", str(tmp_path / "file")]) == 2
    assert "verdicts cannot be kept in" in capsys.readouterr().err
    assert named(tmp_path / "new" / "below").folder.is_dir()


def test_what_the_command_line_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert main(["cache", "info"]) == 0
    assert "0 verdicts" in capsys.readouterr().out and not any(tmp_path.iterdir())
    Store(tmp_path).keep(b"a", report())
    assert main(["cache", "info"]) == 0
    assert "1 verdict, 0.0 MB of at most 67 MB" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert "forgot 1 verdict of" in capsys.readouterr().out
    assert not any(tmp_path.iterdir())
    monkeypatch.setenv(FOLDER, "")
    assert main(["cache", "info"]) == 0
    assert "no verdicts are kept" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["forget"])
