"""Markdown for an issue, a comment or the summary of a job: what is wrong first, and how to see it again last.

It always fits what GitHub takes (`MOST`): parts that do not fit are left out whole, and counted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from hlo_verify.diagnostics import Diagnostic
from hlo_verify.render import Failure, Outcome, disagrees, overall, text
from hlo_verify.render.characters import visible
from hlo_verify.render.origin import Origin
from hlo_verify.render.quoting import block, code, folded, prose, table
from hlo_verify.report import ChainReport, Report, Result, Step, Verdict, diagnostic

MOST = 65_536
"""Bytes of a document: GitHub takes so many characters of an issue."""

LONGEST = 2_000
"""Longer terms and operations are shortened in the middle."""

NAME = 300
"""Characters of a name: longer ones, which no person gave, leave no room for what is said of them."""

COMMAND = 8_000
"""Bytes of a command that is shown: one may name a file for each of a thousand ranks."""

ROWS = 40
"""Of a table; the others are counted."""

_FENCED = ("operation", "term", "expected", "nearest")


def render(outcomes: Sequence[Outcome], origin: Origin = Origin(), *, several: bool = False) -> str:  # noqa: B008
    """The document of all reports; where `several` modules may have been asked for, with a table of them."""
    parts = list(_modules(outcomes)) if several else list(_outcome(outcomes[0], 2))
    return fitting(parts, list(reproduction(origin, refuted=overall(outcomes) is Verdict.REFUTED)))


def fitting(parts: Sequence[str], last: Sequence[str] = ()) -> str:
    """The parts as long as they fit, and what stands last, which has to."""
    room = MOST - sum(map(_size, last)) - 200
    kept: list[str] = []
    for part in parts:
        if _size(part) <= room:
            room -= _size(part)
            kept.append(part)
    left = len(parts) - len(kept)
    said = [f"{left} more parts of the report do not fit here; `--format text` and `--format json` have all."]
    return "\n\n".join((*kept, *(said if left else ()), *last)) + "\n"


def _size(part: str) -> int:
    return len(part.encode(errors="backslashreplace")) + 2


def _modules(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A table of all modules, then each that is not proved, the worst first."""
    verdicts = [overall([outcome]) for outcome in outcomes]
    yield f"## {overall(outcomes)}: {len(outcomes)} modules"
    if not outcomes:
        return
    order = [Verdict.REFUTED, Verdict.UNKNOWN, Verdict.PROVED]
    ranked = sorted(zip(verdicts, outcomes, strict=True), key=lambda each: order.index(each[0]))
    rows = [
        [str(verdict), named(outcome.name), prose(shortened(_in_short(outcome), 300))] for verdict, outcome in ranked
    ]
    yield _limited(("verdict", "module", ""), rows)
    for verdict, outcome in ranked:
        if verdict is not Verdict.PROVED:
            heading, *rest = _outcome(outcome, 3)
            yield (
                "\n\n".join((heading, *rest))
                if verdict is Verdict.REFUTED
                else folded(f"{verdict}: {shortened(outcome.name, NAME)}", *rest)
            )
    proved = [each for verdict, each in ranked if verdict is Verdict.PROVED and not isinstance(each, Failure)]
    assumptions = dict.fromkeys(said for each in proved for said in each.assumptions)
    if assumptions:  # nothing else is said of these modules
        yield _assumed(list(assumptions))


def _in_short(outcome: Outcome) -> str:
    if isinstance(outcome, Failure):
        return f"{outcome.diagnostic.code}: {outcome.diagnostic.message}"
    if isinstance(outcome, ChainReport):
        return text.chain_summary(outcome)
    return f"{text.summary(outcome)}{text.given([outcome])}" + (f"; {outcome.headline}" if outcome.headline else "")


