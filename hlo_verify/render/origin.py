"""How a report came about, for who wants to see the same: the command, the versions, the modules."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hlo_verify.version import __version__

SMALL = 12_000
"""Bytes of a module that is shown whole."""

_PACKAGES = ("jax", "jaxlib", "numpy")
_ABOUT_PRINTING = ("--format", "--output", "-o", "--report", "--issue", "--color", "--junit-unknown", "--svg")
_WITH_VALUE = ("-o", *(f"{option}=" for option in _ABOUT_PRINTING))
_MAGIC = (b"\x1f\x8b", b"ML\xefR", b"PK")


@dataclass(frozen=True, slots=True)
class Origin:
    """What a report was made of. `command` prints the same verdict, `witness` is the file that inputs were saved to;
    `partitioned_here` says that the XLA of this jaxlib made the partitioned module; `modules` are names and texts."""

    command: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    witness: str = ""
    partitioned_here: bool = False
    modules: tuple[tuple[str, str], ...] = ()


def of_command(arguments: Sequence[str], paths: Sequence[Path], witness: Path | None) -> Origin:
    """Of a command line, whose `paths` are modules or folders."""
    is_one = len(paths) == 1 and paths[0].is_file()
    saved = "" if witness is None or not witness.is_file() else str(witness)
    command = shlex.join(("hlo-verify", *_kept(arguments)))
    return Origin(command, tuple(versions()), saved, is_one, tuple(_small(paths)))


def versions() -> Iterator[tuple[str, str]]:
    """Names and versions of what decided the verdict."""
    yield "hlo-verify", __version__
    for name in _PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue
    yield "Python", platform.python_version()
    yield "platform", platform.platform()


def _kept(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments without those that are about how a report is printed."""
    skipped = False
    for argument in arguments:
        if skipped:
            skipped = False
        elif argument in _ABOUT_PRINTING:
            skipped = True
        elif argument != "--open" and not argument.startswith(_WITH_VALUE):
            yield argument


def _small(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """The modules that are text and short."""
    for path in paths:
        try:
            if not path.is_file() or path.stat().st_size > SMALL:
                continue
            content = path.read_bytes()
            if not content.startswith(_MAGIC) and b"\0" not in content:
                yield path.name, content.decode()
        except (OSError, UnicodeDecodeError):
            continue
