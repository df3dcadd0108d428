"""Whether the module that a backend made of a function computes what its reference says: decided once, and kept."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hlo_verify import report as model
from hlo_verify.cache.keys import key, this_tool
from hlo_verify.cache.store import Store
from hlo_verify.diagnostics import Code
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jaxlib_hlo import proto_to_text
from hlo_verify.limits import Effort
from hlo_verify.registered_calls import registered
from hlo_verify.report import Result, Verdict
from hlo_verify.shown import Report, shown

if TYPE_CHECKING:
    from hlo_verify.program.approximations import Approximation
    from hlo_verify.program.ir import Module
    from hlo_verify.program.preconditions import Precondition
    from hlo_verify.sources.shardings_file import Shardings
    from hlo_verify.traced.executables import Made
    from hlo_verify.traced.functions import Function
    from hlo_verify.traced.interception import Executable
    from hlo_verify.traced.stages import Stage

RUNS = "the module that the backend made and runs"
PARTITIONED = "what the backend's partitioner made, compiled once more"
AGAIN = "; compiled once more, with the arguments that it does not use"
AS_LOWERED = "the function as it was lowered"
NOT_FOLLOWED = "; what the backend made of that, up to the module that runs, was not followed"


@dataclass(frozen=True, slots=True)
class Settings:
    """How a question is to be decided, and where verdicts are kept."""

    assume: tuple[Precondition, ...] = ()
    effort: Effort = "normal"
    time_limit: float | None = None
    store: Store | None = None
    declared: tuple[Approximation, ...] = ()
    """Which values of the function stand for which of the reference."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be computed, and what runs.

    `logical` is the reference's module, and `plain` the same without source lines; both are the function's own, as it
    was lowered, where there is no reference.
    """

    logical: str | Module
    plain: str
    made: Made
    has_reference: bool
    again: bool = False
    """Whether it was compiled once more, with the arguments that it does not use, since the reference uses others."""


def question(reference: Function | None, runs: Executable) -> Question:
    """What is asked of a function that was compiled for its arguments.

    Raises `InputError` where the reference cannot be traced for them, or takes or returns other arrays, and where
    nothing is returned.
    """
    from hlo_verify.traced import functions, stages
    from hlo_verify.traced.agreement import check_agreement, check_returns
    from hlo_verify.traced.arguments import shapes
    from hlo_verify.traced.executables import made

    if reference is None:
        check_returns(functions.Function(runs.compiled, "the function"), runs.traced)
        return Question(*_texts(runs.lowered), made(runs.lowered, runs.compiled), has_reference=False)
    first = functions.traced(reference, *shapes(runs.given, distributed=False))
    check_agreement((reference, first), (functions.Function(runs.compiled, "the function"), runs.traced))
    lowered, compiled, again = runs.lowered, runs.compiled, False
    try:
        first, _ = stages.with_equal_arguments(first, lowered)
    except InputError:  # the one uses arguments that the other does not
        lowered = stages.with_all_arguments(runs.traced).lower()
        compiled, again = lowered.compile(), True
        first, _ = stages.with_equal_arguments(first, lowered)
    return Question(*_texts(first), made(lowered, compiled), has_reference=True, again=again)


def _texts(stage: Stage) -> tuple[str, str]:
    """A module with its source lines and without."""
    lowered: Any = stage.lower() if hasattr(stage, "lower") else stage
    return lowered.as_text(debug_info=True), lowered.as_text()


def decide(asked: Question, settings: Settings) -> Report:
    """The verdict, from the store where it is there. What ran out of time or went wrong is not kept."""
    made, logical = asked.made, asked.logical
    assert isinstance(logical, str), "a question that has not been taken apart yet"
    leans = any(target in asked.plain or target in made.text for target in registered())
    store = None if leans else settings.store
    where = made.devices, made.backend, made.placements
    facts = repr((settings.effort, settings.assume, settings.declared, *where, asked.has_reference, asked.again))
    if settings.declared:  # names and lines are what goes by
        facts += logical + made.lowered.as_text(debug_info=True)
    as_it_is = key(this_tool(), facts, _signature(logical), asked.plain, made.text)
    found = None if store is None else store.find(as_it_is)
    if isinstance(found, model.Report):
        return shown(found)
    with_lines = key(as_it_is, logical, proto_to_text(made.proto))
    found = None if store is None else store.find(with_lines)
    if isinstance(found, model.Report):
        return shown(found)
    decision = _Decision(asked, settings)
    report = decision.report()
    if store is not None and not decision.is_late:
        # What is proved is so wherever its lines stand; what is not is told with its lines.
        store.keep(as_it_is if report.verdict is Verdict.PROVED else with_lines, report)
    return report


def _signature(logical: str) -> str:
    """What says how arguments are called, by which preconditions go: names stand among the source lines."""
    lines = [line for line in logical.splitlines() if "@main(" in line]
    return lines[0] if len(lines) == 1 and "loc(#" not in lines[0] else logical


def undecided(name: str, reason: str, code: Code) -> Report:
    """The report where there is nothing to decide: why, in the words of an error."""
    return shown(model.Report(name, (Result(0, "all results", Verdict.UNKNOWN, reason, code=code),), (), 1, 0.0))


@dataclass(slots=True)
class _Decision:
    """A question while it is being decided. `is_late` says whether the time was up meanwhile."""

    asked: Question
    settings: Settings
    is_late: bool = False
    began: float = field(default_factory=time.monotonic)

    def report(self) -> Report:
        """First by the module that runs. Where that is not proved, inputs are looked for that make it differ from the
        reference earlier on, where what compilers do is not in the way of saying why."""
        if self.settings.declared:
            return self._by_what_is_written()
        runs = self._asks(self.asked.made.proto, RUNS, refute=False)
        if runs.verdict is Verdict.PROVED:
            return runs
        earlier = self._earlier()
        if earlier is not None and earlier.verdict is not Verdict.PROVED:
            return earlier
        effort = self.settings.effort if earlier is None else "low"
        runs = self._asks(self.asked.made.proto, RUNS, effort=effort)
        if earlier is None or runs.verdict is Verdict.REFUTED:
            return runs
        return replace(earlier, compared=earlier.compared + NOT_FOLLOWED)

    def _by_what_is_written(self) -> Report:
        """Whether the function as it was lowered computes what the reference does, but for what is declared; and
        whether what runs computes what it says, without any approximation."""
        from hlo_verify.api import approximates
        from hlo_verify.asked import in_two_steps

        asked, settings = self.asked, self.settings
        lowered = asked.made.lowered.as_text(debug_info=True)
        given = {**self._options(), "devices": asked.made.devices}
        first, own = approximates(asked.logical, lowered, settings.declared, **given)
        if first.verdict is not Verdict.PROVED:
            return self._noted(first)
        then = replace(asked, logical=own, has_reference=False)
        rest = _Decision(then, replace(settings, assume=(), declared=()), self.is_late, self.began)
        second = rest.report()
        self.is_late |= rest.is_late
        compared = f"{first.compared}; and {second.compared}"
        both = replace(in_two_steps(first, second), compared=compared)
        return shown(both)

    def _options(self) -> dict[str, Any]:
        limit = self.settings.time_limit
        left = None if limit is None else max(limit - (time.monotonic() - self.began), _A_MOMENT)
        return {"assume": self.settings.assume, "time_limit": left, "effort": self.settings.effort}

    def _noted(self, report: Report) -> Report:
        self.is_late |= any(result.spent is not None and result.spent.phase for result in report.results)
        return report

    def _earlier(self) -> Report | None:
        """The verdict about what the partitioner made; where there was nothing to partition, about the function as it
        was lowered, if that is another one."""
        from hlo_verify.sources.dump_pairs import find_pairs
        from hlo_verify.traced.executables import dump

        made = self.asked.made
        if made.devices == 1:
            lowered = made.lowered.as_text(debug_info=True)
            return self._asks(lowered, AS_LOWERED) if self.asked.has_reference else None
        with TemporaryDirectory(prefix="hlo-verify-") as folder:
            try:
                pairs = find_pairs(Path(folder))[0] if dump(made.lowered, folder) else []
            except InputError:  # this backend has other passes
                pairs = []
            if len(pairs) != 1:
                return None
            return self._asks(pairs[0].partitioned, PARTITIONED, annotated=pairs[0].annotated)

    def _asks(self, partitioned: Any, compared: str, **options: Any) -> Report:
        from hlo_verify.api import verify

        report = verify(
            self.asked.logical,
            partitioned,
            devices=self.asked.made.devices,
            shardings=self._shardings(),
            **{**self._options(), **options},
        )
        self._noted(report)
        whole = "the reference" if self.asked.has_reference else "the function as it was lowered"
        return replace(report, compared=f"{whole} with {compared}{AGAIN if self.asked.again else ''}")

    def _shardings(self) -> Shardings | None:
        """Where JAX says that arguments and results lie."""
        from hlo_verify.sources.shardings_file import Shardings

        if self.asked.made.placements is None:
            return None
        arguments, results = ({str(n): text for n, text in enumerate(texts)} for texts in self.asked.made.placements)
        return Shardings(Path("what XLA compiled"), None, arguments, results)


_A_MOMENT = 0.001
"""Seconds that are left to what begins when the time is up: it says so, and what it was doing."""
