"""Text for people: a line a result, what stopped those that are not proved, assumptions, and a summary line last."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hlo_verify.diagnostics import Diagnostic, Input, Internal, Solver
from hlo_verify.limits import that_matter
from hlo_verify.render import Failure, Outcome, disagrees, overall
from hlo_verify.render.characters import shown, visible
from hlo_verify.render.wrapping import wrapped
from hlo_verify.report import ChainReport, Recheck, Report, Result, Step, Verdict, diagnostic

FOLD = 20
"""With more proved results than this, they share a line."""

TOGETHER = 4
"""More results than this that one finding stopped share a line."""

LINE = 160
"""The most characters of a reason that a result's line shows."""

LONGEST = 600
"""Longer terms and operations are shortened in the middle."""

_NEXT = re.compile(r"\.before_([\w-]+)\.")
"""The pass that is next, in the name of a dump."""

INDENT = " " * 13
"""What stands before lines that go on."""

_GOES_ON = re.compile(rf"\n(?!{INDENT})")

_COLORS = {Verdict.PROVED: 32, Verdict.REFUTED: 31, Verdict.UNKNOWN: 33}


@dataclass(frozen=True, slots=True)
class Style:
    """How much to print, and whether with colours of a terminal."""

    verbose: bool = False
    color: bool = False
    frames: bool = False
    """Whether to show the whole stack of a source line, libraries too."""
    quiet: bool = False
    """Whether to print the last line alone."""
    width: int = 0
    """The columns that lines may have; 0 leaves them as long as they are."""

    def verdict(self, verdict: Verdict) -> str:
        text = f"{verdict:<7}"
        return f"\033[1;{_COLORS[verdict]}m{text}\033[0m" if self.color else text

    def faint(self, text: str) -> str:
        return f"\033[2m{text}\033[0m" if self.color else text


def render(outcomes: Sequence[Outcome], style: Style, *, several: bool) -> str:
    """Every report; where `several` modules may have been asked for, each under its name and with a line for all."""
    lines: list[str] = []
    outcomes = list(map(shown, outcomes))
    if style.quiet:
        last = [counted(outcomes, style)] if several else [_last(outcome, style) for outcome in outcomes]
        return _joined(last, style) + "\n"
    for outcome in outcomes:
        lines += _named(outcome, style) if several else _whole(outcome, style)
    if several:
        lines.append(counted(outcomes, style))
    return _joined(lines, style) + "\n"


def one_of_several(outcome: Outcome, style: Style) -> str:
    """A report under its name; if it is to be quiet, its last line with the name."""
    outcome = shown(outcome)
    verdict, _, rest = _last(outcome, style).partition("  ")
    lines = [f"{verdict}  {outcome.name}: {rest}"] if style.quiet else _named(outcome, style)
    return _joined(lines, style) + "\n"


def _joined(lines: Sequence[str], style: Style) -> str:
    """The lines below one another. What a name or a term goes on with stands further right, where no verdict stands."""
    return wrapped("\n".join(_GOES_ON.sub(f"\n{INDENT}", line) for line in lines), style.width)


def _named(outcome: Outcome, style: Style) -> list[str]:
    return [outcome.name, "", *_whole(outcome, style), ""]


def _whole(outcome: Outcome, style: Style) -> list[str]:
    if isinstance(outcome, Failure):
        return _failure(outcome, style)
    return list(_chain(outcome, style) if isinstance(outcome, ChainReport) else _report(outcome, style))


def _last(outcome: Outcome, style: Style) -> str:
    """The last line of an outcome, with what it is subject to."""
    if isinstance(outcome, Failure):
        return _failure(outcome, style)[-1]
    if isinstance(outcome, ChainReport):
        return list(_chain(outcome, style))[-1]
    return f"{style.verdict(overall([outcome]))}  {summary(outcome)}{given([outcome])}"


def given(outcomes: Sequence[Outcome]) -> str:
    """What lines of a verdict end with, where it is subject to something that the user says."""
    said = dict.fromkeys(each for outcome in outcomes if isinstance(outcome, Report) for each in outcome.preconditions)
    return f", given that {' and '.join(said)}" if said else ""


