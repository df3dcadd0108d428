"""Verify a case: what is said of its right and of its wrong program."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import hlo_verify
from tools.zoo.case import Case, lower


@dataclass(frozen=True, slots=True)
class Judged:
    """The reports on both programs, the seconds each took to load and verify, and the line the wrong one names."""

    case: Case
    right: hlo_verify.Report
    wrong: hlo_verify.Report
    right_seconds: float
    wrong_seconds: float

    @property
    def locations(self) -> list[str]:
        """The source lines that the findings on the wrong program name, as `file.py:NN`, each once."""
        found = (result.finding.location for result in self.wrong.results if result.finding is not None)
        places = (at.rpartition(":") for at in found)
        return list(dict.fromkeys(f"{Path(file).name}:{line}" for file, _, line in places))

    @property
    def codes(self) -> list[str]:
        """The codes of the findings on the wrong program, each once."""
        found = (result.finding.code for result in self.wrong.results if result.finding is not None)
        return list(dict.fromkeys(map(str, found)))

    @property
    def names_the_line(self) -> bool:
        """Whether a finding names the line that carries `# BUG`."""
        return f"{self.case.path.name}:{self.case.line}" in self.locations


def judge(case: Case) -> Judged:
    texts = lower(case)
    begun = time.perf_counter()
    right = hlo_verify.verify(texts.reference, texts.right)
    between = time.perf_counter()
    wrong = hlo_verify.verify(texts.reference, texts.wrong)
    return Judged(case, right, wrong, between - begun, time.perf_counter() - between)
