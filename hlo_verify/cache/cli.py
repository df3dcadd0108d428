"""`hlo-verify cache info` and `hlo-verify cache clear`."""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from hlo_verify.cache.store import FOLDER, LARGEST, Store, usual
from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError


def main(argv: Sequence[str]) -> int:
    """Say what is kept, or forget it. Raises `InputError` for a file that cannot be read or removed."""
    parser = argparse.ArgumentParser(
        prog="hlo-verify cache",
        description="The verdicts that @hlo_verify.jit, and hlo-verify --cache, keep by the content of what was asked. "
        f"{FOLDER} names another folder for them; where it is empty, none are kept.",
    )
    parser.add_argument("command", choices=("info", "clear"), help="say what is kept, or forget all of it")
    parser.add_argument("--cache", metavar="DIR", help="of another folder than the user's")
    given = parser.parse_args(argv)
    if given.cache == "":
        parser.error("argument --cache: the path is empty")
    command = given.command
    store = usual() if given.cache is None else Store(Path(given.cache))
    if store is None:
        print(f"no verdicts are kept: {FOLDER} is empty, or there is no home")
        return 0
    try:
        print(_cleared(store) if command == "clear" else _told(store))
    except (OSError, sqlite3.Error) as error:
        raise InputError(f"{store.path}: {error}; remove the file", Input.UNREADABLE) from error
    return 0


def _told(store: Store) -> str:
    info = store.info()
    return (
        f"{info.path}\n{_verdicts(info.verdicts)}, {info.size / 1e6:.1f} MB of at most {LARGEST / 1e6:.0f} MB; "
        f"{info.on_disk / 1e6:.1f} MB on disk"
    )


def _cleared(store: Store) -> str:
    return f"forgot {_verdicts(store.clear())} of {store.path}"


def _verdicts(count: int) -> str:
    return "1 verdict" if count == 1 else f"{count} verdicts"
