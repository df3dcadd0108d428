"""One verification: what it may take, and what it took so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from hlo_verify.limits import Limits
from hlo_verify.report import Report, Spent, Verdict


class TimeUpError(BaseException):
    """The time that the user gave is over. It is no error of what runs then, so that no handler of errors stops it."""


@dataclass(slots=True)
class Session:
    """The limits of a verification, and which of them it ran into."""

    limits: Limits = field(default_factory=Limits)
    deadline: float | None = None
    """When it is to end, as `time.monotonic` counts; None where it may take as long as it wants."""
    phase: str = "reading the modules"
    """What is being done, to say so where time is up: `equal layers were derived`."""
    candidates: int = 0
    """How many values of devices were compared with logical ones, case by case."""
    inputs: int = 0
    """For how many inputs both modules were evaluated."""
    not_evaluated: dict[str, None] = field(default_factory=dict)
    """Operations that could not be evaluated, with location and why."""
    _reached: dict[str, None] = field(default_factory=dict)

    @classmethod
    def begin(cls, limits: Limits | None = None, seconds: float | None = None) -> Session:
        """One that starts now and may take so many seconds."""
        return cls(limits or Limits(), None if seconds is None else time.monotonic() + seconds)

    def check(self) -> None:
        """Raise `TimeUpError` where the time is over. Called between operations, and between questions."""
        if self.is_over:
            raise TimeUpError

    def milliseconds(self) -> int:
        """How long a question to Z3 may take at the most; 0 where nobody said."""
        return 0 if self.deadline is None else max(1, int((self.deadline - time.monotonic()) * 1000) + 100)

    def reached(self, limit: str) -> None:
        """Note that a limit was run into: the name of a field of `Limits`."""
        self._reached[limit] = None

    @property
    def is_over(self) -> bool:
        """Whether the time that there was is over."""
        return self.deadline is not None and time.monotonic() > self.deadline

    def account(self, report: Report) -> Report:
        """The report, its unproved results with what was spent on them."""
        results = (
            replace(each, spent=each.spent or self.spent()) if each.verdict is Verdict.UNKNOWN else each
            for each in report.results
        )
        return replace(report, results=tuple(results))

    def spent(self, phase: str = "") -> Spent:
        """What was done so far, for results that are not proved; `phase` where it ended early."""
        return Spent(tuple(self._reached), self.candidates, self.inputs, tuple(self.not_evaluated), phase)
