"""One interface to everything that decides: a question, limits, and an answer that is one of three.

Formulas of a small instance have two backends: `normal_form.NormalForm`, which multiplies them out exactly, and
`z3_formulas.Z3`. Conditions on index expressions have one, `integers.Integers`, at full size. Where the limits are kept
depends on what a question may do: what may hang or die is posed in a worker process (`workers`), which is ended at its
deadline; conditions, thousands of which are asked in the verdict's own process, are linear, and Z3 counts its steps.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol, TypeVar


class Limit(enum.Enum):
    """What ran out."""

    TIME = "time"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one question may take; 0 is no limit."""

    milliseconds: int
    steps: int = 0
    """As Z3 counts them: the same on every machine, however busy it is."""
    megabytes: int = 0

    def __str__(self) -> str:
        parts = [f"{self.milliseconds} ms"] * bool(self.milliseconds)
        parts += [f"{self.steps} steps"] * bool(self.steps) + [f"{self.megabytes} MB"] * bool(self.megabytes)
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Equal:
    """Both sides of every pair are equal, for all values."""


@dataclass(frozen=True, slots=True)
class Different:
    """A pair whose sides differ (its number), and values for which they do."""

    pair: int
    model: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Neither was found: why, with what it was given. `limit` is what ran out, if something did."""

    reason: str
    limit: Limit | None = None


Answer = Equal | Different | Unknown

Question = TypeVar("Question", contravariant=True)


class Backend(Protocol[Question]):
    """Decides whether the sides of pairs are equal for all values of what is free in them.

    `Equal` and `Different` are exact, in real and integer arithmetic. What is not found within the limits is `Unknown`;
    a limit is no error, and never an answer.
    """

    def decide(self, question: Question, limits: Limits) -> Answer: ...
