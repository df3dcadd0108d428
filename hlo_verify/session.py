"""One verification: what it may take, what it took so far, and the terms that it makes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from hlo_verify.collector import seldom_collecting
from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.limits import Limits, in_force
from hlo_verify.looking import looking
from hlo_verify.memory import Memory
from hlo_verify.meter import Meter
from hlo_verify.registered_calls import Said, as_said
from hlo_verify.report import Report, Spent, Verdict


class TimeUpError(BaseException):
    """The time that the user gave is over. It is no error of what runs then, so that no handler of errors stops it."""


class EnoughError(Exception):
    """Something takes more than there was for it (`Session.at_most`)."""


def check_seconds(seconds: object) -> None:
    """Raise `InputError` for a time limit that is no number of seconds."""
    if not (seconds is None or (isinstance(seconds, int | float) and seconds >= 0)):
        raise InputError(f"time_limit is a number of seconds, or None for no limit, not {seconds!r}", Input.USAGE)


@dataclass(slots=True)
class Session:
    """Everything that belongs to one verification: its limits, which of them it ran into, and its memory.

    Several may be on in one process, each in a thread of its own: what one finds does not depend on the others, nor on
    what the process did before.
    """

    limits: Limits = field(default_factory=Limits)
    deadline: float | None = None
    """When it is to end, as `time.monotonic` counts; None where it may take as long as it wants."""
    phase: str = "reading the modules"
    """What is being done, to say so where time is up: `equal layers were derived`."""
    candidates: int = 0
    """How many values of devices were compared with logical ones, case by case."""
    inputs: int = 0
    """For how many inputs both modules were evaluated."""
    values_seen: dict[int, bool] = field(default_factory=dict)
    """Of results that inputs were drawn for: whether both modules' values were had for some, or were too large."""
    seems_wrong: bool = False
    """Whether some result looked different by more than roundings, and was not looked at more closely."""
    not_evaluated: dict[str, None] = field(default_factory=dict)
    """Operations that could not be evaluated, with location and why."""
    layered_terms: float = math.inf
    """How many terms it took to derive each of a module's equal layers once, where there are any."""
    lacks_meanings: bool = False
    """Whether some of these have no meaning here, at any size."""
    custom_calls: dict[str, Said] = field(default_factory=dict)
    """What was said of custom calls on this session, by target; see `custom_calls.register_custom_call`."""
    traced: dict[Hashable, Any] = field(default_factory=dict)
    """Functions that were traced in the place of custom calls."""
    meter: Meter = field(default_factory=Meter)
    """What is left of all that may be done after a walk that proves nothing."""
    memory: Memory = field(default_factory=Memory)
    """Terms, and what was worked out about them."""
    _reached: dict[str, None] = field(default_factory=dict)
    _is_enough: Callable[[], bool] | None = None

    @classmethod
    def begin(cls, limits: Limits | None = None, seconds: float | None = None, given: Session | None = None) -> Session:
        """One that starts now and may take so many seconds, with what was said of custom calls on a `given` one.

        Raises `InputError` for a time that is no number of seconds.
        """
        check_seconds(seconds)
        deadline = None if seconds is None else time.monotonic() + seconds
        return cls(limits or Limits(), deadline, custom_calls={} if given is None else dict(given.custom_calls))

    def fresh(self) -> Session:
        """One that knows and may take the same, and has made no terms yet."""
        return Session(self.limits, self.deadline, custom_calls=self.custom_calls, traced=self.traced)

    @contextmanager
    def on(self) -> Iterator[Session]:
        """Terms that this thread makes meanwhile are the session's; afterwards there are none."""
        with seldom_collecting(), as_said(self.custom_calls), self.memory.on(), in_force(self.limits, self._reached):
            yield self

    def check(self) -> None:
        """Raise `TimeUpError` where the time is over. Called between operations, between questions, and where it is
        `interruptible`."""
        if self.is_over:
            raise TimeUpError
        if self._is_enough is not None and self._is_enough():
            raise EnoughError

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """What is done meanwhile may end within an operation too, while its term is made. Nothing that it leaves behind
        may be used afterwards: terms are half made."""
        with looking(self.check):
            yield

    @contextmanager
    def at_most(self, count: float, done: Callable[[], int]) -> Iterator[None]:
        """What is done meanwhile ends with `EnoughError` between two operations where more than so many are `done`, as
        that counts: terms of this session, which are counted on where their memory starts anew (`Memory.start_anew`).
        Nothing that it left half done may be used afterwards. One inside of another ends where either does."""
        outer, earlier, last = self._is_enough, 0, 0

        def is_enough() -> bool:
            nonlocal earlier, last
            now = done()
            earlier, last = earlier + (last if now < last else 0), now
            return earlier + now > count or (outer is not None and outer())

        self._is_enough = is_enough
        try:
            yield
        finally:
            self._is_enough = outer

    def milliseconds(self) -> int:
        """How long a question to Z3 may take at the most; 0 where nobody said."""
        return 0 if self.deadline is None else max(1, int((self.deadline - time.monotonic()) * 1000) + 100)

    def reached(self, limit: str) -> None:
        """Note that a limit was run into: the name of a field of `Limits`."""
        self._reached[limit] = None

    def affords(self, work: float = 0.0) -> bool:
        """Whether something may be done after the proof failed that takes about so much work. It is noted if not."""
        if self.meter.left > work:
            return True
        self.reached("wrong_work")
        return False

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
