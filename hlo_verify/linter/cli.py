"""`hlo-verify lint MODULE… | DUMP_DIR`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hlo_verify.diagnostics import CODES, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.linter.lint import BESIDE, Files, LintReport, files_of, lint, lint_pipeline, lint_ranks
from hlo_verify.linter.reading import text_of
from hlo_verify.linter.render import in_one_line, text, to_html, to_json, to_junit, to_markdown, to_sarif
from hlo_verify.program.mesh import LIMIT
from hlo_verify.render import FORMATS
from hlo_verify.render.browser import show
from hlo_verify.render.origin import of_command
from hlo_verify.render.output import check_outputs, format_and_file, given_path, path_of, width, write
from hlo_verify.render.wrapping import wrapped
from hlo_verify.schedules import parse, svg

CLEAN, DEFECTS, INPUT_ERROR = 0, 1, 2

DRAWN = 20
"""Modules of a page with a picture: some ten thousand characters each."""


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hlo-verify lint",
        description="Look for defects in modules that XLA compiled, each by itself: in where values lie, in "
        "collectives and who enters them, in transfers and donations, and with a buffer assignment for races.",
        epilog="exit status: 0 no defect, 1 defects, 2 input that cannot be read. Defaults for --select, --ignore and "
        "--strict may stand in pyproject.toml under [tool.hlo-verify.lint].",
    )
    said = (
        "HLO text (*after_optimizations.txt), a serialized HloModuleProto, StableHLO, gzipped or not; or a dump folder"
    )
    parser.add_argument("paths", nargs="+", type=given_path, metavar="PATH", help=said)
    parser.add_argument("--buffers", type=path_of, metavar="FILE", help="the module's *-buffer-assignment.txt")
    parser.add_argument("--values", type=path_of, metavar="FILE", help="the module's *-buffer-assignment-values.txt")
    parser.add_argument("--live", type=path_of, metavar="FILE", help="the module's *-live-range.txt")
    said = "the module's *thunk_sequence_after_thunk_passes.txt, of a GPU"
    parser.add_argument("--thunks", type=path_of, metavar="FILE", help=said)
    said = 'how the module\'s parameters and results lie: {"in": [SHARDING, …], "out": […]}'
    parser.add_argument("--shardings", type=path_of, metavar="FILE", help=said)
    said = "the paths are programs of ranks: FILE=DEVICES (rank0.txt=0-3 rank1.txt=4,5), or FILE for one device each"
    parser.add_argument("--ranks", action="store_true", help=said)
    said = "the paths are schedules of pipelines, a line a rank: `0F0 1F0 1B0 0B0` (docs/lint/pipelines.md)"
    parser.add_argument("--pipeline", action="store_true", help=said)
    said = "draw one scheduled module there: what runs, what is in flight, what is kept; with --pipeline one schedule"
    parser.add_argument("--svg", type=path_of, metavar="FILE", help=said)
    said = "with --ranks and --pipeline: a send need not wait for its receive"
    parser.add_argument("--buffered-sends", action="store_true", help=said)
    parser.add_argument("--format", choices=FORMATS, default="text", help="how to print the report (default: text)")
    said = "write the report in that format to FILE as well (repeatable)"
    parser.add_argument("--report", action="append", type=format_and_file, default=[], metavar="FORMAT=FILE", help=said)
    parser.add_argument("--select", action="append", metavar="CODE", help="only codes that begin so (HV7; repeatable)")
    parser.add_argument("--ignore", action="append", metavar="CODE", help="no codes that begin so (repeatable)")
    parser.add_argument(
        "--strict", action="store_true", default=None, help="warnings count for the exit status as well"
    )
    parser.add_argument("--open", action="store_true", help="show the report as a page in a browser as well")
    parser.add_argument("-q", "--quiet", action="store_true", help="print how many findings there are, and no more")
    parser.add_argument("-o", "--output", type=path_of, metavar="FILE", help="write the report there")
    parser.add_argument("--traceback", action="store_true", help="show where an internal error happened")
    return parser


def main(argv: Sequence[str], defaults: Mapping[str, Any]) -> int:
    """Run `hlo-verify lint` and return its exit status. `defaults` are the project's. Raises InputError for input that
    cannot be read."""
    arguments = make_parser().parse_args(argv)
    for key, value in defaults.items():
        if getattr(arguments, key) is None:
            setattr(arguments, key, value)
    for code in (*(arguments.select or ()), *(arguments.ignore or ())):
        if not any(known.startswith(code.upper()) for known in CODES):
            raise InputError(f"no code begins with {code!r}; docs/codes.md lists them", Input.USAGE)
    written = (arguments.output, arguments.svg, *(path for _, path in arguments.report))
    check_outputs(written, map(Path, arguments.paths))
    reports = [_selected(report, arguments) for report in _reports(arguments)]
    formats: dict[str, Callable[[Sequence[LintReport]], str]] = {
        "text": in_one_line if arguments.quiet else text,
        "json": to_json,
        "sarif": to_sarif,
        "markdown": to_markdown,
    }
    made = of_command(("lint", *argv), [], None)
    formats["html"] = lambda found: to_html(found, made, _pictures(arguments, found))
    formats["junit"] = partial(to_junit, strict=bool(arguments.strict))
    if arguments.svg is not None:
        write(_picture(arguments, reports[0]), arguments.svg)
    for other, path in arguments.report:
        write(formats[other](reports), path)
    columns = width(arguments.output) if arguments.format == "text" else 0
    write(wrapped(formats[arguments.format](reports), columns), arguments.output, arguments.format)
    if arguments.open:
        show(formats["html"](reports))
    counted = [finding for report in reports for finding in (report.findings if arguments.strict else report.errors)]
    return DEFECTS if counted else CLEAN


def _picture(arguments: argparse.Namespace, report: LintReport) -> str:
    """What --svg draws."""
    if arguments.pipeline:
        return svg(parse(text_of(Path(arguments.paths[0]))))
    from hlo_verify.linter.timeline import picture

    (files,) = _files(arguments)
    return picture(files.module, files.buffers, files.values, report.findings)


def _pictures(arguments: argparse.Namespace, reports: Sequence[LintReport]) -> list[str]:
    """A picture for each report, for a page: none where there is no schedule, or nothing was found among many."""
    if arguments.ranks:
        return []
    from hlo_verify.linter.timeline import picture

    drawn: list[str] = []
    beside = [None] * len(reports) if arguments.pipeline else _files(arguments)
    for path, files, report in zip(range(len(reports)), beside, reports, strict=True):
        is_shown = len(reports) == 1 or (report.findings and sum(map(bool, drawn)) < DRAWN)
        try:
            if not is_shown:
                drawn.append("")
            elif files is None:
                drawn.append(svg(parse(text_of(Path(arguments.paths[path]))), style=False))
            else:
                drawn.append(picture(files.module, files.buffers, files.values, report.findings, style=False))
        except InputError:  # it has no schedule, or one that never ends
            drawn.append("")
    return drawn


def _reports(arguments: argparse.Namespace) -> list[LintReport]:
    given = _beside(arguments)
    if arguments.ranks and arguments.pipeline:
        raise InputError("--ranks are programs, and --pipeline schedules; give one of the two", Input.USAGE)
    if given and (arguments.ranks or arguments.pipeline):
        raise InputError(f"{_names(given)} of one module, not of --ranks or --pipeline", Input.USAGE)
    if arguments.svg is not None and (arguments.ranks or len(arguments.paths) != 1):
        raise InputError("--svg goes with one module, or with --pipeline and one schedule", Input.USAGE)
    if arguments.pipeline:
        return [_lint_pipeline(path, buffered=arguments.buffered_sends) for path in arguments.paths]
    if arguments.ranks:
        return [lint_ranks(_ranks(arguments.paths), buffered_sends=arguments.buffered_sends)]
    if arguments.buffered_sends:
        raise InputError("--buffered-sends goes with --ranks or --pipeline", Input.USAGE)
    return [_lint(one) for one in _files(arguments)]


def _files(arguments: argparse.Namespace) -> list[Files]:
    """The modules of the command line, with what lies beside them."""
    given = _beside(arguments)
    paths = map(Path, arguments.paths)
    files = [one for path in paths for one in (files_of(path) if path.is_dir() else [Files(path)])]
    if given and len(files) != 1:
        raise InputError(f"{_names(given)} of one module; give one", Input.USAGE)
    if arguments.svg is not None and len(files) != 1:
        raise InputError(f"--svg draws one module; {arguments.paths[0]} has {len(files)}", Input.USAGE)
    return [replace(one, **given) for one in files]


def _beside(arguments: argparse.Namespace) -> dict[str, Path]:
    """The files that the command line gives beside a module."""
    beside = {key: getattr(arguments, key) for key in BESIDE}
    return {key: path for key, path in beside.items() if path is not None}


def _names(given: Mapping[str, Path]) -> str:
    """`--buffers and --values are`"""
    options = [f"--{name}" for name in given]
    return f"{options[0]} is" if len(options) == 1 else f"{', '.join(options[:-1])} and {options[-1]} are"


def _lint_pipeline(path: str, *, buffered: bool) -> LintReport:
    try:
        return lint_pipeline(Path(path), buffered_sends=buffered, name=path)
    except InputError as error:
        raise error.within(path) from error


def _ranks(paths: Sequence[str]) -> dict[str | Path, list[int]]:
    """The devices of each program. Raises InputError for what does not say any."""
    found: dict[str | Path, list[int]] = {}
    for number, given in enumerate(paths):
        path, equals, devices = given.rpartition("=")
        found[path if equals else given] = _numbers(devices, given) if equals else [number]
    if len(found) < len(paths):
        raise InputError("a program is named twice; say all its devices at once", Input.USAGE)
    return found


def _numbers(devices: str, given: str) -> list[int]:
    found: list[int] = []
    for piece in devices.split(","):
        first, dash, last = piece.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise InputError(f"{given!r} does not say devices as FILE=0-3 or FILE=4,5", Input.USAGE)
        if int(last or first) >= LIMIT:
            raise InputError(f"{given!r} names device {last or first}; {LIMIT} at most are understood", Input.USAGE)
        found += range(int(first), int(last or first) + 1)
    return found


def _lint(files: Files) -> LintReport:
    try:
        return lint(files.module, **files.beside, name=str(files.module))
    except InputError as error:
        raise error if str(error).startswith(f"{files.module}: ") else error.within(str(files.module)) from error


def _selected(report: LintReport, arguments: argparse.Namespace) -> LintReport:
    selected = tuple(code.upper() for code in arguments.select or ("HV",))
    ignored = tuple(code.upper() for code in arguments.ignore or ())
    kept = (one for one in report.findings if one.code.startswith(selected) and not one.code.startswith(ignored))
    return replace(report, findings=tuple(kept))
