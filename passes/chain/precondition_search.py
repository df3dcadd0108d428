"""Preconditions that a refutation may be for want of: integers that lie outside of what they index.

A lookup that is split over devices by its vocabulary gives zeros for a token of -64, and a whole one clamps it. No one
means such tokens; whether that is all that is wrong, a proof for the others says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.chain.between import Question, answer
from hlo_verify.passes.refute.outside import are_outside, broken_by
from hlo_verify.passes.refute.trial import Counterexample
from hlo_verify.program import preconditions
from hlo_verify.program.preconditions import Precondition
from hlo_verify.report import Report, Result, Suggestion, Verdict
from hlo_verify.session import Session, TimeUpError


def suggested(
    question: Question, report: Report, counterexamples: Sequence[Counterexample], session: Session
) -> Suggestion | None:
    """What the refuted results are proved under, where the inputs of a witness lie outside of what they index."""
    outside = [found for found in counterexamples if are_outside(found)]
    wanted = {n for found in outside for n in found.differences} & {
        result.index for result in report.results if result.verdict is Verdict.REFUTED
    }
    if not wanted:
        return None
    best: tuple[tuple[str, ...], set[int]] | None = None
    for broken in broken_by(outside):
        allowed = _under(question, broken)
        proved = set() if allowed is None else _proved(allowed, session) & wanted
        if best is None or len(proved) > len(best[1]):
            best = tuple(map(str, broken)), proved
        if best[1] == wanted:
            break
    assert best is not None
    names = [_name(result) for result in report.results if result.index in wanted]
    return Suggestion(best[0], tuple(names), tuple(_name(r) for r in report.results if r.index in best[1]))


def _name(result: Result) -> str:
    return result.name or f"result {result.index}"


def _under(question: Question, broken: Sequence[Precondition]) -> Question | None:
    """The question about such inputs alone; None where that is none."""
    try:
        given = preconditions.apply(question.given, broken)
    except InputError:  # of a name that several arguments have, or none at all beside what the user says
        return None
    annotated = None if question.annotated is None else preconditions.like(question.annotated, given)
    return replace(question, given=given, annotated=annotated)


def _proved(question: Question, session: Session) -> set[int]:
    """The results that are proved, with as much effort as the question itself may take and the time that is left."""
    anew = Session(session.limits, session.deadline, custom_calls=session.custom_calls)
    try:
        report = answer(question, session=anew).examination.report
    except TimeUpError:
        return set()
    return {result.index for result in report.results if result.verdict is Verdict.PROVED}
