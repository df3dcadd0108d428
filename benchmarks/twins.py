"""What wrong modules cost beside right ones: `python -m benchmarks.twins [NAME ...]`.

For every fixture of testdata and every case of the zoo (or those whose names begin so): the seconds of a processor that
its proof takes, and those that each wrong module takes to be refuted, or given up, XLA's in a child process among them.
The aim is ten times the proof, and five seconds, at the most. With `--records FILE`, what was measured is kept there, a
line of JSON each, and is not measured again. The exit status is 1 where something is above the aim.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import hlo_verify
from hlo_verify.own_process import settle
from tools.fixtures.twins import short

TESTDATA = Path(__file__).parents[1] / "testdata"
TIMES, SECONDS = 10, 5
"""The aim."""

Source = Path | str


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong module, and the source line where it was broken."""

    name: str
    module: Source
    line: str
    logical: Source


@dataclass(frozen=True, slots=True)
class Group:
    """A right pair and what is wrong in the same place."""

    name: str
    logical: Source
    right: Source
    wrong: tuple[Wrong, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """What one wrong module came to."""

    fixture: str
    twin: str
    verdict: str
    refuted: int
    stopped: int
    """Results that are not PROVED, the refuted ones among them."""
    named: bool
    """Whether a finding is at the line that was broken."""
    right: float
    wrong: float
    """Seconds of a processor."""

    @property
    def share(self) -> float:
        """Of the aim."""
        return self.wrong / (TIMES * self.right + SECONDS)


def seconds() -> float:
    """Of processors, that this process and its children took which have ended."""
    return sum(os.times()[:4])


def judged(logical: Source, partitioned: Source) -> tuple[hlo_verify.Report, float]:
    """The report on a pair, and what it took."""
    started = seconds()
    report = hlo_verify.verify(logical, partitioned, time_limit=None)
    return report, seconds() - started


def fixtures(names: tuple[str, ...]) -> Iterator[Group]:
    """The fixtures whose names begin so, with their twins."""
    for file in sorted(TESTDATA.glob("*/manifest.json")):
        folder, manifest = file.parent, json.loads(file.read_text())
        if folder.name.startswith(names):
            logical = folder / manifest["logical"]
            twins = tuple(
                Wrong(
                    short(twin["file"]),
                    folder / twin["file"],
                    twin["source"],
                    folder / twin.get("logical", manifest["logical"]),
                )
                for twin in manifest["broken"]
            )
            yield Group(folder.name, logical, folder / manifest["partitioned"], twins)


def zoo(names: tuple[str, ...]) -> Iterator[Group]:
    """The cases of the zoo whose names begin so."""
    from tools.zoo import case

    for name in case.names():
        if name.startswith(names):
            each = case.load(name)
            texts = case.lower(each)
            line = f"{each.path.name}:{each.line}"
            yield Group(name, texts.reference, texts.right, (Wrong("zoo", texts.wrong, line, texts.reference),))


def measured(group: Group, twin: Wrong, right: float) -> Row:
    """A wrong module, verified."""
    report, wrong = judged(twin.logical, twin.module)
    stopped = [result for result in report.results if result.verdict != "PROVED"]
    refuted = sum(result.verdict == "REFUTED" for result in stopped)
    lines = {result.finding.location for result in stopped if result.finding is not None}
    named = any(line == twin.line or line.endswith(f"/{twin.line}") for line in lines)
    return Row(group.name, twin.name, str(report.verdict), refuted, len(stopped), named, right, wrong)


def table(rows: Iterable[Row]) -> str:
    """Markdown, what takes most of the aim first."""
    lines = [
        "| fixture | twin | verdict | refuted / not proved | line | right | wrong | of the aim |",
        "|---|---|---|---|---|--:|--:|--:|",
    ]
    for row in sorted(rows, key=lambda row: -row.share):
        cells = (
            row.fixture,
            row.twin,
            row.verdict,
            f"{row.refuted} / {row.stopped}",
            "named" if row.named else "another",
            f"{row.right:.2f}",
            f"{row.wrong:.1f}",
            f"{row.share:.0%}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure what is asked for, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.twins", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginnings of fixtures' names, or of the zoo's (b07)")
    parser.add_argument("--records", type=Path, help="a file that what was measured is kept in")
    arguments = parser.parse_args()
    settle()
    names, records = tuple(arguments.names) or ("",), arguments.records
    known = records.read_text().splitlines() if records is not None and records.exists() else []
    rows = [Row(**json.loads(line)) for line in known]
    done = {(row.fixture, row.twin) for row in rows}
    judged(TESTDATA / "mlp_dp" / "logical.hlo.gz", next((TESTDATA / "mlp_dp").glob("broken_*")))
    for groups in (fixtures(names), zoo(names)):
        for group in groups:
            left = [twin for twin in group.wrong if (group.name, twin.name) not in done]
            if not left:
                continue
            judged(group.logical, group.right)  # what is imported once, here or above, is no part of it
            judged(left[0].logical, left[0].module)
            _, right = judged(group.logical, group.right)
            for twin in left:
                rows.append(row := measured(group, twin, right))
                print(f"{row} {row.share:.0%}", file=sys.stderr, flush=True)
                if records is not None:
                    with records.open("a") as out:
                        print(json.dumps(asdict(row)), file=out)
    print(table(rows))
    sys.exit(any(row.share > 1 for row in rows))


if __name__ == "__main__":
    main()
