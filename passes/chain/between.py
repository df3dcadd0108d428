"""A proof about the module that a user gave, with the help of what XLA made of it on the way.

Three modules: as it was given; as XLA annotated it (converted to HLO, simplified, shardings completed), which is what
the partitioner was handed; and partitioned. The question is about the first and the last. They are compared as they
are, and that is enough for most programs. Where it is not, the annotated module helps: the partitioner kept its
operations, their places in the source and the shardings in between, which a proof by cases needs. Then two things are
proved: the annotated module computes what the given one does, both as a whole; and the partitioned one computes what
the annotated one does. Equality is transitive. What conversion or propagation changed breaks the first of these.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from pathlib import Path

from hlo_verify.diagnostics import Code, Solver
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.chain.amplified import Amplified
from hlo_verify.passes.chain.pair_programs import knows_devices, pair_of_wholes
from hlo_verify.passes.chain.proofs import (
    Modules,
    Proof,
    as_programs,
    as_they_are,
    first_proof,
    forms,
    proof_of_a_reading,
)
from hlo_verify.passes.diagnose.examine import Differing, Examination, examine, terms_left
from hlo_verify.passes.prove.account import Account
from hlo_verify.passes.prove.prove import Progress, prove_at_once
from hlo_verify.passes.prove.reports import nothing, out_of_time
from hlo_verify.program.ir import Module
from hlo_verify.program.pair import device_count
from hlo_verify.report import Report, Result, Verdict
from hlo_verify.session import Session, TimeUpError

DIRECTLY = "{given} with the partitioned one"
IN_TWO_STEPS = "{given} with what XLA annotated, and that with the partitioned one"
EARLIER = (
    "; the partitioned module is proved to compute what XLA annotated, so that what is not followed happened before: "
    "conversion, simplification or sharding propagation"
)


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Whether the partitioned module computes what the given one does. The annotated one, if any, only helps."""

    given: Module
    partitioned: Module
    annotated: Module | None = None
    is_reference: bool = False
    """Whether the given module is another one than what was partitioned."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """An examination of the given module against the partitioned one, and the pairs that a proof rests on."""

    examination: Examination
    rests_on: tuple[Modules, ...]


def answer(
    question: Question,
    *,
    progress: Progress | None = None,
    differing: Differing | None = None,
    session: Session | None = None,
) -> Answer:
    """Decide each result. `differing` and `session` are as for `examine`, about the given module.

    Raises `InputError` where the modules are no pair.
    """
    if question.annotated is None:
        return _as_it_stands(question, progress, differing, session or Session())
    started = time.perf_counter()
    session = session or Session()
    try:
        found, compared = _by_way_of(question.annotated, question, progress, differing, session)
    except TimeUpError:
        devices = device_count(question.given, question.partitioned)
        late = out_of_time(nothing(question.given, devices), session)
        found, compared = Answer(Examination(late, {}), ()), DIRECTLY
    file = f" ({Path(question.given.path).name})" if question.given.path else ""
    called = "the reference" if question.is_reference else "the module as it was given"
    compared = compared.format(given=f"{called}{file}")
    report = replace(found.examination.report, compared=compared, seconds=time.perf_counter() - started)
    return replace(found, examination=replace(found.examination, report=report))


def _as_it_stands(
    question: Question, progress: Progress | None, differing: Differing | None, session: Session
) -> Answer:
    """The answer about two modules alone; where it is open, constants of one are read as what the other computes. Where
    a layer shows why, all of the module is read so only if that layer is proved so."""
    pair = question.given, question.partitioned
    readings = _Readings(*pair, session)
    examined = examine(*pair, progress=progress, differing=differing, otherwise=readings.are_proved, session=session)
    is_open = examined.report.verdict is Verdict.UNKNOWN and not examined.differs and not session.is_over
    far: Amplified | None = None
    if readings.proof is None and is_open and not (examined.is_wrong and readings.are_in_vain()):
        account, lost = Account.of(session, terms_left(*pair, session)), examined.lost
        if lost is not None:
            layer = _Readings(lost.logical, lost.partitioned, session)
            layer.look(account)
            far = layer.far
        if lost is None or layer.proof is not None:
            readings.look(account)
            far = readings.far
    if readings.proof is not None:
        return _answer(readings.proof)
    return Answer(examined if far is None else _with_reason(examined, f"; {far}", Solver.AMPLIFIED), (pair,))


@dataclass(slots=True)
class _Readings:
    """Two modules, where they are open, with numbers of one read as what the other has."""

    given: Module
    partitioned: Module
    session: Session
    proof: Proof | None = None
    far: Amplified | None = None
    """Where a reading amplifies roundings, if none is proved."""
    _looked: bool = False

    def are_proved(self) -> bool | None:
        """Whether a reading is proved of modules of which the one does not compute what the other does as they stand:
        they mask by other numbers, or numbers show that they are apart. None where they are, and none is."""
        from hlo_verify.passes.chain.by_people import are_apart, mask_by_others  # which evaluate

        apart = are_apart(self.given, self.partitioned, self.session)
        if apart or mask_by_others(self.given, self.partitioned, self.session):
            self.look(Account(self.session.fresh()))  # the session has terms, which must not be mixed with others
        return True if self.proof is not None else None if apart else False

    def are_in_vain(self) -> bool:
        """Whether numbers show that the modules differ by more than any reading may; or there is no time to look."""
        from hlo_verify.passes.chain.seen_apart import are_seen_to_differ

        with contextlib.suppress(TimeUpError):
            return are_seen_to_differ(self.given, self.partitioned, self.session)
        return True

    def look(self, account: Account) -> None:
        """Look for a proof of some reading, once."""
        from hlo_verify.passes.chain.by_people import proof_by_people

        if not self._looked:
            self._looked = True
            with contextlib.suppress(TimeUpError):
                self.proof, self.far = proof_by_people(self.given, self.partitioned, account)


def _answer(proof: Proof) -> Answer:
    return Answer(Examination(proof.report, {}), (proof.pair,))


def _followed_by(proof: Proof, examination: Examination, pair: Modules) -> Answer:
    """A proof and that of a second pair, as one."""
    said = dict.fromkeys((*examination.report.assumptions, *proof.report.assumptions))
    report = replace(examination.report, assumptions=tuple(said))
    return Answer(replace(examination, report=report), (proof.pair, pair))


def _by_way_of(
    annotated: Module,
    question: Question,
    progress: Progress | None,
    differing: Differing | None,
    session: Session,
) -> tuple[Answer, str]:
    """The answer with the help of the annotated module, and in words what was compared."""
    given, partitioned = question.given, question.partitioned
    direct = first_proof(given, partitioned, Account(session), progress)
    if direct is not None:
        return _answer(direct), DIRECTLY
    linked, link, far = _linked(given, annotated, session)
    behind = None
    if linked:
        behind = examine(annotated, partitioned, progress=progress, differing=differing, session=session)
    if behind is not None and link is not None and behind.report.verdict is Verdict.PROVED:
        return _followed_by(link, behind, (annotated, partitioned)), IN_TWO_STEPS
    if partitioned.replicas == 1:
        direct, farther = proof_of_a_reading(given, partitioned, as_they_are, as_programs, Account(session))
        if direct is not None:
            return _answer(direct), DIRECTLY
        far = far or farther
    examined = examine(given, partitioned, progress=progress, differing=differing, session=session)
    if behind is not None:
        examined = _with_proofs(examined, linked & _proved(behind.report))
    if examined.report.verdict is not Verdict.PROVED and far is not None:
        examined = _with_reason(examined, f"; {far}", Solver.AMPLIFIED)
    elif examined.report.verdict is not Verdict.PROVED and not linked:
        with contextlib.suppress(TimeUpError):  # then the reason says so
            earlier = first_proof(annotated, partitioned, Account(session)) is not None
            examined = _with_reason(examined, EARLIER) if earlier else examined
    return Answer(examined, ((given, partitioned),)), DIRECTLY


def _as_a_whole(module: Module) -> Modules:
    return pair_of_wholes(module, module)


def _linked(
    given: Module, annotated: Module, session: Session
) -> tuple[frozenset[int], Proof | None, Amplified | None]:
    """The results of which the annotated module is seen to compute what the given one does, and the proof of all; or
    how far roundings of its constants are amplified."""
    found: frozenset[int] = frozenset()
    if knows_devices(given) or knows_devices(annotated):
        return found, None, None
    try:
        for first, second in forms(given, annotated):
            pair = pair_of_wholes(first, second)
            report = prove_at_once(*pair, session=session)
            found |= _proved(report)
            if report.verdict is Verdict.PROVED:
                return found, Proof(report, pair), None
        proof, far = proof_of_a_reading(given, annotated, pair_of_wholes, _as_a_whole, Account(session))
    except InputError:  # they have other arguments or results
        return frozenset(), None, None
    return (found if proof is None else _proved(proof.report)), proof, far


def _proved(report: Report) -> frozenset[int]:
    return frozenset(result.index for result in report.results if result.verdict is Verdict.PROVED)


def _with_proofs(examination: Examination, proved: frozenset[int]) -> Examination:
    """The examination with more results proved."""
    results = (
        Result(result.index, result.name, Verdict.PROVED) if result.index in proved else result
        for result in examination.report.results
    )
    return replace(examination, report=replace(examination.report, results=tuple(results)))


def _with_reason(examination: Examination, reason: str, code: Code | None = None) -> Examination:
    """The examination with one more reason for what is not proved."""
    results = (
        result
        if result.verdict is Verdict.PROVED
        else replace(result, reason=result.reason + reason, code=code or result.code)
        for result in examination.report.results
    )
    return replace(examination, report=replace(examination.report, results=tuple(results)))
