"""A repair as an edit of the user's source, where it is one: a name on a line that is there once.

Most repairs are edits of a module, which say nothing certain of the source. That a sum should be a mean is an edit of
one word: `jax.lax.psum` on that line is to be `jax.lax.pmean`, or the other way round.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_EXCHANGED = re.compile(r"the \w+ \((\w+)\) .*in place of the \w+ \((\w+)\) at (.+):(\d+)$")


LARGEST = 2_000_000
"""Bytes of a source file: what is longer was written by no person."""


@dataclass(frozen=True, slots=True)
class SourceEdit:
    """On a line of a file, the columns from `start` up to `end` (counted from 1) are to hold `text`."""

    file: str
    line: int
    start: int
    end: int
    text: str


def source_edit(suggestion: str) -> SourceEdit | None:
    """The edit that `Finding.suggestion` is; None where it is none, or the file is not at hand as it was."""
    found = _EXCHANGED.fullmatch(suggestion)
    if found is None:
        return None
    better, worse, file, line = found.groups()
    try:
        lines = source_lines(Path(file))
        at = int(line)
    except (OSError, ValueError):
        return None
    text = lines[at - 1] if 0 < at <= len(lines) else ""
    code, *_ = text.split("#")
    places = list(re.finditer(rf"\b{re.escape(worse)}\b", code))
    if len(places) != 1 or re.search(rf"\b{re.escape(better)}\b", code):
        return None
    return SourceEdit(file, at, places[0].start() + 1, places[0].end() + 1, better)


def source_lines(file: Path) -> list[str]:
    """The lines of a source file as compilers count them: a form feed ends none. Raises `OSError` or `ValueError` for
    what is no text that a person wrote; a module may name any file, also one that never ends."""
    if not file.is_file() or file.stat().st_size > LARGEST:
        raise ValueError(f"{file} is no source file")
    return file.read_text(encoding="utf-8").split("\n")
