"""Lint the labelled cases of `../shared/corpora/scheduled`, and print what was found, by kind.

`python -m tools.lint_corpus [KIND_OR_NAME...] [--derive] [--misses]`: `--derive` leaves XLA's lists of values out, so
that who reads what is found out from the module; `--misses` names the cases that are not as labelled. The exit status
is 1 if a clean case has an error.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlo_verify.diagnostics import Severity
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.linter.finding import Finding
from hlo_verify.linter.lint import BESIDE, lint, lint_ranks

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpora" / "scheduled"

ALSO = {
    "buffers_overlap": ("overwritten_while_live", "race_async_result_early", "race_async_operand", "race_async_result"),
    "async_illegal": ("done_twice", "orphan_start", "missing_done", "done_kind_mismatch"),
    "permute_illegal": (
        "permute_duplicate_source",
        "permute_duplicate_target",
        "permute_id_out_of_range",
        "done_kind_mismatch",
        "async_illegal",
    ),
    "groups_illegal": ("groups_unequal", "groups_overlap", "groups_not_covering"),
    "alias_illegal": ("async_illegal",),
    "missing_reduction": ("partial_into_nonlinear", "partial_into_replicated_result", "partial_times_partial"),
    "send_recv_illegal": ("recv_without_send", "send_without_recv", "send_recv_pairs_mismatch"),
}
"""By a class of the corpus, classes that say the same more exactly: an edited offset and a moved instruction leave two
values in one place; XLA's verifier has one word for all that is wrong with a permute; of code that each device runs for
itself, a lost reduction is said where its addend goes."""


@dataclass(frozen=True, slots=True)
class Case:
    """A module, what is expected of it, and what was found."""

    record: dict[str, Any]
    all_findings: tuple[Finding, ...]
    problem: str = ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Errors; of a case that is a matter of taste, warnings too."""
        taste = "taste" in self.record["kind"]
        return tuple(one for one in self.all_findings if taste or one.severity is Severity.ERROR)

    @property
    def is_clean(self) -> bool:
        return bool(self.record["expected"] == "clean")

    @property
    def is_hit(self) -> bool:
        """Whether the defect was found by its class, or by a more exact one."""
        wanted = {self.record["expected"], *ALSO.get(self.record["expected"], ())}
        return any(finding.name in wanted for finding in self.findings)

    @property
    def is_placed(self) -> bool:
        """Whether a finding names the instruction of the label, or takes it in."""
        where = (self.record["where"] or "").split("{")[0].strip()
        return any(where and where in (one.instruction.split("{")[0].strip(), *one.related) for one in self.findings)


def main() -> int:
    arguments = _parser().parse_args()
    started = time.process_time()
    cases = list(_cases(arguments.wanted, derive=arguments.derive))
    print(table(cases))
    print(f"{len(cases)} cases, {time.process_time() - started:.1f} s of a processor")
    if arguments.misses:
        for case in cases:
            if case.problem or (case.findings if case.is_clean else not case.is_hit):
                found = ", ".join(f"{one.name} at {one.instruction}" for one in case.findings[:3])
                print(f"{case.record['name']}: {case.record['expected']}; {case.problem or found or 'nothing found'}")
    print(f"{sum(case.is_clean and len(case.all_findings) > len(case.findings) for case in cases)} clean with warnings")
    return int(any(case.is_clean and case.findings for case in cases))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.lint_corpus", description=__doc__)
    parser.add_argument("wanted", nargs="*", metavar="KIND_OR_NAME", help="parts of kinds or of names; all without")
    parser.add_argument("--derive", action="store_true", help="without XLA's lists of values")
    parser.add_argument("--misses", action="store_true", help="name the cases that are not as labelled")
    return parser


def _cases(wanted: list[str], *, derive: bool) -> Iterator[Case]:
    for line in (CORPUS / "index.jsonl").read_text().splitlines():
        record = json.loads(line)
        if not wanted or any(word in record["kind"] or word in record["name"] for word in wanted):
            try:
                yield Case(record, tuple(_findings(record, derive=derive)))
            except InputError as error:
                yield Case(record, (), str(error))


def _findings(record: dict[str, Any], *, derive: bool) -> Iterator[Finding]:
    files = record["files"]
    if "hlo" not in files:
        yield from lint_ranks({CORPUS / name: devices for name, devices in record["ranks"].items()}).findings
        return
    texts = {key: gzip.decompress((CORPUS / name).read_bytes()).decode() for key, name in files.items()}
    beside = {name: texts.get(name) for name in BESIDE if not (derive and name == "values")}
    yield from lint(texts["hlo"], **beside).findings


def table(cases: list[Case]) -> str:
    """Markdown: by kind and class, how many there are, are found, and at their instruction."""
    rows: dict[tuple[str, str], Counter[str]] = {}
    for case in cases:
        row = rows.setdefault((case.record["kind"], case.record["expected"]), Counter())
        row["cases"] += 1
        row["found"] += bool(case.findings) if case.is_clean else case.is_hit
        row["placed"] += not case.is_clean and case.is_hit and case.is_placed
    lines = ["| kind | class | cases | found | at its instruction |", "|---|---|--:|--:|--:|"]
    for (kind, name), row in sorted(rows.items()):
        lines.append(
            f"| {kind} | {name} | {row['cases']} | {row['found']} | {row['placed'] if name != 'clean' else ''} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
