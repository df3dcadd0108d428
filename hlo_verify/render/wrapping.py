"""Lines for a terminal of some width."""

from __future__ import annotations

import re

NARROWEST = 30
"""Columns; on a narrower terminal lines are left to it."""

_COLOR = re.compile(r"\x1b\[[\d;]*m")
_LABEL = re.compile(r"\s*(?:\S+(?: \S+)?(?:\s|\x1b\[[\d;]*m)*\s{2,})?")


def wrapped(text: str, width: int) -> str:
    """The text with lines of at most `width` columns where they have spaces to break at; what goes on stands below what
    stood behind the line's label. Colours take no room. A width of 0 leaves the text as it is.

    >>> print(wrapped("  source     train.py: the line that is at fault", 32))
      source     train.py: the line
                 that is at fault
    """
    if width < NARROWEST:
        return text
    return "\n".join(_line(line, width) for line in text.split("\n"))


def _line(line: str, width: int) -> str:
    if _columns(line) <= width:
        return line
    label = _LABEL.match(line)
    hang = min(_columns(label[0]) if label is not None else 0, width // 2)
    found: list[str] = []
    room = width
    for gap, word in re.findall(r"(\s*)(\S+)", line):
        taken = len(gap) + _columns(word)
        if taken > room and found and _columns(found[-1]) > hang:
            found.append(" " * hang + word)
            room = width - hang - _columns(word)
        else:
            found[-1:] = [(found[-1] if found else "") + gap + word]
            room -= taken
    return "\n".join(found)


def _columns(text: str) -> int:
    return len(_COLOR.sub("", text))
