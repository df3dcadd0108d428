"""Renderers of a `report.Report`, one module a format. They know nothing of the prover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_verify.diagnostics import Diagnostic, Internal
from hlo_verify.report import ChainReport, Report, Verdict, worst

FORMATS = ("text", "json", "sarif", "junit", "markdown", "html")
"""How a report may be printed."""

PROJECTS = ("xla", "jax")
"""Whose bug reports a report may be written as."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A module of a dump folder for which there is no report: what was wrong with it."""

    name: str
    diagnostic: Diagnostic

    @property
    def internal(self) -> bool:
        """Whether the fault is hlo-verify's own."""
        return isinstance(self.diagnostic.code, Internal)


Outcome = Report | ChainReport | Failure


def overall(outcomes: Sequence[Outcome]) -> Verdict:
    """The worst verdict. A module without a report is neither proved nor refuted."""
    return worst(Verdict.UNKNOWN if isinstance(o, Failure) else o.verdict for o in outcomes)


def disagrees(report: Report) -> bool:
    """Whether a second check of the proof found a step of it to be wrong: a defect of hlo-verify."""
    return report.recheck is not None and bool(report.recheck.disagreements)
