"""Verdicts on disk: a table in a file of SQLite that many processes read and write at a time.

What cannot be read is no verdict, and what goes wrong with the file is no error of the verification: then nothing is
found, and nothing is kept.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hlo_verify.cache.codec import decoded, encoded
from hlo_verify.cache.keys import key
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.diagnostics.inputs import Input
from hlo_verify.report import ChainReport, Report

FOLDER = "HLO_VERIFY_CACHE_DIR"
"""The variable of the environment that names another folder; where it is empty, nothing is kept."""

LARGEST = 64 * 2**20
"""Bytes of the reports that are kept, compressed: some ten thousand, of which a large one takes 20 kB. Of more, those
go that nobody has asked for the longest."""

AFTER_TRIMMING = LARGEST * 3 // 4
"""Bytes that are left of them then, so that it is not done each time."""

PATIENCE = 2.0
"""Seconds to wait for other processes that write: each takes milliseconds."""

_NAME = "verdicts-1.sqlite"
"""With the number of the table's form: another form is another file."""

_TABLE = (
    "CREATE TABLE IF NOT EXISTS verdicts "
    "(key BLOB PRIMARY KEY, report BLOB NOT NULL, seal BLOB NOT NULL, used REAL NOT NULL)"
)


@dataclass(frozen=True, slots=True)
class Info:
    """What a store holds: how many verdicts, of how many bytes, and how many bytes its files take."""

    path: Path
    verdicts: int
    size: int
    on_disk: int


@dataclass(frozen=True, slots=True)
class Store:
    """Reports by key, in a folder that is made when the first one is kept."""

    folder: Path
    largest: int = LARGEST
    after_trimming: int = AFTER_TRIMMING

    @property
    def path(self) -> Path:
        return self.folder / _NAME

    def find(self, wanted: bytes) -> Report | ChainReport | None:
        """The report that was kept under a key; None where there is none that is whole."""
        if not self.path.exists():
            return None
        with suppress(sqlite3.Error, OSError), self._open() as table:
            row = table.execute("SELECT report, seal FROM verdicts WHERE key = ?", (wanted,)).fetchone()
            if row is None:
                return None
            found = _unsealed(wanted, *row)
            if found is None:
                table.execute("DELETE FROM verdicts WHERE key = ?", (wanted,))
            else:
                table.execute("UPDATE verdicts SET used = ? WHERE key = ?", (time.time(), wanted))
            return found
        return None

    def keep(self, wanted: bytes, report: Report | ChainReport) -> None:
        """Keep a report, and drop those that were not asked for the longest where there are too many."""
        packed = zlib.compress(encoded(report).encode())
        with suppress(sqlite3.Error, OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._open() as table:
                row = wanted, packed, key(wanted, packed), time.time()
                table.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?)", row)
                self._trim(table)

    def info(self) -> Info:
        """What it holds. Raises `sqlite3.Error` or `OSError` for a file that cannot be read."""
        if not self.path.exists():
            return Info(self.path, 0, 0, 0)
        with self._open() as table:
            count, size = table.execute("SELECT count(*), coalesce(sum(length(report)), 0) FROM verdicts").fetchone()
        return Info(self.path, count, size, sum(path.stat().st_size for path in self._files()))

    def clear(self) -> int:
        """Forget everything; how many verdicts that were, as far as they can be counted. Raises `OSError`."""
        count = 0
        with suppress(sqlite3.Error):
            count = self.info().verdicts
        for path in self._files():
            path.unlink(missing_ok=True)
        return count

    def _files(self) -> list[Path]:
        """The file, and what SQLite has beside it."""
        return [path for end in ("", "-wal", "-shm") if (path := Path(f"{self.path}{end}")).exists()]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_TABLE)
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()

    def _trim(self, table: sqlite3.Connection) -> None:
        (size,) = table.execute("SELECT sum(length(report)) FROM verdicts").fetchone()
        if size <= self.largest:
            return
        table.execute(
            "DELETE FROM verdicts WHERE key IN (SELECT key FROM (SELECT key, sum(length(report)) OVER "
            "(ORDER BY used DESC, key ROWS UNBOUNDED PRECEDING) AS so_far FROM verdicts) WHERE so_far > ?)",
            (self.after_trimming,),
        )


def _unsealed(wanted: bytes, packed: bytes, seal: bytes) -> Report | ChainReport | None:
    """The report of a row, if it is the one that was written under this key."""
    if not isinstance(packed, bytes) or key(wanted, packed) != seal:
        return None
    try:
        return decoded(zlib.decompress(packed).decode())
    except (ValueError, zlib.error):
        return None


def named(folder: Path) -> Store:
    """The store in a folder that a user names, which is made if it is not there. Raises `InputError` where nothing can
    be kept in it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"verdicts cannot be kept in {folder}: {error.strerror}", Input.UNWRITABLE) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"verdicts cannot be kept in {folder}: it may not be written to", Input.UNWRITABLE)
    return Store(folder)


def usual() -> Store | None:
    """The store of this user; None where the environment says that there is to be none, or no home is known."""
    said = os.environ.get(FOLDER)
    if said is not None:
        return Store(Path(said)) if said else None
    try:
        return Store(_caches() / "hlo-verify")
    except RuntimeError:  # no home
        return None


def _caches() -> Path:
    """The folder for what programs keep and can do without."""
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"])
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    named = os.environ.get("XDG_CACHE_HOME", "")
    return Path(named) if os.path.isabs(named) else Path.home() / ".cache"
