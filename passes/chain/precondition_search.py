"""Preconditions that a refutation may be for want of: integers that lie outside of what they index.

A lookup that is split over devices by its vocabulary gives zeros for a token of -64, and a whole one clamps it. No one
means such tokens; whether that is all that is wrong, a proof for the others says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.chain.between import Question, answer
from hlo_verify.passes.diagnose.examine import terms_left
from hlo_verify.passes.prove.lost_layer import LostLayer
from hlo_verify.passes.prove.prove import prove_at_once
from hlo_verify.passes.refute.outside import are_outside, broken_by, that_indices_lie_inside
from hlo_verify.passes.refute.trial import Counterexample
from hlo_verify.program import preconditions
from hlo_verify.program.preconditions import Precondition
from hlo_verify.report import Report, Result, Suggestion, Verdict
from hlo_verify.session import EnoughError, Session, TimeUpError


def suggested(
    question: Question,
    report: Report,
    counterexamples: Sequence[Counterexample],
    session: Session,
    lost: LostLayer | None = None,
) -> Suggestion | None:
    """What results are proved under, where the inputs of a witness lie outside of what they index; or where there is no
    witness, if they are proved if all indices lie inside. Where a layer that is lost shows why they are not, nothing is
    proved of them before that layer is."""
    outside = [found for found in counterexamples if are_outside(found)]
    differing = {n for found in outside for n in found.differences}
    refuted = {r.index for r in report.results if r.verdict is Verdict.REFUTED}
    unknown = {r.index for r in report.results if r.verdict is Verdict.UNKNOWN}
    wanted = refuted & differing if refuted else unknown
    if not wanted:
        return None
    ways = [broken_by(outside)] if outside else []
    best: tuple[tuple[Precondition, ...], set[int]] = (ways[0] if ways else (), set())
    for way in dict.fromkeys([*ways, *that_indices_lie_inside(question.given)]):
        if lost is not None and not _is_found(lost, way, session):
            continue
        allowed = _under(question, way)
        at_once = not refuted or not session.affords()
        most = terms_left(question.given, question.partitioned, session)
        proved = set() if allowed is None else _proved(allowed, session, most, by_construction=at_once) & wanted
        best = max(best, (way, proved), key=lambda found: len(found[1]))
        if best[1] == wanted:
            break
    if not refuted and not best[1]:
        return None
    names, shown = ([_name(r) for r in report.results if r.index in some] for some in (wanted, best[1]))
    return Suggestion(tuple(map(str, best[0])), tuple(names), tuple(shown), bool(refuted))


def _is_found(lost: LostLayer, way: Sequence[Precondition], session: Session) -> bool:
    """Whether a layer is right for such inputs."""
    layer = _under(Question(lost.logical, lost.partitioned), way)
    return layer is not None and bool(_proved(layer, session, math.inf, by_construction=True))


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


def _proved(question: Question, session: Session, most: float, *, by_construction: bool) -> set[int]:
    """The results that are proved, by construction alone and with no more than so many terms, or with as much effort as
    the question itself may take, in the time that is left."""
    anew = Session(session.limits, session.deadline, custom_calls=session.custom_calls)
    try:
        if by_construction:
            report = prove_at_once(question.given, question.partitioned, session=anew, most=most)
        else:
            report = answer(question, session=anew).examination.report
    except (TimeUpError, EnoughError):
        return set()
    return {result.index for result in report.results if result.verdict is Verdict.PROVED}
