"""One thing that a command line asks to verify, decided by the same code in its own process and in a worker's."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlo_verify.diagnostics import Diagnostic, Input, Internal, Severity
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jobs import Job
from hlo_verify.limits import TIME_LIMIT, Effort
from hlo_verify.own_process import settle
from hlo_verify.render import Failure, Outcome

if TYPE_CHECKING:
    from hlo_verify.program.preconditions import Precondition
    from hlo_verify.report import ChainReport, Report

Progress = Callable[[int, int], None]
Verify = Callable[..., "Report"]

OFTEN = 0.2
"""Seconds between two words of a worker on how far it is."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How each is to be verified: what the command line and the project say that bears on it."""

    project: Path | None
    """Where pyproject.toml is looked for, which has the meanings of custom calls; None where there are none."""
    several: bool = False
    """Whether a name stands before each report, and one that fails keeps no other from being verified."""
    devices: int | None = None
    shardings: Path | None = None
    results: Path | None = None
    assume: tuple[Precondition, ...] = ()
    approximation: tuple[str, ...] = ()
    keep: Path | None = None
    witness: Path | None = None
    refute: bool = True
    recheck: bool = False
    jobs: int = 1
    """In how many processes a proof is checked a second time."""
    effort: Effort = "normal"
    time_limit: float | None = TIME_LIMIT


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker is given."""

    job: Job
    asking: Asking


def run(task: Task, tell: Callable[[tuple[int, int]], None]) -> Outcome:
    """What a worker does with it."""
    settle()
    last = 0.0

    def progress(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= OFTEN:
            last = time.monotonic()
            tell((done, total))

    with as_the_project_says(task.asking.project):
        return outcome_of(task.job, task.asking, None, progress)


def lost(job: Job, reason: str) -> Failure:
    """What is said of a job whose worker died."""
    said = (
        f"the process that verified it {reason}, and nothing was decided. Where memory is short, --jobs 1 takes the "
        "least; if it is not, this is a defect: please report it with the module"
    )
    return Failure(job.name, Diagnostic(Internal.DEFECT, Severity.ERROR, said))


def outcome_of(
    job: Job, asking: Asking, verify: Verify | None, progress: Progress, *, traceback: bool = False
) -> Outcome:
    """The report of one of several, or why there is none. With `traceback`, a defect of hlo-verify is raised."""
    try:
        return report_of(job, asking, verify, progress)
    except InputError as error:
        return Failure(job.name, error.diagnostic)
    except Exception as error:
        if traceback:
            raise
        from hlo_verify import defects

        return Failure(job.name, defects.diagnose(error))


def report_of(job: Job, asking: Asking, verify: Verify | None, progress: Progress) -> Report | ChainReport:
    """The report of a job. `verify` stands in for `hlo_verify.verify`. Raises `InputError` where it cannot be verified
    as it stands."""
    if job.chain is not None:
        return _passes_verified(job, asking, progress)
    if job.logical is None:
        raise InputError(job.problem, Input.NO_PAIR_IN_FOLDER)
    if verify is None:
        from hlo_verify import api

        verify = api.verify
    again: dict[str, Any] = {"recheck": True, "jobs": asking.jobs} if asking.recheck else {}
    report = verify(
        job.logical,
        job.partitioned,
        devices=asking.devices,
        shardings=asking.shardings,
        **_given(results=asking.results, annotated=job.annotated, assume=asking.assume or None),
        **_given(approximations=asking.approximation or None),
        keep=asking.keep,
        refute=asking.refute,
        witness=asking.witness,
        progress=progress,
        **again,
        **_limits(asking),
    )
    if isinstance(job.partitioned, Path) and report.verdict == "UNKNOWN":
        from hlo_verify.linter.hints import with_hints

        report = with_hints(report, job.partitioned)
    return replace(report, name=job.name) if asking.several else report


def _given(**options: Any) -> dict[str, Any]:
    """Options that there is something to say of."""
    return {name: value for name, value in options.items() if value is not None}


def _limits(asking: Asking) -> dict[str, Any]:
    """What a verification may take, where it is not as usual."""
    usual: dict[str, Any] = {"effort": "normal", "time_limit": TIME_LIMIT}
    asked = {"effort": asking.effort, "time_limit": asking.time_limit}
    return {name: value for name, value in asked.items() if value != usual[name]}


def _passes_verified(job: Job, asking: Asking, progress: Progress) -> ChainReport:
    from hlo_verify.passes.chain.each_pass import verify_passes
    from hlo_verify.sources.shardings_file import read_shardings

    files = (asking.shardings, asking.results)
    shardings = [None if file is None else read_shardings(file) for file in files]
    if asking.assume or any(each is not None and each.assumed for each in shardings):
        raise InputError("preconditions do not go with --each-pass", Input.USAGE)
    assert job.chain is not None
    options: dict[str, Any] = {"devices": asking.devices, "refute": asking.refute, "progress": progress}
    return verify_passes(job.chain, shardings=shardings, **options, **_limits(asking))


def as_the_project_says(start: Path | None) -> AbstractContextManager[None]:
    """With the meanings of custom calls that pyproject.toml has."""
    from hlo_verify.sources.project import read_custom_calls

    meanings = {} if start is None else read_custom_calls(start)
    if not meanings:
        return nullcontext()
    from hlo_verify.custom_calls import register_custom_call
    from hlo_verify.registered_calls import as_said
    from hlo_verify.session import Session

    session = Session()
    for target, meaning in meanings.items():
        try:
            if callable(meaning):
                register_custom_call(target, meaning, session=session)
            else:
                register_custom_call(target, trailing=meaning, session=session)
        except ValueError as error:
            raise InputError(f"pyproject.toml: custom-calls: {error}", Input.CUSTOM_CALL_MEANING) from error
    return as_said(session.custom_calls)
