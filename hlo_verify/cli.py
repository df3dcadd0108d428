"""The command line: `hlo-verify MODULE`, `hlo-verify LOGICAL PARTITIONED ...`, `hlo-verify DUMP_DIR`.

Everything slow is imported after the arguments are understood, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hlo_verify.diagnostics import CODES, Diagnostic, Input, Internal, near
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.limits import EFFORTS, TIME_LIMIT

if TYPE_CHECKING:
    from hlo_verify.render import Outcome
    from hlo_verify.render.progress import Bar
    from hlo_verify.report import ChainReport, Report
    from hlo_verify.sources.dump_chains import Chain

PROVED, REFUTED, INPUT_ERROR, UNKNOWN, INTERNAL_ERROR, INTERRUPTED = 0, 1, 2, 3, 70, 130

Verify = Callable[..., "Report"]

_EPILOG = """\
exit status:
  0   PROVED   every result is proved
  1   REFUTED  some result is shown to differ
  2            usage or input error
  3   UNKNOWN  neither; the report says where and why
  70           internal error of hlo-verify: nothing was decided, or --recheck disagrees with the proof
  130          interrupted; what was known is printed
  Of several modules, the first that applies of 1, 2, 70, 3, 0.

Defaults for --color, --devices, --effort, --format, --progress, --time-limit and --verbose may stand in pyproject.toml
under [tool.hlo-verify].
Meanings of custom calls stand there too, under [tool.hlo-verify.custom-calls].
"""


@dataclass(frozen=True, slots=True)
class Job:
    """One thing to verify. `partitioned` is None where XLA is to partition, and several paths where every rank has a
    graph of its own; `problem` is why it cannot be verified."""

    name: str
    logical: Path | None = None
    partitioned: Path | tuple[Path, ...] | None = None
    problem: str = ""
    annotated: Path | None = None
    """What the partitioner was given, where `logical` is earlier."""
    chain: Chain | None = None
    """What is verified pass by pass, instead of all these."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(_complain(InputError(message, Input.USAGE).diagnostic, INPUT_ERROR))


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import version

        from hlo_verify import __version__

        print(f"hlo-verify {__version__} (jaxlib {version('jaxlib')}, Python {sys.version.split()[0]})")
        parser.exit(PROVED)


def make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="hlo-verify",
        usage="hlo-verify [options] MODULE | LOGICAL PARTITIONED | LOGICAL RANK0 RANK1 ... | DUMP_DIR | DIR DIR\n"
        "       hlo-verify --each-pass DUMP_DIR\n"
        "       hlo-verify --replay FILE [LOGICAL PARTITIONED]\n       hlo-verify --explain CODE",
        description="Prove that a module partitioned for many devices computes what the whole module computes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "paths",
        nargs="*",
        metavar="PATH",
        type=Path,
        help="one module with shardings, which the XLA in jaxlib partitions; or a logical and a partitioned module; or "
        "a logical module and the graph of each rank; or a folder that XLA wrote for --xla_dump_to; or two folders of "
        "graphs (a neuron-compile-cache), which are paired by their arguments and results. Modules are "
        "StableHLO text or bytecode, portable or jax.export artifacts, HLO text or serialized HloModuleProtos, plain "
        "or gzipped",
    )
    add("--format", choices=("text", "json"), help="how to print the report (default: text)")
    add("-o", "--output", type=Path, metavar="FILE", help="write the report to FILE instead of standard output")
    add("-v", "--verbose", action="store_true", default=None, help="show every result, the stages and their lineage")
    add("--devices", type=_positive, metavar="N", help="number of devices, where no module says it")
    add("--shardings", type=Path, metavar="FILE", help="shardings of the (logical) module's arguments and results")
    add("--results", type=Path, metavar="FILE", help="shardings that results must have, where they would be inferred")
    add("--each-pass", action="store_true", help="verify a folder of dumps pass by pass (--xla_dump_hlo_pass_re=.*)")
    add("--keep", type=Path, metavar="DIR", help="keep the two modules that a single MODULE was partitioned into")
    add(
        "--refute",
        action=argparse.BooleanOptionalAction,
        help="look for inputs that make a result differ (default: yes)",
    )
    add("--witness", type=Path, metavar="FILE", help="save such inputs, with the modules, to FILE")
    add("--replay", type=Path, metavar="FILE", help="run a saved witness, on its own modules or on LOGICAL PARTITIONED")
    add("--recheck", action="store_true", help="check every step of a proof a second time, with the Z3 solver")
    add("--jobs", type=_positive, metavar="N", default=1, help="processes for --recheck (default: 1)")
    add("--effort", choices=tuple(EFFORTS), help="how much a verification may take, in steps (default: normal)")
    add(
        "--time-limit",
        type=_seconds,
        metavar="SECONDS",
        help=f"how long a pair may take; then the report says what is known (default: {TIME_LIMIT:g}, 0 is no limit)",
    )
    add("--color", choices=("auto", "always", "never"), help="colours (default: auto, which honours NO_COLOR)")
    add("--progress", action=argparse.BooleanOptionalAction, help="progress bar on a terminal (default: yes)")
    add("--explain", metavar="CODE", help="say what a code of a message or report (HV002) means, and exit")
    add("--traceback", action="store_true", help="show where an internal error happened")
    add("--version", action=_Version, nargs=0, help="show the version and exit")
    return parser


