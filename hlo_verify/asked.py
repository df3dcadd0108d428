"""What is asked of two modules that were read, and the report of what was decided: proof, refutation, second check."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hlo_verify import custom_calls
from hlo_verify.diagnostics import Annotation, Input, Internal
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program import preconditions
from hlo_verify.program.approximations import Approximation
from hlo_verify.program.preconditions import said
from hlo_verify.report import Report, Result, Verdict
from hlo_verify.session import Session, TimeUpError

if TYPE_CHECKING:
    from hlo_verify.passes.chain.between import Question
    from hlo_verify.passes.diagnose.examine import Differing, Examination
    from hlo_verify.passes.place.inferred import Inferred
    from hlo_verify.program.ir import Module

Progress = Callable[[int, int], None]

INTERRUPTED = "; interrupted while inputs were searched for that make it differ"
AS_WRITTEN = "the reference with the module that it is declared to approximate, before anything was partitioned"
NUMBERS = "values of the reference that others are declared to stand for are numbers, never infinite"
ANY_VALUE = "what is declared to stand for another value may be any number, unless a precondition says more of it"
IN_TWO = f"{AS_WRITTEN}; and that with what XLA made of it"


@dataclass(frozen=True, slots=True)
class Asked:
    """Whether to look for witnesses, and where to save one; in how many processes to check proofs a second time; the
    session of all of it; and under which preconditions."""

    refute: bool
    witness: Path | None
    jobs: int
    session: Session
    assume: tuple[preconditions.Precondition, ...] = ()
    """What is said of the values of arguments."""
    declared: tuple[Approximation, ...] = ()
    """Which values stand for which."""

    def __post_init__(self) -> None:
        if self.declared and self.witness is not None:
            raise InputError(
                "a witness is saved with both modules, which do not take the values of declared approximations: leave "
                "witness out, the report has its inputs",
                Input.USAGE,
            )
        if self.witness is not None and not self.refute:
            raise InputError("a witness is found by refuting: give witness without refute=False", Input.USAGE)
        if self.witness is not None and not os.path.isdir(self.witness.absolute().parent):
            raise InputError(f"cannot write {self.witness}: there is no such folder", Input.UNWRITABLE)


def between(
    whole: Module,
    annotated: Module | None,
    parts: Module,
    asked: Asked,
    contents: Callable[[Question], tuple[bytes, bytes]],
    progress: Progress | None,
    reference: Module | None = None,
) -> Report:
    """Decide a pair, perhaps with the help of what the compiler made of the whole module on the way.

    `contents` are the files of a witness, for the question that was asked in the end. With a `reference`, the question
    is whether that is computed, placed as the whole module says.
    """
    from hlo_verify.passes.chain.between import Question
    from hlo_verify.passes.place.demanded import Demanded, asked_of, demanded
    from hlo_verify.passes.place.infer import infer
    from hlo_verify.program.pair import device_count

    annotated = None if annotated is None else preconditions.like(annotated, whole)
    demand = Demanded(whole, whole) if annotated is None else demanded(whole, annotated, parts)
    given = demand.given if reference is None else asked_of(reference, demand.given)
    try:
        inferred = infer(given, parts, asked.session)
    except TimeUpError:
        return late(whole, device_count(whole, parts), asked.session)
    is_same = inferred.partitioned is parts
    helping = demand.placed_like(inferred.logical) if annotated is not None and is_same else None
    question = Question(inferred.logical, inferred.partitioned, helping, reference is not None)
    asked = replace(asked, refute=False, witness=None) if demand.missed else asked
    report = _decide(question, inferred, asked, lambda: contents(question), progress)
    told = (*report.assumptions, *preconditions.hardly_used(given) * (report.verdict is Verdict.UNKNOWN))
    if given.declared:
        told = (*told, NUMBERS if report.verdict is Verdict.PROVED else ANY_VALUE)
    report = replace(report, left_open=demand.left, preconditions=said(given), assumptions=told)
    return replace(report, results=tuple(_missed(result, demand.missed) for result in report.results))


def late(logical: Module, devices: int, session: Session) -> Report:
    """The report where the time is up before anything is known of a pair."""
    from hlo_verify.passes.prove.reports import nothing, out_of_time

    return replace(out_of_time(nothing(logical, devices), session), preconditions=said(logical))


def _missed(result: Result, missed: Mapping[int, str]) -> Result:
    """The verdict for a result that cannot lie where it has to: whatever was found is not about that."""
    reason = missed.get(result.index)
    if reason is None:
        return result
    return Result(result.index, result.name, Verdict.UNKNOWN, reason, code=Annotation.WRONG_SHARD)


def _decide(
    question: Question,
    inferred: Inferred,
    asked: Asked,
    contents: Callable[[], tuple[bytes, bytes]],
    progress: Progress | None,
) -> Report:
    session = asked.session
    if asked.refute:
        report, rests_on = _refuted(question, inferred, asked.witness, contents, progress, session)
    else:
        examination, rests_on = _examined(question, None, progress, session)
        report = inferred.judged(examination.report)
    report = session.account(report)
    if asked.jobs and report.verdict is Verdict.PROVED:
        report = _rechecked(report, rests_on, asked.jobs, session, progress)
    modules = [module for module in (question.given, question.annotated, question.partitioned) if module is not None]
    notes = (note for module in modules for note in module.notes)
    said = dict.fromkeys((*notes, *custom_calls.assumptions(modules)))
    unsupported = tuple(custom_calls.with_remedy(each, modules) for each in report.unsupported)
    return replace(report, unsupported=unsupported, assumptions=(*report.assumptions, *said))


def _examined(
    question: Question, differing: Differing | None, progress: Progress | None, session: Session
) -> tuple[Examination, Sequence[tuple[Module, Module]]]:
    """What is proved, and says evaluation nothing against, and the pairs that the proof rests on."""
    from hlo_verify.passes.chain.between import answer
    from hlo_verify.passes.diagnose.scenes import shown
    from hlo_verify.passes.refute.when_asked import countersigned

    answered = answer(question, progress=progress, differing=differing, session=session)
    examination = shown(answered.examination, question.given, question.partitioned)
    report = countersigned(examination.report, question.given, question.partitioned, session)
    return replace(examination, report=report), answered.rests_on


def _refuted(
    question: Question,
    inferred: Inferred,
    witness: Path | None,
    contents: Callable[[], tuple[bytes, bytes]],
    progress: Progress | None,
    session: Session,
) -> tuple[Report, Sequence[tuple[Module, Module]]]:
    """The proof and the pairs that it rests on, or the refutation of what is not proved."""
    from hlo_verify.passes.refute.when_asked import WhenAsked

    with WhenAsked(question.given, question.partitioned, session) as refutes:
        examination, rests_on = _examined(question, refutes.differing, progress, session)
        if examination.report.verdict is Verdict.PROVED:
            return inferred.judged(examination.report), rests_on
        try:
            refutation = refutes.refute(examination)
        except KeyboardInterrupt:
            return inferred.judged(_interrupted(examination.report)), ()
    from hlo_verify.passes.chain.precondition_search import suggested
    from hlo_verify.passes.refute.refute import save

    report = inferred.judged(refutation.report, refutation.counterexamples, session)
    refuted = {result.index for result in report.results if result.verdict is Verdict.REFUTED}
    kept = [found for found in refutation.counterexamples if refuted & found.differences.keys()]
    if witness is not None and kept:
        save(witness, kept[0], *contents())
    return replace(report, suggestion=suggested(question, report, kept, session, examination.lost)), ()


def _interrupted(report: Report) -> Report:
    """What was known of results when somebody had waited long enough for witnesses."""
    results = (r if r.verdict is Verdict.PROVED else replace(r, reason=r.reason + INTERRUPTED) for r in report.results)
    return replace(report, results=tuple(results))


def _rechecked(
    report: Report,
    pairs: Sequence[tuple[Module, Module]],
    jobs: int,
    session: Session,
    progress: Progress | None,
) -> Report:
    """The report of a proof with a second check of it, in so many processes, as far as there is time."""
    from hlo_verify.passes.recheck.recheck import recheck
    from hlo_verify.passes.recheck.together import together

    apart = [result.index for result in report.results if result.by_device]
    again = partial(recheck, jobs=jobs, limits=session.limits, deadline=session.deadline, progress=progress)
    found = together([again(*pair, by_device=apart) for pair in pairs])
    results = report.results
    if found.disagreements:  # nothing is proved by a prover that is wrong somewhere
        reason = "internal error: a second check of the proof disagrees with it"
        results = tuple(
            replace(result, verdict=Verdict.UNKNOWN, reason=reason, code=Internal.DISAGREEMENT) for result in results
        )
    return replace(report, recheck=found, results=results)


def with_declared(whole: Module, parts: Module, asked: Asked) -> tuple[Module, Module, tuple[str, ...]]:
    """The modules with arguments in the place of what is declared, and in words what that is."""
    if not asked.declared:
        return whole, parts, ()
    from hlo_verify.passes.cut.cut import cut

    made = cut(whole, parts, asked.declared)
    return made.logical, made.partitioned, made.said


def as_written(reference: Module, whole: Module, asked: Asked, progress: Progress | None) -> tuple[Report, Module]:
    """Whether a module that nobody distributed yet computes what a reference does, but for what is declared. With the
    module under what is assumed of its own arguments."""
    from hlo_verify.passes.chain.pair_programs import pair_of_wholes
    from hlo_verify.program.pair import is_global

    pair = (reference, whole) if is_global(whole) else pair_of_wholes(reference, whole)
    first, second, told = with_declared(*pair, asked)
    first = preconditions.apply(first, asked.assume)
    report = between(first, None, second, asked, lambda _: (b"", b""), progress)
    own = replace(reference, assumed=first.assumed[: len(reference.argument_names)])
    return replace(report, approximations=told, compared=AS_WRITTEN), preconditions.like(whole, own)


def in_two_steps(first: Report, second: Report) -> Report:
    """The report of a module that was compared as it is written, and then with what XLA made of it."""
    from hlo_verify.passes.recheck.together import together

    checks = [each.recheck for each in (first, second) if each.recheck is not None]
    return replace(
        second,
        approximations=first.approximations,
        assumptions=tuple(dict.fromkeys((*first.assumptions, *second.assumptions))),
        compared=IN_TWO,
        preconditions=first.preconditions,
        recheck=together(checks) if len(checks) == 2 else second.recheck,
        seconds=first.seconds + second.seconds,
    )
