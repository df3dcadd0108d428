"""Mistakes of newcomers: each has a message of its own, which says what to do, and no traceback of hlo-verify's own.

`python -m tests.mistakes` writes the files anew.
"""

from __future__ import annotations

import re

import jax
import pytest

from tests.mistakes.telling import GOLDEN, PROGRAMS, WRITTEN_WITH, golden, message

LONGEST = 900
"""Characters of a message; a report, and what a command prints, may have more."""

QUOTES = re.compile(r"cannot be traced: (?s:.*)")
"""From here on JAX speaks, whose words differ from version to version."""


def _in_our_words(text: str) -> str:
    """Without what JAX says, and without operations as MLIR prints them."""
    return QUOTES.sub("", "\n".join(line for line in text.splitlines() if not line.startswith("  ")))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mistake_is_told_as_it_was(name: str) -> None:
    told, expected = message(name), golden(name).read_text()
    if jax.__version__ != WRITTEN_WITH:
        told, expected = (_in_our_words(text) for text in (told, expected))
    assert told == expected


def test_there_is_a_file_for_each_and_no_other() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == PROGRAMS.keys()
    assert len(PROGRAMS) >= 60


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_message_is_short_and_shows_nothing_inside(name: str) -> None:
    said = golden(name).read_text()
    assert "Traceback" not in said and "internal error" not in said
    if not re.search(r"^(REFUTED|PROVED|UNKNOWN)", said, re.MULTILINE):
        assert len(said) < LONGEST, said
        assert "hlo_verify/" not in said and "site-packages" not in said
