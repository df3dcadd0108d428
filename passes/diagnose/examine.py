"""Examine a pair: prove what is equal, by construction and case by case, and say why the rest is not proved."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hlo_verify.diagnostics import Solver
from hlo_verify.index.interned import made
from hlo_verify.meter import TERM
from hlo_verify.passes.diagnose import why_unknown
from hlo_verify.passes.diagnose.finding import Findings, Lead
from hlo_verify.passes.guess.guessed import guessed
from hlo_verify.passes.prove.by_rolling import as_loops, is_long
from hlo_verify.passes.prove.decided_soon import decided_soon
from hlo_verify.passes.prove.each_device.apart import Apart
from hlo_verify.passes.prove.each_device.compare import is_by_hand, reads_table
from hlo_verify.passes.prove.effects import unless_effects_differ
from hlo_verify.passes.prove.in_layers import Layered
from hlo_verify.passes.prove.lost_layer import LostLayer
from hlo_verify.passes.prove.prove import (
    OtherReadings,
    Outcome,
    Progress,
    by_layers,
    by_walking,
    open_obligations,
    read_otherwise,
    report_of,
    walk_deciding,
)
from hlo_verify.passes.prove.reports import late, nothing, out_of_time
from hlo_verify.program.ir import Module, operations
from hlo_verify.program.pair import device_count, has_loops_by_hand, result_placements
from hlo_verify.program.sharding import Sharding
from hlo_verify.report import Finding, Report, Result, Verdict
from hlo_verify.session import EnoughError, Session, TimeUpError

LEAST = 0.25
"""The share of what a wrong module may take by its size that a last walk may take in any case: a right one does not
take more."""

SHARE_OF_CHEAP = 0.06
"""How much of what there may be goes into inputs that are cheap to evaluate before anything else: in small modules,
that is most of those that there are, and proving what is wrong takes far more."""

AS_IN_LAYERS = 10
"""A module of equal layers that is wrong may take so many times as many terms as deriving these once did."""

KEPT_FOR_PROOFS = 0.5
"""How much of what there may be a search leaves for other ways of proving what it finds no difference of; and how much
a walk may take over all of a module, of which a layer is known that is wrong."""


@dataclass(frozen=True, slots=True, eq=False)
class Examination:
    """A report, and what its findings are about."""

    report: Report
    leads: Mapping[Finding, Lead]
    differs: bool = False
    """Whether some result is known to differ, and one layer shows why: nothing else has to be tried."""
    is_wrong: bool = False
    """Whether inputs were found that make some result differ, or seem to."""
    lost: LostLayer | None = None
    """The layer that shows why, where it says more than all of the module."""


def prove(
    logical: Module, partitioned: Module, *, progress: Progress | None = None, session: Session | None = None
) -> Report:
    """Compare the modules result by result.

    The first walk recognises values by construction alone, which is fast and enough for most modules. Where
    a result is left over, a second walk also decides intermediate values case by case. `progress(done, of)`
    is told how many operations have been interpreted; `session` is what it may take. Raises `InputError` where the
    modules are no pair.
    """
    return examine(logical, partitioned, progress=progress, session=session).report


class Differing(Protocol):
    """Says which of some results that are not equal by construction differ, or evidently seem to."""

    def __call__(
        self, results: Sequence[int], /, *, in_earnest: bool = False, work: float = math.inf, is_large: bool = False
    ) -> Collection[int]:
        """After a glance, or `in_earnest`: after all that there is to try, or so much work. Of a large module, inputs
        for which nothing hangs on its largest tensors are all that a glance is at."""


def examine(
    logical: Module,
    partitioned: Module,
    *,
    progress: Progress | None = None,
    differing: Differing | None = None,
    otherwise: Callable[[], bool | None] | None = None,
    session: Session | None = None,
) -> Examination:
    """The same, for whoever looks into what was not proved.

    `differing` is asked before the second walk: no effort goes into results that differ or evidently seem to; and
    `otherwise`, whether it is proved what the modules are read as: None if it is not, and neither module is the other's
    as they stand. Where the session's time is up, what is known of the results by then is what the report says.
    """
    with (session or Session()).on() as session:
        found = _examine(logical, partitioned, progress, differing, otherwise, session)
        return replace(found, report=unless_effects_differ(found.report, logical, partitioned))


def _examine(
    logical: Module,
    partitioned: Module,
    progress: Progress | None,
    differing: Differing | None,
    otherwise: Callable[[], bool | None] | None,
    session: Session,
) -> Examination:
    started = time.perf_counter()
    report = nothing(logical, device_count(logical, partitioned))
    placed = result_placements(logical, partitioned, report.devices)
    lost: _Lost | None = None
    try:
        layered = by_layers(logical, partitioned, session)
        if layered is not None:
            report = layered.report
            if report.verdict is Verdict.PROVED:
                return Examination(report, {})
            lost = _in_lost_layer(logical, partitioned, layered, differing, session)
        is_first = is_long(partitioned, session) or is_long(logical, session)
        found = as_loops(logical, partitioned, session, decide=True) if is_first and lost is None else None
        if found is not None:
            return Examination(replace(found, seconds=time.perf_counter() - started), {})
        walked = _walked(logical, partitioned, progress, lost, session)
        if walked is None:
            assert lost is not None
            session.memory.start_anew()
            report = replace(lost.examination.report, seconds=time.perf_counter() - started)
            return replace(lost.examination, report=report, differs=lost.differs)
        report, first = walked
        left = [result.index for result in report.results if result.verdict is not Verdict.PROVED]
        if not left:
            return Examination(report, {})
        found = None if is_first else as_loops(logical, partitioned, session, decide=False)
        if found is not None:
            return Examination(replace(found, seconds=time.perf_counter() - started), {})
        terms = made()
        _begin(logical, partitioned, terms, session)
        session.phase = "inputs were looked for that make a result differ"
        with session.meter.keeping(KEPT_FOR_PROOFS):
            wrong = frozenset(differing(left) if differing is not None else ())
            if differing is not None and not wrong:
                is_dear = _is_dear(logical, partitioned, session)
                work = math.inf if is_dear else SHARE_OF_CHEAP * session.meter.allowed
                wrong = frozenset(differing(left, in_earnest=True, work=work))
    except TimeUpError:
        return Examination(replace(out_of_time(report, session), seconds=time.perf_counter() - started), {})
    has_loops = any(map(has_loops_by_hand, (logical, partitioned)))
    is_lent = not wrong and (differing is not None or has_loops)
    unseen = session.limits.unseen_difference * session.meter.allowed * _share_seen(left, session, has_loops)
    with session.meter.lending(unseen if is_lent else 0.0):
        is_read = otherwise is not None and not wrong and not session.seems_wrong
        reading = otherwise if is_read else None
        return _decide(logical, partitioned, (report, first, terms), placed, wrong, progress, reading, session, started)


@dataclass(frozen=True, slots=True, eq=False)
class _Lost:
    """What is said of a module where one of its layers shows what is wrong."""

    examination: Examination
    differs: bool
    """Whether some result is known to differ."""
    terms: float
    """How many terms a walk over all of it may make."""


def _walked(
    logical: Module, partitioned: Module, progress: Progress | None, lost: _Lost | None, session: Session
) -> tuple[Report, Outcome | None] | None:
    """What a walk over all of the module proves; None where one of its layers says more than that does."""
    if lost is None:
        return by_walking(logical, partitioned, progress, session)
    if lost.differs:
        return None
    try:
        with session.at_most(lost.terms, made):
            walked = by_walking(logical, partitioned, progress, session)
    except EnoughError:
        return None
    return walked if walked[0].verdict is Verdict.PROVED else None


def _in_lost_layer(
    logical: Module, partitioned: Module, layered: Layered, differing: Differing | None, session: Session
) -> _Lost | None:
    """What is said of a module of equal layers by the first that is not as it should be, which is looked at alone. None
    where another look may say more: that layer is proved case by case, or not all that is open is made of it."""
    lost, report = layered.lost, layered.report
    left = [result.index for result in report.results if result.verdict is not Verdict.PROVED]
    if lost is None or differing is None or lost.reaches(partitioned, left) != set(left):
        return None
    _begin(logical, partitioned, layered.terms, session)
    session.phase = "inputs were looked for that make a result differ"
    with session.meter.keeping(KEPT_FOR_PROOFS):
        differs = bool(differing(left, is_large=True))
    session.phase = "a layer was looked at by itself"
    # what comes after is on the layer's account
    found = _examine(lost.logical, lost.partitioned, None, None, None, session)
    session.memory.start_anew()
    session.layered_terms = layered.terms
    (result,) = found.report.results
    if result.verdict is Verdict.PROVED or result.finding is None:
        return None
    results = tuple(
        replace(each, reason=result.reason, location=result.location, finding=result.finding, code=result.code)
        if each.index in left
        else each
        for each in report.results
    )
    examination = Examination(replace(report, results=results), found.leads, lost=lost)
    return _Lost(examination, differs, KEPT_FOR_PROOFS * AS_IN_LAYERS * layered.terms)


def _decide(
    logical: Module,
    partitioned: Module,
    at_first: tuple[Report, Outcome | None, int],
    placed: list[Sharding],
    wrong: frozenset[int],
    progress: Progress | None,
    reading: Callable[[], bool | None] | None,
    session: Session,
    started: float,
) -> Examination:
    """What is proved of the rest in other readings, case by case and on each device, and what is said of the others."""
    report, first, terms = at_first
    left = [result.index for result in report.results if result.verdict is not Verdict.PROVED]
    try:
        otherwise = OtherReadings(logical, partitioned, placed, session, terms, first)
        is_seen = first is not None and not wrong and _is_seen(left, first, placed, logical, partitioned)
        if first is not None and not wrong and (is_seen or all(otherwise.prove(n, decide=False) for n in left)):
            proved = [replace(result, verdict=Verdict.PROVED) for result in report.results]
            return Examination(report_of(logical, first, proved, report.devices, started), {})
        is_read = reading() if reading is not None else False
        if is_read:
            return Examination(report, {})
        unknown = [n for n in left if n not in wrong]
        seems_wrong = bool(wrong) or session.seems_wrong or is_read is None
        guesses = {} if seems_wrong else guessed(logical, partitioned, session)
        apart = Apart(logical, partitioned, session, unknown, seems_wrong, guesses, first)
        if first is not None and not wrong and apart.is_in_pieces:
            soon = decided_soon(logical, partitioned, placed, terms, session, started)
            if soon is not None:
                return Examination(soon, {})
        if first is not None and not wrong and all(map(apart.proves_briefly, left)):
            proved = [replace(r, verdict=Verdict.PROVED, by_device=r.index in left) for r in report.results]
            return Examination(report_of(logical, first, proved, report.devices, started), {})
        session.phase = "values were compared case by case"
        outcome = walk_deciding(logical, partitioned, first, progress, bool(wrong), session, guesses)
    except TimeUpError:
        return Examination(replace(out_of_time(report, session), seconds=time.perf_counter() - started), {})
    if wrong:
        outcome.stages.spare()
    session.phase = "results were compared case by case"
    findings = Findings(outcome.stages)
    results = _results(logical, partitioned, outcome, placed, wrong, findings, (otherwise, apart))
    report = report_of(logical, outcome, results, report.devices, started)
    return Examination(report, findings.leads, is_wrong=bool(wrong))


def _is_seen(
    left: Collection[int], first: Outcome, placed: list[Sharding], logical: Module, partitioned: Module
) -> bool:
    """Whether results of what a person distributed are seen to be equal in a few steps, after the first walk."""
    if first.stages.effort.session.seems_wrong or not is_by_hand(partitioned):
        return False
    names = logical.result_names
    return not any(open_obligations(n, names[n], first, placed[n], decide=True, briefly=True) for n in left)


def _begin(logical: Module, partitioned: Module, terms: int, session: Session) -> None:
    """Allow for what a wrong module may cost by its size, and account for the walk that was in vain: for no more of it
    than is allowed for by the size, as terms of a right module may be large too."""
    most = by_size(logical, partitioned, session)
    session.meter.begin(session.limits.wrong_work + most)
    session.meter.charge(min(most, TERM * terms))


def by_size(logical: Module, partitioned: Module, session: Session) -> float:
    """The work that a wrong module may cost by its size, or by that of its distinct layers."""
    by_operations = session.limits.wrong_operation_work * _size(logical, partitioned)
    return min(by_operations, AS_IN_LAYERS * TERM * session.layered_terms)


def _share_seen(results: Collection[int], session: Session, is_by_hand: bool) -> float:
    """The share of some results that may be taken to be right, as far as inputs go: all but those that no input showed
    anything of, as they are too large to be evaluated, and those that looked different, whether or not that is certain;
    those that no inputs were drawn for are like the others. What has no meaning here cannot be evaluated at any size,
    and speaks for nothing: of what a person distributed, as a compiler's right modules take no more to be proved."""
    if session.lacks_meanings and is_by_hand:
        return 1.0
    if session.seems_wrong:
        return 0.0
    seen = [session.values_seen[n] for n in results if n in session.values_seen]
    return sum(seen) / len(seen) if seen else 1.0


