"""What the command line does once its arguments are known to ask for a comparison.

Everything slow is imported after they are understood, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hlo_verify.cli import Verify
from hlo_verify.diagnostics import CODES, Input, Internal, near
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jobs import Job, find_chain_jobs, find_jobs
from hlo_verify.limits import TIME_LIMIT
from hlo_verify.options import (
    INPUT_ERROR,
    INTERNAL_ERROR,
    INTERRUPTED,
    OF_PAIRS,
    PROVED,
    REFUTED,
    UNKNOWN,
    check_each_pass,
    check_watch,
    make_parser,
)
from hlo_verify.render.output import check_outputs, is_terminal
from hlo_verify.tasks import Asking, as_the_project_says, outcome_of, report_of

if TYPE_CHECKING:
    from hlo_verify.in_parallel import Starts
    from hlo_verify.kept import Kept
    from hlo_verify.render import Outcome
    from hlo_verify.render.formats import Printing
    from hlo_verify.report import Report


def export(argv: Sequence[str], verify: Verify | None) -> int:
    """`hlo-verify export`, which takes arguments of its own."""
    from hlo_verify import api
    from hlo_verify.export import cli as export

    with as_the_project_says(Path.cwd()):
        return export.main(argv, verify or api.verify)


def compare(argv: Sequence[str], verify: Verify | None) -> int:
    """`hlo-verify` with modules, folders, a witness or a code."""
    parser = make_parser()
    arguments = parser.parse_args(argv)
    arguments.given = argv
    if not arguments.paths and arguments.explain is None and arguments.replay is None:
        parser.error("the following arguments are required: PATH")
    return _run(arguments, verify) if arguments.explain is None else _explain(arguments)


def _explain(arguments: argparse.Namespace) -> int:
    """Print what a code means. Raises `InputError` for one that there is not."""
    from hlo_verify.render.codes import explanation
    from hlo_verify.render.output import use_color, write

    code = CODES.get(arguments.explain.strip().upper())
    if code is None:
        alike = near(arguments.explain)
        hint = f"did you mean {' or '.join(alike)}?" if alike else "docs/codes.md lists them"
        raise InputError(f"there is no code {arguments.explain!r}; {hint}", Input.USAGE)
    try:
        _set_defaults(arguments)
    except InputError:  # a broken pyproject.toml is no reason to explain nothing
        arguments.color = arguments.color or "auto"
    write(explanation(code, color=use_color(arguments.color, arguments.output)), arguments.output)
    return PROVED


def _run(arguments: argparse.Namespace, verify: Verify | None) -> int:
    if arguments.issue is not None:
        arguments.format = arguments.format or "markdown"
    _set_defaults(arguments)
    if arguments.issue is not None and arguments.approximation:
        raise InputError("--issue goes with no --approximation: what was meant is no bug of a compiler", Input.USAGE)
    if arguments.issue is not None and arguments.format != "markdown":
        raise InputError("--issue is written as Markdown; it goes with no other --format", Input.USAGE)
    if len(arguments.paths) > 2 and arguments.replay is not None:
        raise InputError("--replay goes with a logical and a partitioned module at most", Input.USAGE)
    written = (arguments.output, arguments.witness, *(path for _, path in arguments.report))
    read = (*arguments.paths, arguments.replay, arguments.shardings, arguments.results)
    check_outputs(written, read)
    several = len(arguments.paths) < 3 and arguments.replay is None and any(map(os.path.isdir, arguments.paths))
    if arguments.each_pass:
        check_each_pass(arguments)
    for option, what in OF_PAIRS.items():
        if several and getattr(arguments, option):
            raise InputError(f"--{option} goes with {what}", Input.USAGE)
    if arguments.ray is not None and (not several or arguments.watch):
        raise InputError("--ray goes with a folder, or two, whose modules are verified at a time", Input.USAGE)
    if arguments.quiet and arguments.verbose:
        raise InputError("--quiet and --verbose say the opposite", Input.USAGE)
    if arguments.watch:
        check_watch(arguments)
    with as_the_project_says(Path.cwd()):
        if arguments.watch:
            return _watch(arguments, verify)
        try:
            return _answer(arguments, verify, several)
        except InputError as error:
            from hlo_verify.render.failed import told

            raise told(error, _printing(arguments, several), arguments.output) from error


def _answer(arguments: argparse.Namespace, verify: Verify | None, several: bool) -> int:
    if arguments.replay is not None:
        return _finish([_replay(arguments)], arguments, several)
    jobs = find_chain_jobs(arguments.paths[0]) if arguments.each_pass else find_jobs(arguments.paths)
    outcomes: list[Outcome] = []
    try:
        for outcome in _verify_all(jobs, arguments, verify, several):
            outcomes.append(outcome)  # one by one: an interruption keeps them
    except KeyboardInterrupt:
        if not outcomes:
            raise
        _finish(outcomes, arguments, several)
        print(f"hlo-verify: interrupted after {len(outcomes)} of {len(jobs)} modules", file=sys.stderr)
        return INTERRUPTED
    return _finish(outcomes, arguments, several)


def _watch(arguments: argparse.Namespace, verify: Verify | None) -> int:
    from hlo_verify.render.characters import one_line
    from hlo_verify.watching import Appeared, watch

    printing, jobs = _printing(arguments, several=True), {}
    shows = arguments.format == "text" and arguments.output is None

    def find() -> list[Appeared]:
        try:
            jobs.update({job.name: job for job in find_jobs(arguments.paths)})
        except InputError:  # there is no pair yet
            return []
        return [Appeared(name, job.files) for name, job in jobs.items()]

    def decide(each: Appeared, waiting: int) -> Outcome:
        (outcome,) = _verify_all([jobs[each.name]], arguments, verify, True, waiting)
        return outcome

    def show(outcome: Outcome) -> None:
        if shows:
            printing.show(outcome)

    print(f"hlo-verify: watching {one_line(str(arguments.paths[0]))} (ctrl-C ends)", file=sys.stderr)
    watched = watch(find, decide, show)
    if is_terminal(sys.stderr):
        print(file=sys.stderr)  # the terminal has written ^C
    outcomes = list(watched.outcomes.values())
    for name in watched.left:
        print(f"hlo-verify: {one_line(name)} was not verified", file=sys.stderr)
    if shows:
        printing = replace(printing, style=replace(printing.style, quiet=True))
    _write(printing, outcomes, arguments)
    status = exit_status(outcomes)
    return UNKNOWN if watched.left and status == PROVED else status


def _printing(arguments: argparse.Namespace, several: bool) -> Printing:
    from hlo_verify.render.formats import Printing
    from hlo_verify.render.output import use_color, width
    from hlo_verify.render.text import Style

    color = use_color(arguments.color, arguments.output)
    return Printing(
        Style(bool(arguments.verbose), color, arguments.frames == "all", arguments.quiet, width(arguments.output)),
        several,
        arguments.junit_unknown,
        arguments.issue,
        arguments.given,
        arguments.paths,
        arguments.witness or arguments.replay,
    )


def _finish(outcomes: Sequence[Outcome], arguments: argparse.Namespace, several: bool) -> int:
    _write(_printing(arguments, several), outcomes, arguments)
    return exit_status(outcomes)


def _write(printing: Printing, outcomes: Sequence[Outcome], arguments: argparse.Namespace) -> None:
    printing.write(outcomes, arguments.format, arguments.output, arguments.report)
    if arguments.open:
        from hlo_verify.render.browser import show

        show(printing.rendered(outcomes, "html"))


def _replay(arguments: argparse.Namespace) -> Report:
    from hlo_verify import api

    ignored = [
        option
        for option in ("shardings", "results", "keep", "witness", "recheck", "assume", "approximation")
        if getattr(arguments, option)
    ]
    if ignored:
        raise InputError(f"--{ignored[0]} does not go with --replay, which runs what was saved", Input.USAGE)
    if len(arguments.paths) == 1:
        raise InputError(
            "--replay takes no modules (its own are meant), or a logical and a partitioned one", Input.USAGE
        )
    return api.replay(arguments.replay, *arguments.paths, devices=arguments.devices)


def _set_defaults(arguments: argparse.Namespace) -> None:
    from hlo_verify.sources.project import read_defaults

    built_in = {
        "cache": False,
        "color": "auto",
        "devices": None,
        "effort": "normal",
        "format": "text",
        "junit-unknown": "failure",
        "progress": True,
        "refute": True,
        "time-limit": TIME_LIMIT,
        "verbose": False,
    }
    for key, value in (built_in | read_defaults(Path.cwd())).items():
        name = key.replace("-", "_")
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)


def _verify_all(
    jobs: Sequence[Job], arguments: argparse.Namespace, verify: Verify | None, several: bool, waiting: int = 0
) -> Iterator[Outcome]:
    """The outcome of each job: one that was kept, or what is decided now. Where there are several, one that fails does
    not keep the others from being verified. `waiting` is how many more there are than these."""
    asking = _asking(arguments, several)
    kept = _kept(arguments, asking)
    known = {} if kept is None else {n: found for n, job in enumerate(jobs) if (found := kept.find(job)) is not None}
    open_ = [n for n in range(len(jobs)) if n not in known]
    try:
        for number, found in _decided([jobs[n] for n in open_], asking, arguments, verify, waiting):
            if kept is not None:
                kept.keep(jobs[open_[number]], found)
            yield from (known.pop(n) for n in sorted(known) if n < open_[number])
            yield found
    except KeyboardInterrupt:
        yield from (known[n] for n in sorted(known))
        raise
    yield from (known[n] for n in sorted(known))


def _decided(
    jobs: Sequence[Job], asking: Asking, arguments: argparse.Namespace, verify: Verify | None, waiting: int
) -> Iterator[tuple[int, Outcome]]:
    """The number and the outcome of each job that is decided now, in their order."""
    from hlo_verify.render.progress import Bar
    from hlo_verify.report import ChainReport

    count = min(asking.jobs, len(jobs))
    start: Starts | None = None
    if arguments.ray is not None:
        from hlo_verify.cluster import on_cluster

        start = on_cluster(arguments.ray, arguments.jobs)
    with Bar(arguments.progress and is_terminal(sys.stderr)) as bar:
        if jobs and verify is None and not arguments.traceback and (count > 1 or start is not None):
            from hlo_verify.in_parallel import in_parallel, processes

            yield from in_parallel(jobs, asking, count, bar, start or processes)
            return
        decided = partial(outcome_of, traceback=arguments.traceback) if asking.several else report_of
        for number, job in enumerate(jobs):
            bar.works_on(Path(job.name).name, len(jobs) - 1 - number + waiting)
            found = decided(job, asking, verify, bar)
            yield number, found
            if isinstance(found, ChainReport) and found.missing:
                raise KeyboardInterrupt


def _kept(arguments: argparse.Namespace, asking: Asking) -> Kept | None:
    """The verdicts of earlier runs, where the user or the project wants these."""
    if not arguments.cache:
        return None
    from hlo_verify.cache.store import named, usual
    from hlo_verify.kept import Kept

    store = usual() if arguments.cache is True else named(Path(arguments.cache))
    return None if store is None else Kept(store, asking)


def _asking(arguments: argparse.Namespace, several: bool) -> Asking:
    """How jobs are verified. Raises `InputError` for a precondition that cannot be read."""
    from hlo_verify.in_parallel import cores
    from hlo_verify.program import preconditions
    from hlo_verify.sources.project import read_assumed

    here = Path.cwd()
    return Asking(
        project=here,
        several=several,
        devices=arguments.devices,
        shardings=arguments.shardings,
        results=arguments.results,
        assume=(*preconditions.read(arguments.assume), *read_assumed(here)),
        approximation=tuple(arguments.approximation or ()),
        keep=arguments.keep,
        witness=arguments.witness,
        refute=arguments.refute,
        recheck=arguments.recheck,
        jobs=arguments.jobs or cores(),
        effort=arguments.effort,
        time_limit=arguments.time_limit or None,
    )


def exit_status(outcomes: Sequence[Outcome]) -> int:
    """The worst: a refutation, then broken input, then a defect of ours, then what is unknown."""
    from hlo_verify.render import Failure, disagrees, overall
    from hlo_verify.report import ChainReport, Report, Verdict

    failures = {outcome.internal for outcome in outcomes if isinstance(outcome, Failure)}
    failures |= {True for outcome in outcomes if isinstance(outcome, Report) and disagrees(outcome)}
    steps = (step for outcome in outcomes if isinstance(outcome, ChainReport) for step in outcome.steps)
    failures |= {True for step in steps if isinstance(CODES.get(step.code), Internal)}
    verdict = overall(outcomes)
    if verdict is Verdict.REFUTED:
        return REFUTED
    if failures:
        return INPUT_ERROR if False in failures else INTERNAL_ERROR
    return PROVED if verdict is Verdict.PROVED else UNKNOWN
