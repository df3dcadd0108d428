"""What a report says of a pair whatever proved it: on what a proof leans, and what is left where time is up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hlo_verify.diagnostics import Diagnostic, Solver, Unsupported
from hlo_verify.ops.counting import ENDLESS, MAY_NOT_END
from hlo_verify.program.ir import Module
from hlo_verify.report import LawUse, Report, Result, Verdict
from hlo_verify.session import Session
from hlo_verify.terms.laws import SAID
from hlo_verify.terms.used import counts

ASSUMPTIONS = (
    "real arithmetic: no rounding, one zero, conversions to floating-point types are the identity",
    "arguments are numbers, and the logical module divides by no zero (and the like) on the way to a result",
    "reducers are applied in any order",
)

LOOPS_END = "loops end on which no result hangs, also where nothing shows how often they go round"


def nothing(logical: Module, devices: int) -> Report:
    """The report of a pair of which nothing is known yet."""
    unknown = [Result(n, name, Verdict.UNKNOWN) for n, name in enumerate(logical.result_names)]
    return Report(logical.name, tuple(unknown), ASSUMPTIONS, devices, 0.0)


def out_of_time(report: Report, session: Session) -> Report:
    """The report where the time is up: what is proved or refuted stays so, of the rest it says what was being done."""
    unproved = (result.verdict is Verdict.UNKNOWN for result in report.results)
    results = (late(each, session) if is_late else each for each, is_late in zip(report.results, unproved, strict=True))
    return replace(report, results=tuple(results))


def late(result: Result, session: Session) -> Result:
    """An unproved result of which more might be known, had there been more time."""
    if result.code is Solver.TIME_UP:
        return result
    reason = f"the time was up while {session.phase}"
    said = f"{result.reason}; {reason}" if result.reason else reason
    return replace(result, reason=said, code=Solver.TIME_UP, spent=session.spent(session.phase))


def laws() -> tuple[LawUse, ...]:
    return tuple(LawUse(name, SAID[name], times) for name, times in counts().items())


def assumptions(unsupported: Iterable[Diagnostic]) -> tuple[str, ...]:
    """What a proof leans on: that loops end, where one is left of which nothing else is known."""
    leaves_loops = any(said.message in MAY_NOT_END for said in unsupported)
    return (*ASSUMPTIONS, LOOPS_END) if leaves_loops else ASSUMPTIONS


def may_hang(unsupported: Iterable[Diagnostic]) -> Diagnostic | None:
    """Where devices may wait for others that never arrive, or a loop never ends. A program that hangs gives none of its
    results."""
    hangs = (said for said in unsupported if said.code is Unsupported.BRANCH or said.message == ENDLESS)
    return next(hangs, None)
