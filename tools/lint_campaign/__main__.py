"""`python -m tools.lint_campaign [--mutants N] [--seed N] [--derive] [--misses]`: what the linter says of mutants of
scheduled modules, beside what becomes of their bytes.

The modules are those of `../shared/corpora/scheduled` and of testdata/scheduled that have buffers. A mutant whose
readers find their values written over (machine.py) has to have a finding, one whose bytes are right none; of what runs
before its operand, or is waited for in another way, all are wrong. The exit status is 1 if there is a finding where
nothing is wrong: a false alarm.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from hlo_verify.hlo.buffers import parse_assignment, parse_values
from hlo_verify.hlo.text import parse_hlo
from hlo_verify.linter import buffers, transfers
from hlo_verify.linter.finding import Finding
from tools.lint_campaign.machine import faults
from tools.lint_campaign.mutations import OF_BYTES, OF_ORDER, Scheduled

MUTATIONS = {**OF_BYTES, **OF_ORDER}

FOLDERS = (
    Path(__file__).resolve().parents[2] / "testdata" / "scheduled",
    Path(__file__).resolve().parents[3] / "shared" / "corpora" / "scheduled",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.lint_campaign", description=__doc__)
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=700, help="no modules of more instructions (default: 700)")
    parser.add_argument("--derive", action="store_true", help="who reads what is found out from the module")
    parser.add_argument("--misses", action="store_true", help="name the mutants that are misjudged")
    arguments = parser.parse_args()
    began = time.process_time()
    names = [name for name in _names() if _is_clean(name, arguments.most, derive=arguments.derive)]
    counts: Counter[tuple[str, str]] = Counter()
    random = Random(arguments.seed)
    while counts.total() < arguments.mutants:
        name, seed = random.choice(names), random.randrange(1 << 31)
        kind = random.choice(list(MUTATIONS))
        judged = judge(read(name), kind, seed, derive=arguments.derive)
        if judged is None:
            continue
        outcome, said = judged
        counts[kind, outcome] += 1
        if arguments.misses and outcome in ("missed", "false alarm"):
            print(f"{outcome}: {name} {kind} {seed}: {said}")
    _print(counts)
    print(f"{counts.total()} mutants of {len(names)} modules, {time.process_time() - began:.0f} s of a processor")
    return 1 if any(outcome == "false alarm" for _, outcome in counts) else 0


def judge(given: Scheduled, kind: str, seed: int, *, derive: bool = False) -> tuple[str, str] | None:
    """Whether the linter is right about a mutant: `found`, `clean`, `missed` or `false alarm`, with what was changed.

    None where there was nothing to change.
    """
    said = MUTATIONS[kind](given, Random(seed))
    if not said:
        return None
    if kind in OF_ORDER:
        findings = list(transfers.check(given.module))
        return ("found" if findings else "missed"), said
    wrong = faults(given.module, given.allocations, given.lifetimes)
    findings = _findings(given, derive=derive)
    seen = f"{said}; {wrong[0] if wrong else findings[0].message if findings else ''}"
    if wrong:
        return ("found" if findings else "missed"), seen
    return ("false alarm" if findings else "clean"), seen


def _findings(given: Scheduled, *, derive: bool) -> list[Finding]:
    return list(buffers.check(given.module, given.allocations, None if derive else given.lifetimes))


def read(path: Path) -> Scheduled:
    """A module with what XLA wrote beside it."""
    stem = path.name.removesuffix(".hlo.gz")

    def text(what: str) -> str:
        return gzip.decompress(path.with_name(f"{stem}.{what}.gz").read_bytes()).decode()

    return Scheduled(parse_hlo(text("hlo")), parse_assignment(text("buffers.txt")), parse_values(text("values.txt")))


def _names() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted(folder.glob("*.values.txt.gz")):
            yield path.with_name(f"{path.name.removesuffix('.values.txt.gz')}.hlo.gz")


def _is_clean(path: Path, most: int, *, derive: bool) -> bool:
    """Whether nothing is wrong with a module before it is changed, by the bytes and by the linter."""
    given = read(path)
    if sum(len(one.instructions) for one in given.module.computations.values()) > most:
        return False
    return not faults(given.module, given.allocations, given.lifetimes) and not _findings(given, derive=derive)


def _print(counts: Counter[tuple[str, str]]) -> None:
    outcomes = ("found", "missed", "clean", "false alarm")
    print(f"| mutation | {' | '.join(outcomes)} |\n|---|{'--:|' * len(outcomes)}")
    for kind in MUTATIONS:
        print(f"| {kind} | {' | '.join(str(counts[kind, outcome]) for outcome in outcomes)} |")


if __name__ == "__main__":
    sys.exit(main())
