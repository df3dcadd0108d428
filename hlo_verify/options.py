"""What the command line takes: its options, its exit statuses, and how it complains."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, NoReturn

from hlo_verify.diagnostics import Diagnostic, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.limits import EFFORTS, TIME_LIMIT
from hlo_verify.render import FORMATS, PROJECTS
from hlo_verify.render.output import format_and_file, path_of
from hlo_verify.version import told

PROVED, REFUTED, INPUT_ERROR, UNKNOWN, INTERNAL_ERROR, INTERRUPTED = 0, 1, 2, 3, 70, 130

OF_PAIRS = {
    "keep": "one module that XLA is to partition; a folder holds both halves already",
    "witness": "one pair of modules; a folder may hold several",
    "approximation": "a logical and a partitioned module; a folder may hold several pairs",
}
"""Options that do not go with folders, and what they go with."""

_EPILOG = """\
exit status:
  0   PROVED   every result is proved
  1   REFUTED  some result is shown to differ
  2            usage or input error
  3   UNKNOWN  neither; the report says where and why
  70           internal error of hlo-verify: nothing was decided, or --recheck disagrees with the proof
  130          interrupted; what was known is printed
  Of several modules, the first that applies of 1, 2, 70, 3, 0.

Defaults for --cache, --color, --devices, --effort, --format, --junit-unknown, --progress, --time-limit and --verbose
may stand in pyproject.toml under [tool.hlo-verify].
Meanings of custom calls stand there too, under [tool.hlo-verify.custom-calls], and preconditions under
[tool.hlo-verify.assume]; what `hlo-verify lint` leaves out, under [tool.hlo-verify.lint].
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(complain(InputError(message, Input.USAGE).diagnostic, INPUT_ERROR))


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        print(told())
        parser.exit(PROVED)


def make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="hlo-verify",
        usage="hlo-verify [options] MODULE | LOGICAL PARTITIONED | LOGICAL RANK0 RANK1 ... | DUMP_DIR | DIR DIR\n"
        "       hlo-verify --each-pass DUMP_DIR\n       hlo-verify --watch DUMP_DIR\n"
        "       hlo-verify --replay FILE [LOGICAL PARTITIONED]\n       hlo-verify --explain CODE\n"
        "       hlo-verify lint PATH ...\n       hlo-verify export --model-explorer FILE MODULE ...\n"
        "       hlo-verify cache info|clear",
        description="Prove that a module partitioned for many devices computes what the whole module computes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "paths",
        nargs="*",
        metavar="PATH",
        type=path_of,
        help="one module with shardings, which the XLA in jaxlib partitions; or a logical and a partitioned module; or "
        "a logical module and the graph of each rank; or a folder that XLA wrote for --xla_dump_to; or two folders of "
        "graphs (a neuron-compile-cache), which are paired by their arguments and results. Modules are "
        "StableHLO text or bytecode, portable or jax.export artifacts, HLO text or serialized HloModuleProtos, plain "
        "or gzipped",
    )
    _add_what_is_printed(parser)
    _add_what_is_known(parser)
    _add_what_is_done(parser)
    add("--color", choices=("auto", "always", "never"), help="colours (default: auto, which honours NO_COLOR)")
    add("--progress", action=argparse.BooleanOptionalAction, help="progress bar on a terminal (default: yes)")
    add("--explain", metavar="CODE", help="say what a code of a message or report (HV002) means, and exit")
    add("--traceback", action="store_true", help="show where an internal error happened")
    add("--version", action=_Version, nargs=0, help="show the version and exit")
    return parser


