"""What several walks may take together."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hlo_verify.meter import TERM
from hlo_verify.session import Session


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """What walks may take of a session, until so much work is spent in all."""

    session: Session
    end: float = math.inf
    by_construction: bool | None = None
    """Whether readings are compared by construction alone: False where that was in vain; None where it comes first."""

    @classmethod
    def of(cls, session: Session, terms: float) -> Account:
        """For walks that make so many terms together."""
        return cls(session, session.meter.spent + TERM * terms)

    @property
    def terms(self) -> float:
        """How many terms walks may still make; noted where there are none."""
        left = max(0.0, self.end - self.session.meter.spent) / TERM
        if not left:
            self.session.reached("wrong_work")
        return left