def _failure(failure: Failure, style: Style) -> list[str]:
    return [f"{style.verdict(Verdict.UNKNOWN)}  {problem(failure.diagnostic)}"]


def problem(said: Diagnostic) -> str:
    """A line for something that left nothing to report, with where to read on."""
    label = "internal error" if isinstance(said.code, Internal) else said.severity
    more = "--help" if said.code is Input.USAGE else f"--explain {said.code}"
    return f"{label}[{said.code}]: {visible(str(said))} (see hlo-verify {more})"


def _report(report: Report, style: Style) -> Iterator[str]:
    headline = report.headline.replace(report.verdict, style.verdict(report.verdict).rstrip(), 1)
    if headline and report.approximations:
        yield headline
    for precondition in report.preconditions:
        yield f"Given that {precondition}:"
    if report.suggestion is not None:
        yield f"{style.verdict(report.verdict).rstrip()}: {report.suggestion}"
    if headline and not report.approximations:
        yield headline
    yield from _results(report, style)
    if style.verbose:
        yield from _stages(report, style)
        yield from _laws(report, style)
    yield from _findings(report, style)
    yield ""
    if report.unsupported:
        yield "Not understood, so treated as equal to nothing else:"
        yield from (f"  {said.code}  {_shorten(str(said), style)}" for said in report.unsupported)
        yield from dict.fromkeys(f"  to do: {text}" for said in report.unsupported for _, text in said.notes)
    if report.hints:
        yield "Wrong with the partitioned module by itself (`hlo-verify lint`):"
        yield from (f"  {said.code}  {_shorten(str(said), style)}" for said in report.hints)
    if report.compared:
        yield f"Compared: {report.compared}"
    if report.left_open:
        yield "Left open by the module, so taken from XLA:"
        yield from (f"  {line}" for line in report.left_open)
    if report.inferred:
        yield "Inferred, since no module says it:"
        yield from (f"  {line}" for line in report.inferred)
    if report.assumptions:
        yield "Assumed: " + "; ".join(report.assumptions)
    if report.recheck is not None:
        yield from _recheck(report.recheck, style)
    yield f"{style.verdict(overall([report]))}  {summary(report)}"


def _chain(chain: ChainReport, style: Style) -> Iterator[str]:
    """A line for each step; then the report of the first that is not proved."""
    names = [f"{step.pipeline}: {step.after}" for step in chain.steps]
    width = max(map(len, names), default=0)
    before = ""
    for step, name in zip(chain.steps, names, strict=True):
        said = step.how or ("as before" if step.reason and step.reason == before else _one_line(step.reason))
        before = step.reason
        said = said if style.verbose or len(said) <= LINE else said[: LINE - 1] + "…"
        line = f"{style.verdict(step.verdict)}  {step.number:04}  {name:<{width}}  {step.seconds:5.1f} s"
        yield f"{line}  {style.faint(said)}".rstrip()
    for said in blamed(chain):
        yield ""
        yield said
    first = chain.reported
    if chain.report is not None and first is not None:
        yield ""
        yield f"{first.file}, compared with {first.compared_with}:"
        yield ""
        yield from _report(replace(chain.report, assumptions=()), style)
    yield ""
    if chain.missing:
        yield f"{_plural(chain.missing, 'dump')} not looked at: interrupted"
    yield "Assumed: " + "; ".join(chain.assumptions)
    yield f"{style.verdict(chain.verdict)}  {chain_summary(chain)}"


def chain_summary(chain: ChainReport) -> str:
    """How many dumps of how many are proved."""
    proved = sum(step.verdict is Verdict.PROVED for step in chain.steps)
    where = "" if chain.missing else f" on {_plural(chain.devices, 'device')}"
    return f"{proved} of {_plural(len(chain.steps) + chain.missing, 'dump')} proved{where}, {_took(chain)}"