def _size(logical: Module, partitioned: Module) -> int:
    return sum(1 for module in (logical, partitioned) for _ in operations(module.main))


def _is_dear(logical: Module, partitioned: Module, session: Session) -> bool:
    """Whether it takes more to read loops in other ways than to look for inputs that make a result differ, which is
    done for any result that stays open."""
    if not read_otherwise(logical, partitioned):
        return False
    return _size(logical, partitioned) > session.limits.reading_operations


def terms_left(logical: Module, partitioned: Module, session: Session) -> float:
    """How many terms one more walk may make, for a module that is not proved."""
    return max(session.meter.left, LEAST * by_size(logical, partitioned, session)) / TERM


def _results(
    logical: Module,
    partitioned: Module,
    outcome: Outcome,
    placed: list[Sharding],
    wrong: Collection[int],
    findings: Findings,
    others: tuple[OtherReadings, Apart],
) -> list[Result]:
    """The verdicts after a walk that decides, and why results are not proved; `wrong` are known to differ."""
    results: list[Result] = []
    effort, given_up = outcome.stages.effort, False
    session, most = effort.session, effort.session.limits.vain_results
    for n, name in enumerate(logical.result_names):
        names = (logical.main.results[n], partitioned.main.results[n])
        left, answered = effort.left, len(effort.unanswered)
        try:
            session.check()
            readings, apart = None if wrong or given_up else others[0], None if n in wrong else others[1]
            result = _compare(n, name, outcome, placed[n], names, readings, apart, findings)
        except TimeUpError:
            is_proved = not open_obligations(n, name, outcome, placed[n], decide=False)
            result = Result(n, name, Verdict.PROVED if is_proved else Verdict.UNKNOWN)
            results.append(result if is_proved else late(result, session))
            continue
        if result.code is Solver.NO_PROOF:
            is_spent = effort.left <= 0 or left - effort.left >= session.limits.comparison_steps
            budget = Solver.CASE_BUDGET if is_spent else why_unknown.budget(effort.unanswered[answered:])
            result = replace(result, code=Solver.GIVEN_UP if given_up else budget)
        results.append(result)
        if all(result.verdict is Verdict.UNKNOWN for result in results[-most:]) and len(results) >= most:
            effort.left = 0  # the module is wrong; what is right of it is so by construction
            session.reached("vain_results")
            given_up = True
    return results


