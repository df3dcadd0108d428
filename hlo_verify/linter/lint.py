"""Look for defects in one module, with no reference: `hlo_verify.lint(module)`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hlo_verify.diagnostics import Input, Severity
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo import shardings as shardings_of
from hlo_verify.hlo.buffers import parse_assignment, parse_values
from hlo_verify.hlo.groups import COLLECTIVES
from hlo_verify.hlo.live import parse_live
from hlo_verify.hlo.meetings import Meetings
from hlo_verify.hlo.module import HloModule
from hlo_verify.hlo.shapes import leaves
from hlo_verify.hlo.shardings import Shardings
from hlo_verify.hlo.thunks import parse_thunks
from hlo_verify.linter import buffers, collectives, donation, entering, live, pipelines, ranks, sends, thunks, transfers
from hlo_verify.linter.finding import Finding
from hlo_verify.linter.placement import findings as placement
from hlo_verify.linter.precision import findings as precision
from hlo_verify.linter.reading import annotated_shardings, read, text_of
from hlo_verify.linter.sends import Program
from hlo_verify.linter.transfers import is_start
from hlo_verify.schedules.schedule import Schedule, parse

if TYPE_CHECKING:
    from hlo_verify.sources.modules import Source


@dataclass(frozen=True, slots=True)
class LintReport:
    """What was found in a module, in the order of its text, and what was looked at: `instructions`, `collectives`,
    `transfers`, and with a buffer assignment `allocations` and `values`, each with its number."""

    name: str
    findings: tuple[Finding, ...]
    looked_at: dict[str, int]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What is a defect for every input."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)

    def __str__(self) -> str:
        from hlo_verify.linter.render import text

        return text([self])


@dataclass(frozen=True, slots=True)
class Files:
    """A module as XLA dumps it, and what it dumps beside it."""

    module: Path
    buffers: Path | None = None
    values: Path | None = None
    shardings: Path | None = None
    live: Path | None = None
    thunks: Path | None = None

    @property
    def beside(self) -> dict[str, Path | None]:
        """What `lint` takes beside the module, by name."""
        return {name: getattr(self, name) for name in BESIDE}


BESIDE = {
    "buffers": "buffer-assignment.txt",
    "values": "buffer-assignment-values.txt",
    "live": "live-range.txt",
    "thunks": "thunk_sequence_after_thunk_passes.txt",
    "shardings": "shardings.json",
}
"""What may be given beside a module, and how the file is called in a dump folder behind the module's name."""


def lint(
    module: Source,
    *,
    buffers: str | Path | None = None,
    values: str | Path | None = None,
    shardings: str | Path | None = None,
    live: str | Path | None = None,
    thunks: str | Path | None = None,
    name: str = "",
) -> LintReport:
    """Look for defects in a module: HLO text, scheduled or not, or a serialized HloModuleProto; what XLA has not
    partitioned yet (StableHLO, what JAX lowered) is partitioned by the XLA in jaxlib first.

    `module`, `buffers` (`*-buffer-assignment.txt`), `values` (`*-buffer-assignment-values.txt`), `live`
    (`*-live-range.txt`) and `thunks` (`*thunk_sequence_after_thunk_passes.txt`, of a GPU) are paths, gzipped or not, or
    the texts themselves. Without `values`, who reads what is found out from the module. `shardings` says how the
    parameters and results lie: `{"in": ["{devices=[8,1]<=[8]}", …], "out": […]}`. Raises `InputError` for what cannot
    be read.
    """
    given = read(module)
    parsed = given.module
    said = given.shardings if shardings is None else _shardings(parsed, shardings)
    if not parsed.says_devices:  # a serialized module does not
        lie = annotated_shardings(parsed) if said is None else said
        count = shardings_of.devices_of((*lie.arguments, *lie.results))
        parsed.header |= {} if count is None else {"num_partitions": str(count)}
    meetings = Meetings(parsed)
    found = [*_findings(parsed), *entering.check(meetings, None if said is None else said.arguments)]
    found += placement.check(meetings, said)
    found += precision.check(meetings)
    looked_at = _looked_at(parsed)
    if buffers is None and (values is not None or live is not None):
        what = "a list of values is" if live is None else "live ranges are"
        raise InputError(f"{what} of use with a buffer assignment alone: give that too", Input.USAGE)
    for more, counts in _of_dump(
        parsed, *(None if one is None else text_of(one) for one in (buffers, values, live, thunks))
    ):
        found += more
        looked_at |= counts
    found.sort(key=lambda one: (one.line, one.code))
    return LintReport(name or parsed.name, tuple(dict.fromkeys(found)), looked_at)