def _limited(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    left = len(rows) - ROWS
    more = [[f"{left} more", *[""] * (len(header) - 1)]] if left > 0 else []
    return table(header, [*rows[:ROWS], *more])


def _outcome(outcome: Outcome, level: int) -> Iterator[str]:
    """The parts of an outcome, the first of which is its heading."""
    yield f"{'#' * level} {overall([outcome])}: {named(outcome.name)}"
    if isinstance(outcome, Failure):
        yield prose(shortened(text.problem(outcome.diagnostic)))
    elif isinstance(outcome, ChainReport):
        yield from _chain(outcome, level)
    else:
        yield from report_parts(outcome, level)


def report_parts(report: Report, level: int) -> Iterator[str]:
    """What is said of one verification, below its heading."""
    if report.headline:
        yield prose(shortened(report.headline))
    if report.preconditions:
        yield "\n".join(("Given that", "", *(f"- {prose(shortened(each))}" for each in report.preconditions)))
    if report.suggestion is not None:
        yield prose(shortened(str(report.suggestion)))
    yield prose(text.summary(report)) + "."
    held = list(report.stopped())
    if held:
        proved = sum(result.verdict is Verdict.PROVED for result in report.results)
        rows = [_row(each) for each in held]
        yield _limited(
            ("", "result", "code", "at", "why"),
            [*rows, ["PROVED", f"{proved} results", "", "", ""]] if proved else rows,
        )
    for each in held:
        yield "\n\n".join(finding(each, level + 1))
    yield from _rest(report)


def _row(held: Sequence[Result]) -> list[str]:
    said = diagnostic(held)
    return [
        str(held[0].verdict),
        names(held),
        str(said.code),
        named(said.location),
        prose(shortened(said.message, 300)),
    ]


def named(given: str) -> str:
    """The name of something, or the place of a line, as code."""
    return code(shortened(given, NAME))


def names(results: Sequence[Result]) -> str:
    """The names of results, the first of many."""
    shown = ", ".join(named(result.name or f"result {result.index}") for result in results[:3])
    return shown if len(results) < 4 else f"{shown} and {len(results) - 3} more"


def finding(held: Sequence[Result], level: int) -> Iterator[str]:
    """What stopped some results: the values first, the line and its terms, then everything else that is known."""
    said = diagnostic(held)
    yield f"{'#' * level} {held[0].verdict} {names(held)}: {said.code}, {prose(said.code.summary)}"
    notes = dict(said.notes)
    lines = [f"- **source**: {named(said.location)}"] if said.location else []
    told = ((label, written) for label, written in notes.items() if label not in (*_FENCED, "results", "inputs"))
    lines += [f"- **{label}**: {prose(shortened(written))}" for label, written in told]
    if lines:
        yield "\n".join(lines)
    yield from terms(said)
    if notes.get("inputs"):
        yield folded("Inputs for which it differs", block("\n".join(shortened(notes["inputs"], 6_000).split("; "))))


def terms(said: Diagnostic) -> Iterator[str]:
    """The operation, and its term beside the one that was expected, as the lines of a difference."""
    notes = dict(said.notes)
    if said.operation:
        yield block(shortened(said.operation), "mlir")
    found, expected = notes.get("term", ""), notes.get("expected", "")
    if found and expected:
        yield block(f"{_marked('- expected  ', expected)}\n{_marked('+ found     ', found)}", "diff")
    elif found or expected:
        yield block(f"{'found' if found else 'expected'}  {shortened(found or expected)}")
    if notes.get("nearest") and notes["nearest"] not in said.message:
        yield f"Nearest: {code(shortened(notes['nearest']))}"


def _marked(mark: str, term: str) -> str:
    first, *others = shortened(term).strip().split("\n")
    return "\n".join((mark + first, *(f"{mark[0]}           {line}" for line in others)))


def _rest(report: Report) -> Iterator[str]:
    """What the verdict rests on, and what was not understood."""
    for title, said in (("Not understood, so equal to nothing else", report.unsupported), ("By itself", report.hints)):
        if said:
            lines = [f"- {each.code}: {prose(shortened(str(each)))}" for each in said[:ROWS]]
            yield folded(f"{title}: {len(said)}", "\n".join(lines))
    if report.compared:
        yield f"Compared: {prose(shortened(report.compared))}"
    for title, placed in (("Left open by the module", report.left_open), ("Inferred", report.inferred)):
        if placed:
            yield folded(f"{title}: {len(placed)}", "\n".join(f"- {prose(shortened(line))}" for line in placed[:ROWS]))
    if report.assumptions:
        yield _assumed(report.assumptions)
    if report.recheck is not None:
        again = f"Checked again: {report.recheck.agreed} of {report.recheck.steps} steps agree"
        yield f"{again}, and **{len(report.recheck.disagreements)} are wrong**" if disagrees(report) else again


def _chain(chain: ChainReport, level: int) -> Iterator[str]:
    yield f"{_in_short(chain)}."
    if chain.missing:
        yield f"{chain.missing} dumps were not looked at: interrupted."
    for line in text.blamed(chain):
        yield prose(shortened(line))
    header = ("", "step", "pass", "why", "s")
    stopped = [step for step in chain.steps if step.verdict is not Verdict.PROVED]
    if stopped:
        yield _limited(header, list(map(_step_row, stopped)))
    reported = chain.reported
    if chain.report is not None and reported is not None:
        yield f"{named(reported.file)}, compared with {named(reported.compared_with)}:"
        yield from report_parts(chain.report, level)
    rows = list(map(_step_row, chain.steps))
    yield folded(f"All {len(rows)} steps", table(header, rows))
    if chain.assumptions:
        yield _assumed(chain.assumptions)


def _assumed(assumptions: Sequence[str]) -> str:
    more = [f"- {len(assumptions) - ROWS} more"] if len(assumptions) > ROWS else []
    return "\n".join(("Assumed:", "", *(f"- {prose(shortened(each))}" for each in assumptions[:ROWS]), *more))


def _step_row(step: Step) -> list[str]:
    why = prose(shortened(step.how or step.reason, 200))
    where = named(f"{step.pipeline}: {step.after}")
    return [str(step.verdict), f"{step.number:04}", where, why, f"{step.seconds:.1f}"]


def reproduction(origin: Origin, *, refuted: bool) -> Iterator[str]:
    """How to see the same: commands, the witness, and versions. Nothing, where it is not known how it was made."""
    if origin.command:
        again = f"\nhlo-verify --replay {shlex.quote(origin.witness)}" if origin.witness else ""
        yield "### To see the same"
        is_long = _size(origin.command) > COMMAND
        yield "The command is too long to stand here." if is_long else block(f"{origin.command}{again}", "sh")
    if origin.witness:
        yield (
            f"The witness {code(origin.witness)} holds both modules and the inputs: attach it (it is a zip archive, "
            "which GitHub takes under a name that ends in `.zip`)."
        )
    elif refuted and origin.command and "--each-pass" not in origin.command:  # which saves none
        yield "With `--witness FILE.zip`, the command saves both modules and the inputs in a file to attach here."
    if origin.versions:
        yield table(("", "version"), [[prose(name), code(value)] for name, value in origin.versions])


def shortened(text: str, most: int = LONGEST) -> str:
    """The visible text, without its middle where it is long."""
    shown = visible(text)
    half = (most - 5) // 2
    return shown if len(shown) <= most else f"{shown[:half]} ... {shown[-half:]}"
