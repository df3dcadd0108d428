"""The Python API: `verify`, and what the command line does with folders. jaxlib is imported only by what needs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hlo_verify import custom_calls
from hlo_verify.diagnostics import Annotation, Input, Internal
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.limits import TIME_LIMIT, Effort, Limits
from hlo_verify.passes.load import conversion
from hlo_verify.program import preconditions
from hlo_verify.program.depth import deeply
from hlo_verify.program.preconditions import Assumed, said
from hlo_verify.registered_calls import as_said
from hlo_verify.report import Result, Verdict
from hlo_verify.session import Session, TimeUpError
from hlo_verify.shown import shown
from hlo_verify.sources import shardings_file
from hlo_verify.sources.modules import (
    Source,
    contents_of,
    demanded_of_results,
    given_as,
    module_of,
    program_of_ranks,
    with_all_arguments,
)
from hlo_verify.xla.partition import Partitioned, partition

if TYPE_CHECKING:
    from hlo_verify.passes.chain.between import Question
    from hlo_verify.passes.place.inferred import Inferred
    from hlo_verify.program.ir import Module
    from hlo_verify.report import Report
    from hlo_verify.shown import Report as Shown


Progress = Callable[[int, int], None]


@deeply
def verify(
    logical: Source,
    partitioned: Source | list[Source] | tuple[Source, ...] | None = None,
    *,
    annotated: Source | None = None,
    partition: bool = False,
    devices: int | None = None,
    shardings: str | Path | shardings_file.Shardings | None = None,
    results: str | Path | None = None,
    keep: str | Path | None = None,
    refute: bool = True,
    witness: str | Path | None = None,
    progress: Progress | None = None,
    recheck: bool = False,
    jobs: int = 1,
    assume: Assumed | None = None,
    limits: Limits | None = None,
    effort: Effort = "normal",
    time_limit: float | None = TIME_LIMIT,
    session: Session | None = None,
) -> Shown:
    """Prove that `partitioned` computes what `logical` does, on every device, for all inputs, or that it does not.

    A module is a path (a `str` of one line, or a `Path`), the contents of a file (`str` or `bytes`), a lowered or
    traced JAX function, or an `ir.Module`. Without `partitioned`, `logical` carries shardings, and the XLA in jaxlib
    partitions it; `keep` then names a folder for the module as it was given, as XLA annotated it and as XLA partitioned
    it (`logical`, `annotated`, `partitioned`). Where every rank has a graph of its own, `partitioned` is a list of
    them, in the order of the ranks.

    Of a pair, `annotated` may be what the compiler's passes had made of `logical` when the partitioner was given it. It
    helps the proof, and says where lies what `logical` leaves open; the verdict is about `logical` all the same.

    With `partition`, `partitioned` carries shardings too: XLA partitions it, and what it makes of it is compared with
    `logical`, placed as that module says.

    Arguments and results that neither module has a sharding for are placed by position and shape, as far as the proof
    goes through; `Report.inferred` says how.

    `devices` is the number of devices where no module says it; `shardings` a shardings file for the arguments and
    results of the logical module (docs/shardings.md), `results` one for results alone, which are demanded to lie so
    where they would be inferred. `progress` is called with (done, total), and with (0, 0) while XLA works.

    Where a result is not proved, inputs are searched for that make it differ, unless `refute` is false; `witness` is a
    file to save them to, for `replay`.

    With `recheck`, every step of a proof is checked a second time by a solver, in `jobs` worker processes; see
    `Report.recheck`. A verdict does not depend on it.

    `assume` says of which values the elements of arguments are, by their names, paths or patterns: `{"tokens": (0,
    32000), "weights/*": "positive"}`. The question is about such inputs alone; see docs/decisions/preconditions.md.

    `limits` is what it may take, counted in steps: those of an `effort` ("low", "normal" or "high") unless it is given.
    After `time_limit` seconds (None for no limit) it ends with what is known by then. A result that is not proved says
    in `Result.spent` which limits it ran into.

    `session` has what was said of custom calls for some verifications alone; several threads may verify with one.

    Raises `InputError` for input that cannot be verified as it stands. What cannot be proved is no error: see
    `Report.verdict`.
    """
    given = shardings_file.read_shardings(shardings) if isinstance(shardings, str | Path) else shardings
    asked = _Asked(
        refute,
        None if witness is None else Path(witness),
        jobs if recheck else 0,
        Session.begin(limits or Limits.of(effort), time_limit, session),
        (*preconditions.read(assume or ()), *(given.assumed if given is not None else ())),
    )
    with as_said(asked.session.custom_calls), conversion.until(asked.session.deadline):
        if partitioned is None:
            if results is not None:
                raise InputError("results goes with a pair; of one module, shardings says it all", Input.USAGE)
            if annotated is not None:
                raise InputError("annotated goes with a pair; of one module, XLA makes it", Input.USAGE)
            return shown(_verify_one(logical, devices, given, keep, asked, progress))
        if partition:
            if results is not None or annotated is not None or isinstance(partitioned, list | tuple):
                raise InputError("partition goes with two modules alone; XLA makes all that is between", Input.USAGE)
            logical, partitioned = with_all_arguments(logical, partitioned)
            return shown(_verify_one(partitioned, devices, given, keep, asked, progress, logical))
        if keep is not None:
            raise InputError("keep goes with one module that XLA is to partition; a pair is there already", Input.USAGE)
        between = None if annotated is None else module_of(annotated, devices)
        demands = given, demanded_of_results(results)
        return shown(_verify_pair(logical, partitioned, between, devices, demands, asked, progress))


@deeply
def replay(
    witness: str | Path, logical: Source | None = None, partitioned: Source | None = None, *, devices: int | None = None
) -> Shown:
    """Run a witness that `verify` saved: a result for each that it refutes, REFUTED where it still differs.

    Without modules it is run on those it was found for, else on these: to see whether a repair helps. Nothing is proved
    here, so a result that does not differ is UNKNOWN. Raises `InputError` for what is no witness, or none of these
    modules.
    """
    from hlo_verify.passes.refute import witness_file as files
    from hlo_verify.passes.refute.refute import again

    saved = files.read(Path(witness))
    whole = module_of(saved.logical if logical is None else logical, devices or saved.devices)
    parts = module_of(saved.partitioned if partitioned is None else partitioned, devices or saved.devices)
    if any(n >= len(whole.result_types) for n, *_ in saved.points):
        raise InputError("the witness is for more results than the logical module has", Input.NOT_A_PAIR)
    return shown(again(saved, whole, parts))


def _verify_pair(
    logical: Source,
    partitioned: Source | list[Source] | tuple[Source, ...],
    annotated: Module | None,
    devices: int | None,
    given: Sequence[shardings_file.Shardings | None],
    asked: _Asked,
    progress: Progress | None,
) -> Report:
    if not isinstance(partitioned, list | tuple):
        logical, partitioned = with_all_arguments(logical, partitioned)
    whole = module_of(logical, devices)
    parts = program_of_ranks(partitioned) if isinstance(partitioned, list | tuple) else module_of(partitioned, devices)
    for shardings in given:
        whole = whole if shardings is None else shardings.apply(whole)
    whole = preconditions.apply(whole, asked.assume)

    def contents(question: Question) -> tuple[bytes, bytes]:
        if isinstance(partitioned, list | tuple) or question.partitioned is not parts:  # there are no such files
            return question.given.bytecode(), question.partitioned.bytecode()
        return contents_of(logical), contents_of(partitioned)

    return _between(whole, annotated, parts, asked, contents, progress)


def _verify_one(
    source: Source,
    devices: int | None,
    given: shardings_file.Shardings | None,
    keep: str | Path | None,
    asked: _Asked,
    progress: Progress | None,
    against: Source | None = None,
) -> Report:
    """Partition one module, and decide whether what comes of it computes what the module says, or another one does."""
    contents = given_as(source)
    conversion.start()
    asked.session.phase = "XLA partitioned the module"
    with partition(contents, devices=devices, shardings=given) as job:
        from hlo_verify.passes.load.load import load  # takes a second, and XLA works meanwhile
        from hlo_verify.passes.read.decompositions import lacking
        from hlo_verify.xla.already import check_not_partitioned

        try:
            whole = load(contents, devices=devices)
            reference = None if against is None else module_of(against, None)
        except InputError:
            job.wait()  # the child says the same in more detail
            raise
        check_not_partitioned(whole, str(contents) if isinstance(contents, Path) else "the module")
        whole, reference = preconditions.of_both(asked.assume, whole, reference)
        try:
            made = job.wait(partial(_waiting, asked.session, progress))
        except TimeUpError:
            return _late(whole, whole.partitions or 1, asked.session)
        files = (contents_of(contents if against is None else against), made.partitioned.read_bytes())
        if keep is not None:
            _keep(files[0], made, Path(keep))
        annotated, parts = load(made.annotated), load(made.partitioned)
        left_out = lacking(whole, annotated)
        if left_out:
            whole = load(contents, devices=devices, written_out=left_out)
    whole = whole if given is None else given.apply(whole)
    from hlo_verify.xla.left_open import completed

    annotated, left = completed(annotated, parts)
    report = _between(whole, annotated, parts, asked, lambda _: files, progress, reference)
    if left:
        assumption = f"arguments that XLA left without a sharding are replicated, as it takes them: {', '.join(left)}"
        report = replace(report, assumptions=(*report.assumptions, assumption))
    return report


def _waiting(session: Session, progress: Progress | None) -> None:
    """What is done some times a second while XLA works."""
    session.check()
    if progress is not None:
        progress(0, 0)


def _late(logical: Module, devices: int, session: Session) -> Report:
    """The report where the time is up before anything is known of a pair."""
    from hlo_verify.passes.prove.prove import nothing, out_of_time

    return replace(out_of_time(nothing(logical, devices), session), preconditions=said(logical))


@dataclass(frozen=True, slots=True)
class _Asked:
    """Whether to look for witnesses, and where to save one; in how many processes to check proofs a second time; the
    session of all of it; and under which preconditions."""

    refute: bool
    witness: Path | None
    jobs: int
    session: Session
    assume: tuple[preconditions.Precondition, ...] = ()
    """What is said of the values of arguments."""

    def __post_init__(self) -> None:
        if self.witness is not None and not self.refute:
            raise InputError("a witness is found by refuting: give witness without refute=False", Input.USAGE)
        if self.witness is not None and not os.path.isdir(self.witness.absolute().parent):
            raise InputError(f"cannot write {self.witness}: there is no such folder", Input.UNWRITABLE)


def _between(
    whole: Module,
    annotated: Module | None,
    parts: Module,
    asked: _Asked,
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
        return _late(whole, device_count(whole, parts), asked.session)
    is_same = inferred.partitioned is parts
    helping = demand.placed_like(inferred.logical) if annotated is not None and is_same else None
    question = Question(inferred.logical, inferred.partitioned, helping, reference is not None)
    asked = replace(asked, refute=False, witness=None) if demand.missed else asked
    report = _decide(question, inferred, asked, lambda: contents(question), progress)
    told = (*report.assumptions, *preconditions.hardly_used(given) * (report.verdict is Verdict.UNKNOWN))
    report = replace(report, left_open=demand.left, preconditions=said(given), assumptions=told)
    return replace(report, results=tuple(_missed(result, demand.missed) for result in report.results))


def _missed(result: Result, missed: Mapping[int, str]) -> Result:
    """The verdict for a result that cannot lie where it has to: whatever was found is not about that."""
    reason = missed.get(result.index)
    if reason is None:
        return result
    return Result(result.index, result.name, Verdict.UNKNOWN, reason, code=Annotation.WRONG_SHARD)


def _decide(
    question: Question,
    inferred: Inferred,
    asked: _Asked,
    contents: Callable[[], tuple[bytes, bytes]],
    progress: Progress | None,
) -> Report:
    from hlo_verify.passes.chain.between import answer

    session = asked.session
    if asked.refute:
        report, rests_on = _refuted(question, inferred, asked.witness, contents, progress, session)
    else:
        answered = answer(question, progress=progress, session=session)
        report, rests_on = inferred.judged(answered.examination.report), answered.rests_on
    report = session.account(report)
    if asked.jobs and report.verdict is Verdict.PROVED:
        report = _rechecked(report, rests_on, asked.jobs, session, progress)
    modules = [module for module in (question.given, question.annotated, question.partitioned) if module is not None]
    notes = (note for module in modules for note in module.notes)
    said = dict.fromkeys((*notes, *custom_calls.assumptions(modules)))
    unsupported = tuple(custom_calls.with_remedy(each, modules) for each in report.unsupported)
    return replace(report, unsupported=unsupported, assumptions=(*report.assumptions, *said))


def _refuted(
    question: Question,
    inferred: Inferred,
    witness: Path | None,
    contents: Callable[[], tuple[bytes, bytes]],
    progress: Progress | None,
    session: Session,
) -> tuple[Report, Sequence[tuple[Module, Module]]]:
    """The proof and the pairs that it rests on, or the refutation of what is not proved."""
    from hlo_verify.passes.chain.between import answer
    from hlo_verify.passes.chain.precondition_search import suggested
    from hlo_verify.passes.refute.refute import refuter, save

    with refuter(question.given, question.partitioned, session) as refutes:
        answered = answer(question, progress=progress, differing=refutes.differing, session=session)
        examination = answered.examination
        if examination.report.verdict is Verdict.PROVED:
            return inferred.judged(examination.report), answered.rests_on
        try:
            refutation = refutes.refute(examination)
        except KeyboardInterrupt:
            return inferred.judged(_interrupted(examination.report)), ()
    report = inferred.judged(refutation.report, refutation.counterexamples, session)
    refuted = {result.index for result in report.results if result.verdict is Verdict.REFUTED}
    kept = [found for found in refutation.counterexamples if refuted & found.differences.keys()]
    if witness is not None and kept:
        save(witness, kept[0], *contents())
    return replace(report, suggestion=suggested(question, report, kept, session)), ()


def _interrupted(report: Report) -> Report:
    """What was known of results when somebody had waited long enough for witnesses."""
    left = "; interrupted while inputs were searched for that make it differ"
    results = (r if r.verdict is Verdict.PROVED else replace(r, reason=r.reason + left) for r in report.results)
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


def _keep(given: bytes, made: Partitioned, folder: Path) -> None:
    """Leave behind a module as it was given, annotated and partitioned."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "logical.mlir").write_bytes(given)
        shutil.copyfile(made.annotated, folder / "annotated.hlo")
        shutil.copyfile(made.partitioned, folder / "partitioned.hlo")
    except OSError as error:
        raise InputError(f"cannot keep the modules in {folder}: {error.strerror}", Input.UNWRITABLE) from error
