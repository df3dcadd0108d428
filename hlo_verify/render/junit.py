"""JUnit XML, which continuous integration shows: a suite for each module, a case for each result or pass.

What is proved has passed, and nothing else has. A refutation is a failure; UNKNOWN is one too, or is skipped where that
was asked for. A module for which there is no report is an error, and so is a proof that a second check disagrees with.
The document keeps to what the schemas of Ant and of Jenkins have in common.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.etree import ElementTree

from hlo_verify.diagnostics import Diagnostic, Internal
from hlo_verify.render import Failure, Outcome, disagrees, overall, text
from hlo_verify.render.characters import visible
from hlo_verify.report import ChainReport, Report, Result, Step, Verdict, diagnostic
from hlo_verify.version import __version__


class Became(enum.StrEnum):
    """What became of a case; the value is the element that says so."""

    PASSED = ""
    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Case:
    """A thing that was looked at: `kind` is the code of what is wrong, `message` a line, `details` all of it."""

    name: str
    became: Became = Became.PASSED
    kind: str = ""
    message: str = ""
    details: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Suite:
    """What was looked at of a module; `said` is the report as text."""

    name: str
    cases: tuple[Case, ...]
    properties: tuple[tuple[str, str], ...] = ()
    said: str = ""
    seconds: float = 0.0


def render(outcomes: Sequence[Outcome], *, unknown: Became = Became.FAILURE, at: datetime | None = None) -> str:
    """The document of verdicts; `unknown` is what becomes of a result that is UNKNOWN, `at` when it was made."""
    return document([_suite(outcome, unknown) for outcome in outcomes], at)


def document(suites: Sequence[Suite], at: datetime | None = None) -> str:
    """The document of suites."""
    root = ElementTree.Element("testsuites")
    stamp = (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%S")
    for number, suite in enumerate(suites):
        _add(root, suite, number, stamp)
    ElementTree.indent(root)
    written = ElementTree.tostring(root, encoding="us-ascii").decode()  # right in whatever encoding it is printed
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{written}\n'


def _add(root: ElementTree.Element, suite: Suite, number: int, stamp: str) -> None:
    counted = [case.became for case in suite.cases]
    held = ElementTree.SubElement(
        root,
        "testsuite",
        name=_name(suite.name),
        package="hlo-verify",
        id=str(number),
        timestamp=stamp,
        hostname="localhost",
        tests=str(len(counted)),
        failures=str(counted.count(Became.FAILURE)),
        errors=str(counted.count(Became.ERROR)),
        skipped=str(counted.count(Became.SKIPPED)),
        time=f"{suite.seconds:.3f}",
    )
    properties = ElementTree.SubElement(held, "properties")
    for name, value in (("hlo-verify", __version__), *suite.properties):
        ElementTree.SubElement(properties, "property", name=name, value=visible(value))
    for case in suite.cases:
        shown = ElementTree.SubElement(
            held, "testcase", name=_name(case.name), classname=_name(suite.name), time=f"{case.seconds:.3f}"
        )
        if case.became is not Became.PASSED:
            stopped = ElementTree.SubElement(shown, case.became, type=case.kind, message=visible(case.message))
            stopped.text = visible(case.details)
    ElementTree.SubElement(held, "system-out").text = visible(suite.said)
    ElementTree.SubElement(held, "system-err")


def _name(given: str) -> str:
    """A name as a token of XML, which is not empty and has single spaces."""
    return " ".join(visible(given).split()) or "(no name)"


def _suite(outcome: Outcome, unknown: Became) -> Suite:
    if isinstance(outcome, Failure):
        said = outcome.diagnostic
        case = Case("module", Became.ERROR, str(said.code), str(said), text.problem(said))
        return Suite(outcome.name, (case,), (("verdict", str(Verdict.UNKNOWN)),))
    is_chain = isinstance(outcome, ChainReport)
    cases = tuple(_of_chain(outcome, unknown) if isinstance(outcome, ChainReport) else _of_report(outcome, unknown))
    verdict = overall([outcome])
    if verdict is not Verdict.PROVED and all(case.became is Became.PASSED for case in cases):
        nothing = f"there are no {'dumps' if is_chain else 'results'}, so nothing is proved"
        cases += (_stopped("verdict", verdict, unknown, "", nothing, nothing),)
    whole = text.render([outcome], text.Style(), several=False)
    return Suite(outcome.name, cases, tuple(_properties(outcome)), whole, outcome.seconds)


def _properties(outcome: Report | ChainReport) -> Iterator[tuple[str, str]]:
    yield "verdict", str(overall([outcome]))
    yield "devices", str(outcome.devices)
    for assumption in outcome.assumptions:
        yield "assumption", assumption
    if isinstance(outcome, Report):
        for precondition in outcome.preconditions:
            yield "precondition", precondition
        for approximation in outcome.approximations:
            yield "approximation", approximation
        for line in outcome.inferred:
            yield "inferred", line


def _of_report(report: Report, unknown: Became) -> Iterator[Case]:
    stopped = {result.index: diagnostic(held) for held in report.stopped() for result in held}
    for result in report.results:
        yield _of_result(result, stopped.get(result.index), unknown)
    if report.recheck is not None:
        wrong = [f"{each.operation} ({each.location}): {each.model}" for each in report.recheck.disagreements]
        message = f"the proof is wrong at {len(wrong)} of {report.recheck.steps} steps: a defect of hlo-verify"
        is_wrong = Case("second check", Became.ERROR, str(Internal.DISAGREEMENT), message, "\n".join(wrong))
        yield is_wrong if disagrees(report) else Case("second check")


def _of_result(result: Result, said: Diagnostic | None, unknown: Became) -> Case:
    name = result.name or f"result {result.index}"
    if said is None:
        return Case(name)
    notes = (note for note in said.notes if note[0] != "results")  # of many, each would name all
    labelled = (("operation", said.operation), ("source", said.location), *notes)
    details = "\n".join((said.message, *(f"{label}: {written}" for label, written in labelled if written)))
    return _stopped(name, result.verdict, unknown, str(said.code), f"{result.verdict}: {said.code.summary}", details)


def _of_chain(chain: ChainReport, unknown: Became) -> Iterator[Case]:
    for step in chain.steps:
        yield _of_step(step, chain, unknown)
    if chain.missing:
        message = f"{chain.missing} dumps were not looked at: interrupted"
        yield _stopped("dumps that are left", Verdict.UNKNOWN, unknown, "", message, message)


def _of_step(step: Step, chain: ChainReport, unknown: Became) -> Case:
    name = f"{step.number:04} {step.pipeline}: {step.after}"
    if step.verdict is Verdict.PROVED:
        return Case(name, seconds=step.seconds)
    details = [step.reason, f"file: {step.file}", f"compared with: {step.compared_with}"]
    if chain.report is not None and step is chain.reported:
        details.append(text.render([chain.report], text.Style(), several=False))
    message = f"{step.verdict}: {step.reason}"
    return _stopped(name, step.verdict, unknown, step.code, message, "\n".join(details), step.seconds)


def _stopped(
    name: str, verdict: Verdict, unknown: Became, kind: str, message: str, details: str, seconds: float = 0.0
) -> Case:
    became = Became.FAILURE if verdict is Verdict.REFUTED else unknown
    return Case(name, became, kind or str(verdict), message, details, seconds)
