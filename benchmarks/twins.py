"""What wrong modules cost beside right ones: `python -m benchmarks.twins [FIXTURE ...]`.

For every fixture (all of testdata, or those named): the seconds of a processor that its proof takes, and those that
each broken twin takes to be refuted, or given up. The aim is ten times the proof, and five seconds, at the most.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import hlo_verify
from hlo_verify.own_process import settle

TESTDATA = Path(__file__).parents[1] / "testdata"
TIMES, SECONDS = 10, 5
"""The aim."""


def cost(logical: Path, partitioned: Path) -> tuple[str, float]:
    """The verdict of a pair, and the seconds that this process took for it."""
    started = time.process_time()
    report = hlo_verify.verify(logical, partitioned, time_limit=None)
    return str(report.verdict), time.process_time() - started


def main(names: list[str]) -> None:
    """Print the table, worst last."""
    settle()
    rows = []
    for folder in sorted(TESTDATA.iterdir()):
        logical = folder / "logical.hlo.gz"
        if not logical.exists() or (names and folder.name not in names):
            continue
        cost(logical, folder / "partitioned.hlo.gz")  # what is imported once is no part of it
        _, right = cost(logical, folder / "partitioned.hlo.gz")
        for twin in sorted(folder.glob("broken_*")):
            verdict, wrong = cost(logical, twin)
            rows.append(
                (wrong / (TIMES * right + SECONDS), folder.name, twin.name.split(".")[0], verdict, right, wrong)
            )
            print(*rows[-1][1:4], f"{right:.1f} s, {wrong:.1f} s", file=sys.stderr, flush=True)
    print("| of the aim | fixture | twin | verdict | right | wrong |\n|--:|---|---|---|--:|--:|")
    for share, name, twin_name, verdict, right, wrong in sorted(rows):
        print(f"| {share:.0%} | {name} | {twin_name} | {verdict} | {right:.1f} s | {wrong:.1f} s |")


if __name__ == "__main__":
    main(sys.argv[1:])
