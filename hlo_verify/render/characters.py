"""Characters that a reader cannot see, or that deceive one, written out."""

from __future__ import annotations

import re
import unicodedata

_OTHER = re.compile(r"[^\n\t -~]")
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def visible(text: str) -> str:
    r"""The text with escapes in the place of control characters, of those that turn the direction of writing or have no
    width, and of halves of characters (names of files need not be text). What is left may stand in XML 1.0.

    >>> visible("red \x1b[31m \u202egpj.exe")
    'red \\x1b[31m \\u202egpj.exe'
    """
    return _OTHER.sub(_written_out, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The visible text with a single space where there was any."""
    return " ".join(visible(text).split())


def _written_out(found: re.Match[str]) -> str:
    character = found[0]
    is_none = ord(character) & 0xFFFE == 0xFFFE  # by Unicode, section 23.7
    if is_none or unicodedata.category(character) in _HIDDEN:
        return character.encode("unicode_escape").decode()
    return character