def main(argv: Sequence[str] | None = None, *, verify: Verify | None = None) -> int:
    """Run the command line and return the exit status. `verify` stands in for `hlo_verify.verify`."""
    parser = make_parser()
    arguments = parser.parse_args(argv)
    if not arguments.paths and arguments.explain is None and arguments.replay is None:
        parser.error("the following arguments are required: PATH")
    try:
        return _run(arguments, verify) if arguments.explain is None else _explain(arguments)
    except InputError as error:
        return _complain(error.diagnostic, INPUT_ERROR)
    except KeyboardInterrupt:
        print("hlo-verify: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if arguments.traceback:
            raise
        from hlo_verify import defects

        return _complain(defects.diagnose(error), INTERNAL_ERROR)


def _explain(arguments: argparse.Namespace) -> int:
    """Print what a code means. Raises `InputError` for one that there is not."""
    from hlo_verify.render.codes import explanation

    code = CODES.get(arguments.explain.strip().upper())
    if code is None:
        alike = near(arguments.explain)
        hint = f"did you mean {' or '.join(alike)}?" if alike else "docs/codes.md lists them"
        raise InputError(f"there is no code {arguments.explain!r}; {hint}", Input.USAGE)
    try:
        _set_defaults(arguments)
    except InputError:  # a broken pyproject.toml is no reason to explain nothing
        arguments.color = arguments.color or "auto"
    _write(explanation(code, color=_use_color(arguments)), arguments.output)
    return PROVED


def _run(arguments: argparse.Namespace, verify: Verify | None) -> int:
    _set_defaults(arguments)
    if len(arguments.paths) > 2 and arguments.replay is not None:
        raise InputError("--replay goes with a logical and a partitioned module at most", Input.USAGE)
    if arguments.output is not None and not os.path.isdir(arguments.output.absolute().parent):
        raise InputError(
            f"cannot write {arguments.output}: there is no folder {arguments.output.parent}", Input.UNWRITABLE
        )
    several = len(arguments.paths) < 3 and arguments.replay is None and any(map(os.path.isdir, arguments.paths))
    if arguments.each_pass:
        _check_each_pass(arguments)
    if several and arguments.keep is not None:
        raise InputError(
            "--keep goes with one module that XLA is to partition; a folder holds both halves already", Input.USAGE
        )
    if several and arguments.witness is not None:
        raise InputError("--witness goes with one pair of modules; a folder may hold several", Input.USAGE)
    with _as_the_project_says():
        return _answer(arguments, verify, several)


def _answer(arguments: argparse.Namespace, verify: Verify | None, several: bool) -> int:
    if arguments.replay is not None:
        return _finish([_replay(arguments)], arguments, several)
    jobs = _chains(arguments.paths[0]) if arguments.each_pass else _jobs(arguments.paths)
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


def _check_each_pass(arguments: argparse.Namespace) -> None:
    """Raise `InputError` for what does not go with --each-pass."""
    if len(arguments.paths) == 1 and not os.path.exists(arguments.paths[0]):
        raise InputError(f"there is no folder {arguments.paths[0]}", Input.UNREADABLE)
    if len(arguments.paths) != 1 or not os.path.isdir(arguments.paths[0]):
        raise InputError("--each-pass goes with one folder that XLA wrote for --xla_dump_to", Input.USAGE)
    for option in ("recheck", "replay"):
        if getattr(arguments, option):
            raise InputError(f"--{option} does not go with --each-pass", Input.USAGE)


def _finish(outcomes: Sequence[Outcome], arguments: argparse.Namespace, several: bool) -> int:
    _write(_render(outcomes, arguments, several), arguments.output)
    return exit_status(outcomes)


def _replay(arguments: argparse.Namespace) -> Report:
    from hlo_verify import api

    ignored = [
        option for option in ("shardings", "results", "keep", "witness", "recheck") if getattr(arguments, option)
    ]
    if ignored:
        raise InputError(f"--{ignored[0]} does not go with --replay, which runs what was saved", Input.USAGE)
    if len(arguments.paths) == 1:
        raise InputError(
            "--replay takes no modules (its own are meant), or a logical and a partitioned one", Input.USAGE
        )
    return api.replay(arguments.replay, *arguments.paths, devices=arguments.devices)


def _set_defaults(arguments: argparse.Namespace) -> None:
    from hlo_verify.sources.shardings_file import read_defaults

    built_in = {
        "color": "auto",
        "devices": None,
        "effort": "normal",
        "format": "text",
        "progress": True,
        "refute": True,
        "time-limit": TIME_LIMIT,
        "verbose": False,
    }
    for key, value in (built_in | read_defaults(Path.cwd())).items():
        name = key.replace("-", "_")
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)


def _as_the_project_says() -> AbstractContextManager[None]:
    """With the meanings of custom calls that pyproject.toml has."""
    from hlo_verify.sources.shardings_file import read_custom_calls

    meanings = read_custom_calls(Path.cwd())
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


