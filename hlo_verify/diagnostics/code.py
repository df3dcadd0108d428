"""What a code is, and a diagnostic: one thing that a person is told."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from inspect import cleandoc
from typing import Self


class Code(enum.StrEnum):
    """A stable code, `HV` and three digits; each family of codes is a subclass.

    A member is written with its docstring, which is what `hlo-verify --explain` prints and docs/codes.md holds: the
    first line is its summary. A code that was released keeps its number and its meaning.
    """

    def __new__(cls, number: str, explanation: str) -> Self:
        member = str.__new__(cls, number)
        member._value_ = number
        member.__doc__ = cleandoc(explanation)
        return member

    @property
    def summary(self) -> str:
        """What the code means in one line."""
        return str(self.__doc__).split("\n", 1)[0]

    @property
    def explanation(self) -> str:
        """Everything after the summary, as Markdown that reads well as it stands."""
        return str(self.__doc__).split("\n", 1)[1].strip()


class Severity(enum.StrEnum):
    """ERROR: something is wrong. WARNING: something is not known."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that a person is told, for renderers of any format.

    `operation` is an operation's name or its StableHLO line, `location` the user's source line; either may be empty.
    `notes` are labelled texts, in the order to show them.
    """

    code: Code
    severity: Severity
    message: str
    location: str = ""
    operation: str = ""
    notes: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Where, and what, in one line without the notes: `sort at train.py:60: along a dimension that is split`."""
        where = " at ".join(part for part in (self.operation, self.location) if part)
        return f"{where}: {self.message}" if where else self.message