def blamed(chain: ChainReport) -> Iterator[str]:
    """Which passes are to blame, as far as it is known, and where the proof goes on."""
    before, proved = Verdict.PROVED, False
    for step in chain.steps:
        at = changed_in(chain, step)
        if step.verdict is Verdict.REFUTED and before is not Verdict.REFUTED:
            since = "first" if before is Verdict.PROVED else "since the last dump that is proved, at the latest"
            yield f"The value was changed {since} {at}: {step.file} computes something else than {step.compared_with}"
        elif step.verdict is Verdict.UNKNOWN and before is Verdict.PROVED:
            yield f"The thread is lost {at}: {_one_line(step.reason)}"
        elif step.verdict is Verdict.PROVED and before is not Verdict.PROVED and proved:
            yield f"The program is proved again from {_step(step)} on."
        before, proved = step.verdict, proved or step.verdict is Verdict.PROVED


def changed_in(chain: ChainReport, step: Step) -> str:
    """Where what a step has was made of what the one before it has.

    What a pipeline starts with no pass left: something did that in which the pipeline runs. The dump before says what
    was to run next.
    """
    if step.after != "pipeline-start":
        return f"in the pass {_step(step)}"
    earlier = [other for other in chain.steps if other.number < step.number]
    if not earlier:
        return f"before {_step(step)}"
    runs = _NEXT.search(earlier[-1].file)
    if runs is None or runs[1] in ("pipeline-end", step.pipeline):
        return f"between steps {earlier[-1].number} and {step.number}"
    return f"in the pass {runs[1]} (between steps {earlier[-1].number} and {step.number})"


def _step(step: Step) -> str:
    return f"{step.pipeline}: {step.after} (step {step.number})"


def _results(report: Report, style: Style) -> Iterator[str]:
    results = report.results
    plain = {r.index for r in results if r.verdict is Verdict.PROVED and not r.reason and not r.by_device}
    folded = len(plain) > FOLD and not style.verbose
    if folded:
        yield f"{style.verdict(Verdict.PROVED)}  {len(plain)} results"
    together = {held[0].index: held for held in report.stopped()}
    folded_in = {r.index for held in together.values() if len(held) > TOGETHER for r in held[1:]}
    for result in results:
        if folded and result.index in plain:
            continue
        if result.index in folded_in and not style.verbose:
            continue
        held = together.get(result.index, ())
        name = _names(held, style) if len(held) > TOGETHER and not style.verbose else _name(result)
        reason = _one_line(result.reason)
        if result.by_device and result.verdict is Verdict.PROVED:
            reason = f"on each of the {_plural(report.devices, 'device')} by itself"
        said = not result.location or f"({result.location})" in reason or result.verdict is Verdict.PROVED
        where = "" if said else f"  ({result.location})"
        if len(reason) > LINE and not style.verbose:
            reason = reason[: LINE - 1] + "…"
        yield f"{style.verdict(result.verdict)}  {name}{'  ' if reason else ''}{reason}{where}"


def _findings(report: Report, style: Style) -> Iterator[str]:
    """Each finding once, with the results that it stopped."""
    for held in report.stopped():
        if held[0].code is Solver.NO_LONGER_DIFFERS:  # there is nothing to find
            continue
        said = diagnostic(held)
        yield ""
        yield f"{style.verdict(held[0].verdict)}  {_names(held, style)}  {said.code}: {said.code.summary}"
        stack = held[0].finding.frames if held[0].finding is not None and style.frames else ()
        labelled = (
            ("operation", said.operation),
            ("source", said.location),
            ("frames", "\n".join(stack)),
            *said.notes,
        )
        for label, text in labelled:
            if text and label != "results":
                yield f"  {style.faint(f'{label:<9}')}  {_indented(_shorten(text, style))}"


def _stages(report: Report, style: Style) -> Iterator[str]:
    yield ""
    yield "Stages:"
    for stage in report.stages:
        shared = style.faint("  (as before)") if stage.shared else ""
        yield f"  {stage.lineage}{shared}"
        yield style.faint(f"      {stage.operation}  ({stage.location})")