def _jobs(paths: Sequence[Path]) -> list[Job]:
    if len(paths) == 2 and any(map(os.path.isdir, paths)):
        from hlo_verify.sources.neuron_folders import pair_up

        pairs, incomplete = pair_up(*paths)
        jobs = [Job(pair.module, pair.logical, pair.partitioned) for pair in pairs]
        return jobs + [Job(module, problem=problem) for module, problem in incomplete]
    if len(paths) > 1:
        return [Job(str(paths[0]), paths[0], paths[1] if len(paths) == 2 else tuple(paths[1:]))]
    if not os.path.isdir(paths[0]):
        return [Job(str(paths[0]), paths[0])]
    from hlo_verify.sources.dump_pairs import find_pairs

    pairs, incomplete = find_pairs(paths[0])
    jobs = [Job(pair.module, pair.logical, pair.partitioned, annotated=pair.annotated) for pair in pairs]
    return jobs + [Job(module, problem=problem) for module, problem in incomplete]


def _chains(folder: Path) -> list[Job]:
    from hlo_verify.sources.dump_chains import find_chains

    return [Job(chain.module, chain=chain) for chain in find_chains(folder)]


def _verify_all(
    jobs: Sequence[Job], arguments: argparse.Namespace, verify: Verify | None, several: bool
) -> Iterator[Outcome]:
    """The outcome of each job. Where there are several, one that fails does not keep the others from being verified."""
    from hlo_verify import defects
    from hlo_verify.render import Failure
    from hlo_verify.render.progress import Bar

    with Bar(arguments.progress and sys.stderr.isatty()) as bar:
        for job in jobs:
            try:
                bar.description = Path(job.name).name
                if job.chain is not None:
                    found = _verify_passes(job.chain, arguments, bar)
                    yield found
                    if found.missing:
                        raise KeyboardInterrupt
                    continue
                report = _verify(job, arguments, verify, bar)
                yield replace(report, name=job.name) if several else report
            except InputError as error:
                if not several:
                    raise
                yield Failure(job.name, error.diagnostic)
            except Exception as error:
                if not several or arguments.traceback:
                    raise
                yield Failure(job.name, defects.diagnose(error))


def _given(**options: Any) -> dict[str, Any]:
    """Options that there is something to say of."""
    return {name: value for name, value in options.items() if value is not None}


def _verify(job: Job, arguments: argparse.Namespace, verify: Verify | None, bar: Bar) -> Report:
    if job.logical is None:
        raise InputError(job.problem, Input.NO_PAIR_IN_FOLDER)
    if verify is None:
        from hlo_verify import api

        verify = api.verify
    return verify(
        job.logical,
        job.partitioned,
        devices=arguments.devices,
        shardings=arguments.shardings,
        **_given(results=arguments.results, annotated=job.annotated),
        keep=arguments.keep,
        refute=arguments.refute,
        witness=arguments.witness,
        progress=bar,
        **({"recheck": True, "jobs": arguments.jobs} if arguments.recheck else {}),
        **_limits(arguments),
    )


def _limits(arguments: argparse.Namespace) -> dict[str, Any]:
    """What a verification may take, where it is not as usual."""
    usual: dict[str, Any] = {"effort": "normal", "time_limit": TIME_LIMIT}
    asked = {"effort": arguments.effort, "time_limit": arguments.time_limit or None}
    return {name: value for name, value in asked.items() if value != usual[name]}


def _verify_passes(chain: Chain, arguments: argparse.Namespace, bar: Bar) -> ChainReport:
    from hlo_verify.passes.chain.each_pass import verify_passes
    from hlo_verify.sources.shardings_file import read_shardings

    files = (arguments.shardings, arguments.results)
    shardings = [None if file is None else read_shardings(file) for file in files]
    options = {"devices": arguments.devices, "refute": arguments.refute, "progress": bar}
    return verify_passes(chain, shardings=shardings, **options, **_limits(arguments))


def _render(outcomes: Sequence[Outcome], arguments: argparse.Namespace, several: bool) -> str:
    if arguments.format == "json":
        from hlo_verify.render import json

        return json.render(outcomes, several=several)
    from hlo_verify.render import text

    return text.render(outcomes, text.Style(arguments.verbose, _use_color(arguments)), several=several)


def _use_color(arguments: argparse.Namespace) -> bool:
    if arguments.color != "auto":
        return bool(arguments.color == "always")
    if arguments.output is not None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def _write(text: str, output: Path | None) -> None:
    if output is not None:
        try:
            output.write_text(text, encoding="utf-8", errors="backslashreplace")  # names of files need not be text
        except OSError as error:
            raise InputError(f"cannot write {output}: {error.strerror}", Input.UNWRITABLE) from error
        return
    try:
        sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough. Python flushes once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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


def _complain(said: Diagnostic, status: int) -> int:
    from hlo_verify.render.text import problem

    print(f"hlo-verify: {problem(said)}", file=sys.stderr)
    return status


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"not a number of seconds: {text!r}")
    return seconds


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