def _compare(
    n: int,
    name: str,
    outcome: Outcome,
    sharding: Sharding,
    names: tuple[int, int],
    readings: OtherReadings | None,
    apart: Apart | None,
    findings: Findings,
) -> Result:
    """The verdict for one result, and why it is not proved; `names` are its values in both modules. Nothing is read in
    other ways of a module that is known to be wrong, as each takes a walk, and nothing is `apart` of a wrong result.
    What is read at the entries of a table is compared device by device first: all devices at once know less of it."""
    is_ordered = apart is not None and any(
        reads_table(p) for pair in open_obligations(n, name, outcome, sharding, decide=False) for p in pair
    )
    if apart is not None and is_ordered and apart.proves(n):
        return Result(n, name, Verdict.PROVED, by_device=True)
    if apart is not None and not is_ordered and apart.may_be_brief:
        if not open_obligations(n, name, outcome, sharding, decide=True, briefly=True):
            return Result(n, name, Verdict.PROVED)
        if apart.proves_briefly(n):
            return Result(n, name, Verdict.PROVED, by_device=True)
    open_ = open_obligations(n, name, outcome, sharding, decide=apart is not None)
    if not open_ or (readings is not None and readings.prove(n)):
        return Result(n, name, Verdict.PROVED)
    if apart is not None and not is_ordered and apart.proves(n):
        return Result(n, name, Verdict.PROVED, by_device=True)
    finding = findings.about(*names, *open_[0])
    reason = finding.nearest or "no matching term"
    code = why_unknown.code_of(open_[0], outcome.unsupported)
    return Result(n, name, Verdict.UNKNOWN, reason, finding.location, finding, code)
