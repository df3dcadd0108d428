"""How much comparing may still take, and where Z3 remembers. Z3 itself is imported where something is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hlo_verify.equality.backend import Limits, Unknown
from hlo_verify.memory import once_a_session
from hlo_verify.session import Session
from hlo_verify.terms.term import Apply, Atom, Poly

if TYPE_CHECKING:
    import z3


@once_a_session
def z3_context() -> z3.Context:
    """Z3's own memory, which it may use in one thread at a time; how it answers depends on what is in there.

    It stands here, where every proof begins, as a session knows at its start what it keeps.
    """
    import z3

    return z3.Context()


@dataclass(slots=True)
class Effort:
    """How many more steps (questions to Z3, terms looked at) there may be; past that, nothing more is proved."""

    left: int
    refused: dict[Hashable, int] = field(default_factory=dict)
    """Definitions that were not found equal, and to which depth they were looked at."""
    anew: dict[Atom, Poly] = field(default_factory=dict)
    """Reads of definitions and functions, and what they were made anew as."""
    unanswered: list[Unknown] = field(default_factory=list)
    """Questions that had no answer within the limits."""
    session: Session = field(default_factory=Session)
    """What each question to Z3 may take."""
    is_apart: bool = False
    """Whether conditions are taken apart (`thresholds`)."""
    could_be: list[Poly] = field(default_factory=list)
    """A term of which they were not, and could be, if there was one; of all efforts that are parts of one."""
    always: Callable[[Apply], bool] | None = None
    """Which functions the expected term computes whatever holds, so that it is no number where they are none."""

    @property
    def limits(self) -> Limits:
        """What the next question to Z3 may take. Its steps are what stops a hard one, and the same on every machine;
        time is there where the user set an end to it."""
        bounds = self.session.limits
        return Limits(self.session.milliseconds(), bounds.solver_steps, bounds.solver_megabytes)

    def within(self, most: int, question: Callable[[Effort], bool], limit: str = "comparison_steps") -> bool:
        """The answer to a question that may take so much of it, and remembers together with the others; `limit` is what
        `most` is called."""
        given = min(most, self.left)
        part = replace(self, left=given)
        answer = question(part)
        self.left -= given - part.left
        if part.left <= 0 and not answer:
            self.session.reached("total_steps" if given < most else limit)
        return answer