def lint_ranks(programs: Mapping[str | Path, Sequence[int]], *, buffered_sends: bool = False) -> LintReport:
    """Look for defects in the programs of ranks, each by itself and together.

    `programs` names the devices that run each module (a path). A device belongs to one program; those that run none are
    left out of account. `buffered_sends`: a send is done before its receive is posted. Raises `InputError`.
    """
    for path, numbers in programs.items():
        if not numbers or min(numbers) < 0:
            raise InputError(f"{path} is run by {list(numbers)}: say one device or more, numbered from 0", Input.USAGE)
    devices = [device for numbers in programs.values() for device in numbers]
    if len(set(devices)) != len(devices):
        twice = next(device for device in devices if devices.count(device) > 1)
        raise InputError(f"device {twice} is said to run two programs", Input.USAGE)
    parsed = [(str(path), Program(read(path).module, tuple(numbers))) for path, numbers in programs.items()]
    found = [one for _, program in parsed for one in _of_one(program.module)]
    found += [one for _, program in parsed for one in entering.check(Meetings(program.module), None, program.devices)]
    together = [program for _, program in parsed]
    of_collectives = list(ranks.check(together))
    found += of_collectives
    found += sends.between(together, buffered=buffered_sends, collectives=not of_collectives)
    looked_at = sum((Counter(_looked_at(program.module)) for program in together), Counter())
    name = ", ".join(f"{path} on {','.join(map(str, program.devices))}" for path, program in parsed)
    return LintReport(name, tuple(dict.fromkeys(found)), dict(looked_at) | {"programs": len(together)})


def lint_pipeline(schedule: str | Path | Schedule, *, buffered_sends: bool = False, name: str = "") -> LintReport:
    """Look for defects in a pipeline's schedule: a path, a text (`hlo_verify.schedules.parse` says how), or a schedule.

    `buffered_sends`: a send is done before its receive is posted. Raises `InputError` for what cannot be read."""
    parsed = schedule if isinstance(schedule, Schedule) else parse(text_of(schedule))
    found = pipelines.findings(parsed, buffered=buffered_sends)
    return LintReport(name or "schedule", found, pipelines.looked_at(parsed))


def _findings(module: HloModule) -> Iterator[Finding]:
    yield from _of_one(module)
    yield from sends.between([Program(module, sends.devices_of(module))])


def _of_one(module: HloModule) -> Iterator[Finding]:
    """What is wrong with a program whoever runs it."""
    yield from collectives.check(module)
    yield from transfers.check(module)
    yield from donation.check(module)
    yield from sends.check(module)


def _shardings(module: HloModule, given: str | Path) -> Shardings:
    """The shardings of a file or a text, one for each leaf of the parameters."""
    said = shardings_of.read(given if isinstance(given, str) and given.lstrip().startswith("{") else text_of(given))
    count = sum(1 for parameter in module.entry.parameters.values() for _ in leaves(parameter.shape))
    if len(said.arguments) != count:
        raise InputError(f"{len(said.arguments)} shardings for {count} parameters", Input.USAGE)
    return said


def _of_dump(
    module: HloModule, assignment: str | None, values: str | None, ranges: str | None, sequence: str | None
) -> Iterator[tuple[list[Finding], dict[str, int]]]:
    """What is found with each of the files that XLA dumps beside a scheduled module, and what was looked at."""
    if (assignment is not None or sequence is not None) and not module.is_scheduled:
        what = "buffer assignment" if assignment is not None else "sequence of thunks"
        raise InputError(f"the module is not scheduled, so a {what} says nothing of it", Input.USAGE)
    if assignment is not None:
        allocations = parse_assignment(assignment)
        lifetimes = None if values is None else parse_values(values)
        found = list(buffers.check(module, allocations, lifetimes))
        yield found, {"allocations": len(allocations), "values": sum(len(one.values) for one in allocations)}
        if ranges is not None:
            yield live.check(module, parse_live(ranges), allocations, lifetimes)
    if sequence is not None:
        yield thunks.check(module, parse_thunks(sequence))


def _looked_at(module: HloModule) -> dict[str, int]:
    counts = Counter(
        what
        for instruction in module.instructions()
        for what, holds in (
            ("instructions", True),
            ("collectives", instruction.opcode in COLLECTIVES),
            ("transfers", is_start(instruction)),
        )
        if holds
    )
    return {what: counts[what] for what in ("instructions", "collectives", "transfers")}


def files_of(folder: Path) -> list[Files]:
    """The final modules of a dump folder, and buffer assignments beside them. Raises InputError if there is none."""
    found = []
    for path in sorted(folder.iterdir()):
        stem = path.name.removesuffix(".gz").removesuffix(".txt")
        if stem.endswith("after_optimizations"):
            found.append(Files(path, **{name: _beside(path, stem, what) for name, what in BESIDE.items()}))
    if not found:
        raise InputError(f"there is no *after_optimizations.txt in {folder}", Input.NO_PAIR_IN_FOLDER)
    return found


def _beside(path: Path, stem: str, what: str) -> Path | None:
    """A file that is named for the final module (`…after_optimizations-live-range.txt`) or, as thunks and shardings
    are, for the module alone: the longest name that the two have in common."""
    names = (
        stem[:end] for end in sorted({len(stem), *(found.start() for found in re.finditer(r"\.", stem))}, reverse=True)
    )
    candidates = (path.with_name(f"{name}{dash}{what}{gz}") for name in names for dash in "-." for gz in ("", ".gz"))
    return next((one for one in candidates if one.exists()), None)