def _add_what_is_done(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--each-pass", action="store_true", help="verify a folder of dumps pass by pass (--xla_dump_hlo_pass_re=.*)")
    add("--watch", action="store_true", help="verify what appears in a folder of dumps, until ctrl-C")
    add("--keep", type=path_of, metavar="DIR", help="keep the two modules that a single MODULE was partitioned into")
    add(
        "--refute",
        action=argparse.BooleanOptionalAction,
        help="look for inputs that make a result differ (default: yes)",
    )
    add("--witness", type=path_of, metavar="FILE", help="save such inputs, with the modules, to FILE")
    add(
        "--replay",
        type=path_of,
        metavar="FILE",
        help="run a saved witness, on its own modules or on LOGICAL PARTITIONED",
    )
    add("--recheck", action="store_true", help="check every step of a proof a second time, with the Z3 solver")
    said = "processes for the modules of a folder, or for --recheck (default: the cores); reports are the same for any"
    add("--jobs", type=_positive, metavar="N", help=said)
    said = (
        "verify a folder on a Ray cluster, by its HOST:PORT, or the one of this machine (auto); needs hlo-verify[ray]"
    )
    add("--ray", metavar="ADDRESS", help=said)
    said = "keep verdicts in DIR, and take those of earlier runs from there (default: none are kept)"
    add("--cache", type=path_of, metavar="DIR", help=said)
    said = "decide everything anew, whatever pyproject.toml says"
    add("--no-cache", dest="cache", action="store_const", const=False, help=said)
    add("--effort", choices=tuple(EFFORTS), help="how much a verification may take, in steps (default: normal)")
    add(
        "--time-limit",
        type=_seconds,
        metavar="SECONDS",
        help=f"how long a pair may take; then the report says what is known (default: {TIME_LIMIT:g}, 0 is no limit)",
    )


def _add_what_is_known(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--devices", type=_devices, metavar="N", help="number of devices, where no module says it")
    add("--shardings", type=path_of, metavar="FILE", help="shardings of the (logical) module's arguments and results")
    add(
        "--results", type=path_of, metavar="FILE", help="shardings that results must have, where they would be inferred"
    )
    add(
        "--assume",
        action="append",
        metavar="PRECONDITION",
        help="what is known of the values of an argument: 'tokens in [0, 32000)', 'perm is a permutation' (repeatable)",
    )
    add(
        "--approximation",
        action="append",
        metavar="DECLARED",
        help="a value of the partitioned module, by its named scope or source line, and the value that it stands for: "
        "'batch_stats/mean = stats/mean', 'g.py:41 = f.py:12' (repeatable)",
    )


def _add_what_is_printed(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--format", choices=FORMATS, help="how to print the report (default: text)")
    said = "write the report in that format to FILE as well (repeatable)"
    add("--report", action="append", type=format_and_file, default=[], metavar="FORMAT=FILE", help=said)
    add("--open", action="store_true", help="show the report as a page in a browser as well")
    add("--issue", choices=PROJECTS, help="a bug report for that project, as Markdown")
    add(
        "--junit-unknown",
        choices=("failure", "skipped"),
        help="with --format junit: what becomes of a result that is UNKNOWN (default: failure)",
    )
    add("-o", "--output", type=path_of, metavar="FILE", help="write the report to FILE instead of standard output")
    add("-v", "--verbose", action="store_true", default=None, help="show every result, the stages and their lineage")
    add("-q", "--quiet", action="store_true", help="print the line of the verdict alone")
    add(
        "--frames",
        choices=("own", "all"),
        default="own",
        help="of a source line, show the one that is your own, or the frames of libraries too (default: own)",
    )


def check_each_pass(arguments: argparse.Namespace) -> None:
    """Raise `InputError` for what does not go with --each-pass."""
    if len(arguments.paths) == 1 and not os.path.exists(arguments.paths[0]):
        raise InputError(f"there is no folder {arguments.paths[0]}", Input.UNREADABLE)
    if len(arguments.paths) != 1 or not os.path.isdir(arguments.paths[0]):
        raise InputError("--each-pass goes with one folder that XLA wrote for --xla_dump_to", Input.USAGE)
    for option in ("assume", "approximation", "recheck", "replay"):
        if getattr(arguments, option):
            raise InputError(f"--{option} does not go with --each-pass", Input.USAGE)


def check_watch(arguments: argparse.Namespace) -> None:
    """Raise `InputError` for what does not go with --watch."""
    if len(arguments.paths) != 1 or not os.path.isdir(arguments.paths[0]):
        raise InputError("--watch goes with one folder that XLA writes for --xla_dump_to", Input.USAGE)
    for option in ("each_pass", "replay"):
        if getattr(arguments, option):
            raise InputError(f"--{option.replace('_', '-')} does not go with --watch", Input.USAGE)


def complain(said: Diagnostic, status: int) -> int:
    """Print a message to standard error; the status is what `main` returns."""
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


def _devices(text: str) -> int:
    from hlo_verify.program.mesh import LIMIT

    if (count := _positive(text)) > LIMIT:
        raise argparse.ArgumentTypeError(f"{text!r} is more than the {LIMIT} devices that a mesh may have")
    return count


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)
