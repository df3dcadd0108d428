"""The one account of what is done for a pair after the walk that did not prove it.

Looking for inputs, confirming a difference, reading loops in other ways, comparing case by case, saying what is wrong
and trying repairs all ask here before they start, and say afterwards what they took. All is counted in elements
computed by floating point, of which a core does some 2.5e8 a second; it is the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

TERM = 12_000
"""The work of a term or index expression that is made: a core makes some 20,000 of them a second, and compares as many
steps of sums of products."""


@dataclass(slots=True)
class Meter:
    """How much there may be, and how much was done of it; no end to it before `begin`."""

    allowed: float = math.inf
    spent: float = 0.0
    kept: float = 0.0
    """What is kept for what comes later."""
    lent: float = 0.0
    """What there is beside; it is taken first."""

    def begin(self, allowed: float) -> None:
        """Start anew, with so much allowed."""
        self.allowed, self.spent, self.kept, self.lent = allowed, 0.0, 0.0, 0.0

    @property
    def left(self) -> float:
        """How much more there may be now; negative where something took more than it was thought to, which is no
        reason to have less of what is lent."""
        own = self.allowed - self.spent - self.kept
        return max(own, 0.0) + self.lent if self.lent else own

    def charge(self, work: float) -> None:
        """Something took that much."""
        taken = min(self.lent, work)
        self.lent -= taken
        self.spent += work - taken

    def charge_terms(self, count: int) -> None:
        """Something made so many terms and index expressions."""
        self.charge(TERM * max(0, count))

    @contextmanager
    def keeping(self, share: float) -> Iterator[None]:
        """What is done meanwhile leaves that share of what is left for what comes after it."""
        before, left = self.kept, self.left
        if 0 < left < math.inf:
            self.kept += share * left
        try:
            yield
        finally:
            self.kept = before

    @contextmanager
    def lending(self, work: float) -> Iterator[None]:
        """There is so much beside for what is done meanwhile."""
        self.lent = work
        try:
            yield
        finally:
            self.lent = 0.0

    @contextmanager
    def nothing_lent(self, is_so: bool = True) -> Iterator[None]:
        """What is done meanwhile has nothing of what is lent."""
        lent = self.lent
        self.lent = 0.0 if is_so else lent
        try:
            yield
        finally:
            self.lent = lent if is_so else self.lent