def _laws(report: Report, style: Style) -> Iterator[str]:
    if report.laws:
        yield ""
        yield "Laws used:"
    width = max((len(str(law.times)) for law in report.laws), default=0)
    for law in report.laws:
        yield f"  {law.times:>{width}} x  {law.name}" + style.faint(f"   {law.says}")


def _recheck(found: Recheck, style: Style) -> Iterator[str]:
    unchecked = sum(count for _, count in found.unchecked)
    early = f", {found.ended}" if found.ended else ""
    yield (
        f"Checked again: {found.agreed} of {_plural(found.steps, 'step')} agree "
        f"({found.by_solver} by the solver, {found.bounded} at sizes that could not all be made small), "
        f"{found.partly} checked in part, {unchecked} not checked, "
        f"{_plural(found.questions, 'question')}{early}, {found.seconds:.1f} s"
    )
    if style.verbose:
        yield from (f"  not checked: {count} x {_shorten(reason, style)}" for reason, count in found.unchecked)
        if found.limits:
            yield f"  limits: {', '.join(that_matter(found.limits))}"
    for wrong in found.disagreements:
        yield f"INTERNAL ERROR: the proof is wrong at {wrong.operation} ({wrong.location or 'no source line'}): "
        yield f"  {_shorten(_one_line(wrong.model), style)}"
    if found.disagreements:
        yield "This is a defect of hlo-verify, not of your module. Please report it with the two modules."


def summary(report: Report) -> str:
    """How many results of how many are proved, on how many devices."""
    total = len(report.results)
    if report.results and all(result.code is Solver.NO_LONGER_DIFFERS for result in report.results):
        alone = "the saved inputs show nothing any more, which proves nothing: hlo-verify LOGICAL PARTITIONED verifies"
        return f"{_plural(total, 'result')} on {_plural(report.devices, 'device')}: {alone}, {report.seconds:.1f} s"
    counts = {verdict: sum(r.verdict is verdict for r in report.results) for verdict in Verdict}
    proved = counts[Verdict.PROVED]
    what = _plural(total, "result") if proved == total else f"{proved} of {_plural(total, 'result')} proved"
    if counts[Verdict.REFUTED]:
        what += f", {counts[Verdict.REFUTED]} refuted"
    shared = sum(stage.shared for stage in report.stages)
    stages = (
        f"{_plural(len(report.stages), 'stage')} ({shared} shared)" if shared else _plural(len(report.stages), "stage")
    )
    devices = _plural(report.devices, "device")
    guessed = ", placements inferred" if report.under and report.verdict is Verdict.PROVED else ""
    declared = f", {_plural(len(report.approximations), 'declared approximation')}" if report.approximations else ""
    wrong = ", and a second check disagrees with the proof" if disagrees(report) else ""
    return f"{what} on {devices}, {stages}, {_took(report)}{guessed}{declared}{wrong}"


def _took(outcome: Report | ChainReport) -> str:
    return f"{outcome.seconds:.1f} s" + (" in an earlier run, kept" if outcome.kept else "")


def counted(outcomes: Sequence[Outcome], style: Style) -> str:
    """The line for all modules."""
    verdicts = [overall([outcome]) for outcome in outcomes if not isinstance(outcome, Failure)]
    parts = [f"{verdicts.count(v)} {v.lower()}" for v in Verdict if v in verdicts]
    failed = len(outcomes) - len(verdicts)
    if failed:
        parts.append(f"{failed} not verified")
    said = f": {', '.join(parts)}" if parts else ""
    return f"{style.verdict(overall(outcomes))}  {_plural(len(outcomes), 'module')}{said}{given(outcomes)}"


def _name(result: Result) -> str:
    return result.name or f"result {result.index}"


def _names(results: Sequence[Result], style: Style) -> str:
    names = [_name(result) for result in results]
    if len(names) > 4 and not style.verbose:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return ", ".join(names)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _indented(text: str) -> str:
    return text.strip().replace("\n", f"\n{INDENT}")


def _shorten(text: str, style: Style) -> str:
    if style.verbose or len(text) <= LONGEST:
        return text
    half = (LONGEST - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"
