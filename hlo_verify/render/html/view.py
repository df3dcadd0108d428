"""What a page shows, as plain data for its templates: the result model cut to what a reader can take in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup

from hlo_verify.diagnostics import Diagnostic
from hlo_verify.limits import that_matter
from hlo_verify.render import Failure, Outcome, disagrees, overall, text
from hlo_verify.render.html.drawn import pictures
from hlo_verify.report import ChainReport, Report, Result, Stage, Step, Verdict, diagnostic
from hlo_verify.scene import Scene
from hlo_verify.witness import Point

ROWS = 2_000
"""Rows of a table of results or stages: some 300 bytes each, of the two million that a page may have."""

FEWEST = 10
"""Rows of a table at least, however many modules share a page."""

FINDINGS = 30
"""Findings that are shown with all that is known. The results table has the others too."""

DRAWN = 6
"""Findings with pictures: some twenty thousand characters each."""

INPUTS = 60
"""Arguments of a witness that have a row of their own; others share one."""

NOTES = ("module", "term", "expected", "nearest", "repair", "suspected", "looks like")
"""The labels of notes that have a place of their own in a page."""

SHOWN_RESULTS = 6
"""Names of the results that a finding stopped, which are shown; the others are behind a click."""


@dataclass(frozen=True, slots=True)
class Linted:
    """A module that was looked at by itself: its name, what was found, each with its line in the module (0: not known),
    and what was looked at, with how many of each. `picture` is an SVG of its schedule, which escapes its texts."""

    name: str
    findings: tuple[tuple[Diagnostic, int], ...]
    looked_at: tuple[tuple[str, int], ...]
    picture: str = ""


@dataclass(frozen=True)
class FindingView:
    """What stopped some results, for one reason, on so many devices. Few findings of a page have pictures."""

    held: tuple[Result, ...]
    devices: int = 1
    is_drawn: bool = False

    @property
    def scene(self) -> Scene | None:
        return None if self.first.finding is None else self.first.finding.scene

    @property
    def source(self) -> list[tuple[int, str, bool]]:
        """The source lines around the fault: number, text, and whether it is the one."""
        found = None if self.scene is None else self.scene.excerpt
        if found is None:
            return []
        return [(number, line, number == found.at) for number, line in enumerate(found.lines, found.first)]

    @property
    def pictures(self) -> list[Markup]:
        return pictures(self.scene, self.devices) if self.is_drawn else []

    @cached_property
    def said(self) -> Diagnostic:
        return diagnostic(self.held)

    @property
    def first(self) -> Result:
        return self.held[0]

    @property
    def names(self) -> list[str]:
        return list(map(name_of, self.held))

    @property
    def notes(self) -> dict[str, str]:
        """What is said beside the message, by its label; empty where nothing is."""
        return dict.fromkeys(NOTES, "") | dict(self.said.notes)

    @property
    def points(self) -> list[tuple[str, Point]]:
        """Where values differ: of the operation, and of the result."""
        witness = self.first.witness
        if witness is None:
            return []
        where = [] if witness.lost is None else [("at this operation", witness.lost)]
        return [*where, (f"in {self.names[0]}", witness.point)]

    @property
    def inputs(self) -> list[tuple[str, str]]:
        """The inputs of the witness, what most arguments hold in one row."""
        witness = self.first.witness
        if witness is None:
            return []
        counts = Counter(said for _, said in witness.inputs)
        usual, times = counts.most_common(1)[0] if counts else ("", 0)
        if times < 3 or len(witness.inputs) < 6:
            usual = ""
        own = [(name, said) for name, said in witness.inputs if said != usual]
        left = len(own) - INPUTS
        rows = own[:INPUTS] + ([(f"{left} more arguments", "…")] if left > 0 else [])
        return rows + ([(f"all other {times} arguments" if own else f"all {times} arguments", usual)] if usual else [])

    @property
    def spent(self) -> list[tuple[str, str]]:
        """What was done in vain."""
        return [(label, said) for label, said in self.said.notes if label in ("tried", "limits", "not evaluated")]


@dataclass(frozen=True)
class ReportView:
    """A verification, one of so many in the page, which share its room."""

    report: Report
    among: int = 1

    @property
    def rows(self) -> int:
        return max(ROWS // self.among, FEWEST)

    @property
    def verdict(self) -> Verdict:
        return overall([self.report])

    @property
    def name(self) -> str:
        return self.report.name

    @property
    def summary(self) -> str:
        return f"{text.summary(self.report)}{text.given([self.report])}"

    @property
    def disagrees(self) -> bool:
        return disagrees(self.report)

    @cached_property
    def stopped(self) -> list[FindingView]:
        held = sorted(self.report.stopped(), key=lambda each: each[0].verdict is not Verdict.REFUTED)
        drawn = max(DRAWN // self.among, 1)
        return [FindingView(tuple(each), self.report.devices, n < drawn) for n, each in enumerate(held)]

    @property
    def findings(self) -> list[FindingView]:
        return self.stopped[: max(FINDINGS // self.among, 2)]

    @property
    def more_findings(self) -> int:
        return len(self.stopped) - len(self.findings)

    @property
    def counts(self) -> list[tuple[Verdict, int]]:
        """How many results have which verdict."""
        found = Counter(result.verdict for result in self.report.results)
        return [(verdict, found[verdict]) for verdict in Verdict if found[verdict]]

    @property
    def results(self) -> list[Result]:
        """Those that are not proved first, as many as a page may hold."""
        order = [Verdict.REFUTED, Verdict.UNKNOWN, Verdict.PROVED]
        return sorted(self.report.results, key=lambda result: order.index(result.verdict))[: self.rows]

    @property
    def has_names_alone(self) -> bool:
        """Whether there is nothing to say of the results but that they are proved."""
        return all(r.verdict is Verdict.PROVED and not (r.reason or r.by_device) for r in self.report.results)

    @property
    def more_results(self) -> int:
        return max(len(self.report.results) - self.rows, 0)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.report.stages[: self.rows]

    @property
    def more_stages(self) -> int:
        return max(len(self.report.stages) - self.rows, 0)

    @property
    def shared(self) -> int:
        return sum(stage.shared for stage in self.report.stages)

    @property
    def limits(self) -> list[str]:
        """The limits that were run into, by their names."""
        reached = dict.fromkeys(
            name for result in self.report.results if result.spent is not None for name in result.spent.limits
        )
        return that_matter(tuple(reached))


@dataclass(frozen=True)
class ChainView:
    """A program after each pass, one of so many in the page."""

    chain: ChainReport
    among: int = 1

    @property
    def verdict(self) -> Verdict:
        return overall([self.chain])

    @property
    def name(self) -> str:
        return self.chain.name

    @property
    def summary(self) -> str:
        return text.chain_summary(self.chain)

    @property
    def steps(self) -> list[Step]:
        """As many as a page may hold; of more, those that are not proved stay."""
        most = max(ROWS // self.among, FEWEST)
        ranked = sorted(range(len(self.chain.steps)), key=lambda n: self.chain.steps[n].verdict is Verdict.PROVED)
        return [self.chain.steps[n] for n in sorted(ranked[:most])]

    @property
    def more_steps(self) -> int:
        return len(self.chain.steps) - len(self.steps)

    @property
    def blamed(self) -> list[str]:
        """Which passes are to blame."""
        return list(text.blamed(self.chain))

    @cached_property
    def report(self) -> ReportView | None:
        return None if self.chain.report is None else ReportView(self.chain.report, self.among)


@dataclass(frozen=True)
class FailureView:
    """A module of which there is no report."""

    failure: Failure

    @property
    def verdict(self) -> Verdict:
        return Verdict.UNKNOWN

    @property
    def name(self) -> str:
        return self.failure.name

    @property
    def summary(self) -> str:
        return f"{self.failure.diagnostic.code}: {self.failure.diagnostic.code.summary}"


View = ReportView | ChainView | FailureView


def view(outcome: Outcome, among: int = 1) -> View:
    """What is shown of an outcome, one of so many."""
    if isinstance(outcome, Failure):
        return FailureView(outcome)
    return ChainView(outcome, among) if isinstance(outcome, ChainReport) else ReportView(outcome, among)


def name_of(result: Result) -> str:
    return result.name or f"result {result.index}"


def verdict_counts(outcomes: Sequence[Outcome]) -> Iterator[tuple[Verdict, int]]:
    """How many modules have which verdict."""
    found = Counter(overall([outcome]) for outcome in outcomes)
    return ((verdict, found[verdict]) for verdict in Verdict if found[verdict])
