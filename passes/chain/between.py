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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hlo_verify.diagnostics import Code, Solver
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.chain.amplified import Amplified, amplified
from hlo_verify.passes.chain.folded_constants import Folded, with_rests
from hlo_verify.passes.chain.pair_programs import knows_devices, pair_of_programs, pair_of_wholes
from hlo_verify.passes.chain.rejoin_all_to_all import rejoined
from hlo_verify.passes.chain.rounded_tables import parts, with_tables
from hlo_verify.passes.chain.seen_apart import are_seen_apart
from hlo_verify.passes.chain.trim_loops import has_loops, slim
from hlo_verify.passes.diagnose.examine import Differing, Examination, examine
from hlo_verify.passes.prove.each_device.apart import Apart
from hlo_verify.passes.prove.each_device.compare import is_by_hand
from hlo_verify.passes.prove.effects import unless_effects_differ
from hlo_verify.passes.prove.prove import Progress, prove_at_once
from hlo_verify.passes.prove.reports import nothing, out_of_time
from hlo_verify.program.ir import Module
from hlo_verify.program.pair import device_count, is_global
from hlo_verify.report import Report, Result, Verdict
from hlo_verify.session import Session, TimeUpError

DIRECTLY = "{given} with the partitioned one"
IN_TWO_STEPS = "{given} with what XLA annotated, and that with the partitioned one"
EARLIER = (
    "; the partitioned module is proved to compute what XLA annotated, so that what is not followed happened before: "
    "conversion, simplification or sharding propagation"
)

Modules = tuple[Module, Module]


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
    """The answer about two modules alone; where it is open, constants of one are read as what the other computes."""
    pair = question.given, question.partitioned
    examined = examine(*pair, progress=progress, differing=differing, session=session)
    if examined.report.verdict is not Verdict.UNKNOWN or examined.differs or session.is_over:
        return Answer(examined, (pair,))
    far: Amplified | None = None
    given, partitioned = pair
    alone = _as_a_pair if is_global(partitioned) else _as_programs
    with contextlib.suppress(TimeUpError):
        proof, far = _proof_of_readings(given, partitioned, alone, session)
        if proof is None:
            proof, farther = _proof_with_tables(given, partitioned, alone, session)
            far = far or farther
        if proof is not None:
            return proof.answer()
    return Answer(examined if far is None else _with_reason(examined, f"; {far}", Solver.AMPLIFIED), (pair,))


def _proof_of_readings(
    given: Module, partitioned: Module, alone: Callable[[Module], Modules], session: Session
) -> tuple[Proof | None, Amplified | None]:
    """A proof where numbers of either module are what the other one computes them from, but for roundings."""
    proof, far = _proof_of_a_reading(given, partitioned, _as_they_are, alone, session, by_people=True)
    if proof is None:
        proof, farther = _proof_of_a_reading(
            partitioned, given, _turned, lambda module: (module, partitioned), session, by_people=True
        )
        far = far or farther
    if proof is None:
        proof, farther = _proof_with_rests(given, partitioned, alone, session)
        far = far or farther
    return proof, far


def _proof_with_tables(
    given: Module, partitioned: Module, alone: Callable[[Module], Modules], session: Session
) -> tuple[Proof | None, Amplified | None]:
    """A proof where what one module computes of constants alone is a table of the other, but for roundings."""
    count = 1 if is_global(partitioned) else partitioned.partitions or 1
    here = parts(given, partitioned, (1, count))
    second = with_tables(partitioned, here)
    there = parts(second, given, (count, 1))
    first = with_tables(given, there)
    if not here and not there:
        return None, None
    proof = first_proof(first, second, session) or _proof_on_each_device(first, second, session)
    far: Amplified | None = None
    if proof is None:
        proof, far = _proof_of_readings(first, second, alone, session)
    if proof is None or are_seen_apart(given, partitioned, session):
        return None, far
    looked_at = [(alone(each), here) for each in (partitioned, second) if here]
    looked_at += [((each, partitioned), there) for each in (given, first) if there]
    for pair, found in looked_at:
        far = amplified(*pair, found, session)
        if far is not None:
            return None, far
    said = dict.fromkeys((*proof.report.assumptions, *first.notes, *second.notes))
    return replace(proof, report=replace(proof.report, assumptions=tuple(said))), None


def _turned(partitioned: Module, given: Module) -> Modules:
    return given, partitioned


def _as_a_pair(module: Module) -> Modules:
    return module, module


def _by_way_of(
    annotated: Module,
    question: Question,
    progress: Progress | None,
    differing: Differing | None,
    session: Session,
) -> tuple[Answer, str]:
    """The answer with the help of the annotated module, and in words what was compared."""
    given, partitioned = question.given, question.partitioned
    direct = first_proof(given, partitioned, session, progress)
    if direct is not None:
        return direct.answer(), DIRECTLY
    linked, link, far = _linked(given, annotated, session)
    behind = None
    if linked:
        behind = examine(annotated, partitioned, progress=progress, differing=differing, session=session)
    if behind is not None and link is not None and behind.report.verdict is Verdict.PROVED:
        return link.followed_by(behind, (annotated, partitioned)), IN_TWO_STEPS
    if partitioned.replicas == 1:
        direct, farther = _proof_of_a_reading(given, partitioned, _as_they_are, _as_programs, session)
        if direct is not None:
            return direct.answer(), DIRECTLY
        far = far or farther
    examined = examine(given, partitioned, progress=progress, differing=differing, session=session)
    if behind is not None:
        examined = _with_proofs(examined, linked & _proved(behind.report))
    if examined.report.verdict is not Verdict.PROVED and far is not None:
        examined = _with_reason(examined, f"; {far}", Solver.AMPLIFIED)
    elif examined.report.verdict is not Verdict.PROVED and not linked:
        with contextlib.suppress(TimeUpError):  # then the reason says so
            earlier = first_proof(annotated, partitioned, session) is not None
            examined = _with_reason(examined, EARLIER) if earlier else examined
    return Answer(examined, ((given, partitioned),)), DIRECTLY


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """The proof by construction of two modules, and the form that it is about."""

    report: Report
    pair: Modules

    def answer(self) -> Answer:
        return Answer(Examination(self.report, {}), (self.pair,))

    def followed_by(self, examination: Examination, pair: Modules) -> Answer:
        """This proof and that of a second pair, as one."""
        said = dict.fromkeys((*examination.report.assumptions, *self.report.assumptions))
        report = replace(examination.report, assumptions=tuple(said))
        return Answer(replace(examination, report=report), (self.pair, pair))


