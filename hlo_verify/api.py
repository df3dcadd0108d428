"""The Python API: `verify`, and what the command line does with folders. jaxlib is imported only by what needs it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hlo_verify.asked import Asked, Progress, as_written, between, in_two_steps, late, with_declared
from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.limits import TIME_LIMIT, Effort, Limits
from hlo_verify.passes.load import conversion
from hlo_verify.program import approximations as declarations
from hlo_verify.program import preconditions
from hlo_verify.program.approximations import Declared
from hlo_verify.program.depth import deeply
from hlo_verify.program.preconditions import Assumed
from hlo_verify.registered_calls import as_said
from hlo_verify.report import Verdict
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
from hlo_verify.tracebacks import told_at_the_call
from hlo_verify.xla.partition import Partitioned, partition

if TYPE_CHECKING:
    from hlo_verify.passes.chain.between import Question
    from hlo_verify.program.ir import Module
    from hlo_verify.report import Report
    from hlo_verify.shown import Report as Shown


@told_at_the_call
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
    approximations: Declared | None = None,
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

    `approximations` says which values of `partitioned` stand for which of `logical`, though they are others:
    `{"batch_stats/mean": "stats/mean"}`, by named scopes or source lines. What is around them is compared, for all
    values that they may have; see docs/decisions/approximations.md.

    `limits` is what it may take, counted in steps: those of an `effort` ("low", "normal" or "high") unless it is given.
    After `time_limit` seconds (0 or None for no limit) it ends with what is known by then. A result that is not proved
    says in `Result.spent` which limits it ran into.

    `session` has what was said of custom calls for some verifications alone; several threads may verify with one.

    Raises `InputError` for input that cannot be verified as it stands. What cannot be proved is no error: see
    `Report.verdict`.
    """
    check_options(
        progress,
        keep=keep,
        witness=witness,
        shardings=shardings,
        results=results,
        devices=devices,
        limits=limits,
        session=session,
    )
    given = shardings_file.read_shardings(shardings) if isinstance(shardings, str | Path) else shardings
    asked = Asked(
        refute,
        None if witness is None else Path(witness),
        jobs if recheck else 0,
        Session.begin(limits or Limits.of(effort), time_limit or None, session),
        (*preconditions.read(assume), *(given.assumed if given is not None else ())),
        declarations.read(approximations),
    )
    if asked.declared and (partitioned is None or annotated is not None):
        raise InputError("approximations go with a logical and a partitioned module", Input.USAGE)
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


OPTIONS: dict[str, tuple[tuple[type, ...], str]] = {
    "keep": ((str, Path), "the path of a folder"),
    "witness": ((str, Path), "the path of a file"),
    "shardings": ((str, Path, shardings_file.Shardings), "the path of a file, or what was read of one"),
    "results": ((str, Path), "the path of a file"),
    "devices": ((int,), "a number of devices"),
    "limits": ((Limits,), "a hlo_verify.limits.Limits"),
    "session": ((Session,), "a hlo_verify.Session"),
}
"""Of what types options are, and how that is said."""


def check_options(progress: object, **given: object) -> None:
    """Raise `InputError` for what cannot be what it is given as."""
    for name, value in given.items():
        types, what = OPTIONS[name]
        if not (value is None or (isinstance(value, types) and not isinstance(value, bool))):
            raise InputError(f"{name} is {what}, not {value!r}", Input.USAGE)
    if not (progress is None or callable(progress)):
        raise InputError(f"progress is a function of what is done and of all there is, not {progress!r}", Input.USAGE)


@told_at_the_call
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
    asked: Asked,
    progress: Progress | None,
) -> Report:
    if not isinstance(partitioned, list | tuple):
        logical, partitioned = with_all_arguments(logical, partitioned)
    whole = module_of(logical, devices)
    parts = program_of_ranks(partitioned) if isinstance(partitioned, list | tuple) else module_of(partitioned, devices)
    for shardings in given:
        whole = whole if shardings is None else shardings.apply(whole)
    whole, parts, told = with_declared(whole, parts, asked)
    whole = preconditions.apply(whole, asked.assume)

    def contents(question: Question) -> tuple[bytes, bytes]:
        if isinstance(partitioned, list | tuple) or question.partitioned is not parts:  # there are no such files
            return question.given.bytecode(), question.partitioned.bytecode()
        return contents_of(logical), contents_of(partitioned)

    return replace(between(whole, annotated, parts, asked, contents, progress), approximations=told)


@deeply
def approximates(
    reference: Source,
    whole: Source,
    approximations: Declared,
    *,
    assume: Assumed | None = None,
    devices: int | None = None,
    effort: Effort = "normal",
    time_limit: float | None = TIME_LIMIT,
) -> tuple[Shown, Module]:
    """Whether a module that nobody partitioned computes what a reference does, but for what is declared. With that
    module, under what is assumed of its arguments."""
    session = Session.begin(Limits.of(effort), time_limit or None, None)
    asked = Asked(True, None, 0, session, preconditions.read(assume), declarations.read(approximations))
    with as_said(session.custom_calls), conversion.until(session.deadline):
        report, module = as_written(module_of(reference, None), module_of(whole, devices), asked, None)
        return shown(report), module


def _verify_one(
    source: Source,
    devices: int | None,
    given: shardings_file.Shardings | None,
    keep: str | Path | None,
    asked: Asked,
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
        first = None
        if asked.declared and reference is not None:
            first, whole = as_written(reference, whole, asked, progress)
            if first.verdict is not Verdict.PROVED:
                return first
            reference = None
        else:
            whole, reference = preconditions.of_both(asked.assume, whole, reference)
        try:
            made = job.wait(partial(_waiting, asked.session, progress))
        except TimeUpError:
            nothing = late(whole, whole.partitions or 1, asked.session)
            return nothing if first is None else in_two_steps(first, nothing)
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
    report = between(whole, annotated, parts, asked, lambda _: files, progress, reference)
    if left:
        assumption = f"arguments that XLA left without a sharding are replicated, as it takes them: {', '.join(left)}"
        report = replace(report, assumptions=(*report.assumptions, assumption))
    return report if first is None else in_two_steps(first, report)


def _waiting(session: Session, progress: Progress | None) -> None:
    """What is done some times a second while XLA works."""
    session.check()
    if progress is not None:
        progress(0, 0)


def _keep(given: bytes, made: Partitioned, folder: Path) -> None:
    """Leave behind a module as it was given, annotated and partitioned."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "logical.mlir").write_bytes(given)
        shutil.copyfile(made.annotated, folder / "annotated.hlo")
        shutil.copyfile(made.partitioned, folder / "partitioned.hlo")
    except OSError as error:
        raise InputError(f"cannot keep the modules in {folder}: {error.strerror}", Input.UNWRITABLE) from error
