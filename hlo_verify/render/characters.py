"""Characters that a reader cannot see, or that deceive one, written out."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

Model = TypeVar("Model")

ALIKE = {
    "\u2026": "...",
    "\u22ef": "...",
    "\u00d7": "x",
    "\u2208": "in",
    "\u2264": "<=",
    "\u2265": ">=",
    "\u2260": "!=",
}
ALIKE |= {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-", "\u2212": "-"}
ALIKE |= {"\u2192": "->", "\u2193": "v", "\u2295": "(+)", "\u00b1": "+-", "\u00b7": "*", "\u22c5": "*"}
"""What stands for a character in an encoding that lacks it."""

_OTHER = re.compile(r"[^\n\t -~]")
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def visible(text: str) -> str:
    r"""The text with escapes in the place of control characters, of those that turn the direction of writing or have no
    width, and of halves of characters (names of files need not be text). What is left may stand in XML 1.0.

    >>> visible("red \x1b[31m \u202egpj.exe")
    'red \\x1b[31m \\u202egpj.exe'
    """
    if text.isascii() and text.isprintable():
        return text
    return _OTHER.sub(_written_out, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The visible text with a single space where there was any."""
    return " ".join(visible(text).split())


def shown(model: Model) -> Model:
    """A dataclass in which every text, however deep, is visible; the same object where it was."""
    changed = {field.name: _shown(getattr(model, field.name)) for field in fields(model)}  # type: ignore[arg-type]
    if all(getattr(model, name) is value for name, value in changed.items()):
        return model
    return replace(model, **changed)  # type: ignore[type-var]


def _shown(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Enum):
        written = visible(value)
        return value if written == value else written
    if isinstance(value, tuple):
        changed = [_shown(each) for each in value]
        return value if all(map(lambda a, b: a is b, changed, value)) else type(value)(changed)
    return shown(value) if is_dataclass(value) else value


def encodable(text: str, encoding: str) -> str:
    """The text with what the encoding lacks as what looks alike, or else as an escape.

    >>> encodable("8 \u00d7 \u03bb\u2026", "ascii")
    '8 x \\\\u03bb...'
    """
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(_encodable(character, encoding) for character in text)
    return text


def _encodable(character: str, encoding: str) -> str:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return ALIKE.get(character, character.encode("ascii", "backslashreplace").decode())
    return character


def _written_out(found: re.Match[str]) -> str:
    character = found[0]
    is_none = ord(character) & 0xFFFE == 0xFFFE  # by Unicode, section 23.7
    if is_none or unicodedata.category(character) in _HIDDEN:
        return character.encode("unicode_escape").decode()
    return character