def first_proof(
    logical: Module, partitioned: Module, session: Session, progress: Progress | None = None
) -> Proof | None:
    """The proof of two modules in whichever form has one; None where none has."""
    for pair in forms(logical, partitioned):
        report = prove_at_once(*pair, progress=progress, session=session)
        if report.verdict is Verdict.PROVED:
            return Proof(report, pair)
    return None


def _proof_of_a_reading(
    first: Module,
    second: Module,
    paired: Callable[[Module, Module], Modules],
    alone: Callable[[Module], Modules],
    session: Session,
    *,
    by_people: bool = False,
) -> tuple[Proof | None, Amplified | None]:
    """A proof where constants of the second module are what the first computes them from, but for a rounding that
    stays one; or where it does not. `paired` makes a pair of the two, `alone` one in which the second is looked at;
    `by_people` says that no compiler made it of the first."""
    far: Amplified | None = None
    for reading in Folded(by_people=by_people).readings(first, second):
        if not reading.meant:
            continue
        proof = next(
            filter(None, (first_proof(*paired(*pair), session) for pair in forms(first, reading.module))), None
        )
        proof = proof or _proof_on_each_device(*paired(first, reading.module), session)
        if proof is None:
            continue
        found = amplified(*alone(reading.module), reading.meant, session)
        if found is None:
            said = (*proof.report.assumptions, *reading.said)
            return replace(proof, report=replace(proof.report, assumptions=said)), None
        far = far or found
    return None, far


def _proof_with_rests(
    given: Module, partitioned: Module, alone: Callable[[Module], Modules], session: Session
) -> tuple[Proof | None, Amplified | None]:
    """A proof where numbers of both modules are what others of theirs leave of 1, but for those whose roundings do not
    stay roundings: a sign hangs on 0.9 and 0.1, and next to it 0.99 is beside 0.01."""
    but: list[str] = []
    amplifies: Amplified | None = None
    while (rests := with_rests(given, partitioned, but)) is not None:
        first, second = (reading.module for reading in rests)
        proof, far = first_proof(first, second, session) or _proof_on_each_device(first, second, session), None
        for paired, one, other in ((_as_they_are, first, second), (_turned, second, first)):
            looked_at = alone if paired is _as_they_are else lambda module: (module, partitioned)
            if proof is None:
                proof, far = _proof_of_a_reading(one, other, paired, looked_at, session, by_people=True)
        if proof is None:
            return None, amplifies or far
        pairs = ((first, partitioned), rests[0]), (alone(second), rests[1])
        far = next(filter(None, (amplified(*pair, reading.meant, session) for pair, reading in pairs)), None)
        if far is None:
            said = dict.fromkeys((*proof.report.assumptions, *rests[0].said, *rests[1].said))
            return replace(proof, report=replace(proof.report, assumptions=tuple(said))), None
        amplifies = amplifies or far
        if set(far.constants) <= set(but):
            break
        but += far.constants
    return None, amplifies


def _proof_on_each_device(logical: Module, partitioned: Module, session: Session) -> Proof | None:
    """The proof of what a person distributed, for each device by itself."""
    if not is_by_hand(partitioned):
        return None
    with session.on():
        apart = Apart(logical, partitioned, session, range(len(logical.result_names)))
        if not all(map(apart.proves, apart.left)):
            return None
        report = nothing(logical, device_count(logical, partitioned))
        results = (replace(result, verdict=Verdict.PROVED, by_device=True) for result in report.results)
        report = unless_effects_differ(replace(report, results=tuple(results)), logical, partitioned)
    return Proof(report, (logical, partitioned)) if report.verdict is Verdict.PROVED else None


def _as_they_are(first: Module, second: Module) -> Modules:
    return first, second


def _as_programs(module: Module) -> Modules:
    """What devices run, as the logical module of a pair."""
    return pair_of_programs(module, module, module.partitions or 1)


def _as_a_whole(module: Module) -> Modules:
    return pair_of_wholes(module, module)


def forms(first: Module, second: Module) -> Iterator[Modules]:
    """Two modules in forms that are easier to compare, the easiest first; and as they are."""
    wholes = rejoined(first), rejoined(second)
    if has_loops(first) and has_loops(second):
        yield slim(wholes[0]), slim(wholes[1])
    yield wholes
    if wholes[0] is not first or wholes[1] is not second:
        yield first, second


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
        proof, far = _proof_of_a_reading(given, annotated, pair_of_wholes, _as_a_whole, session)
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
