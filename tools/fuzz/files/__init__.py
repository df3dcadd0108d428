"""Damaged files: none may end hlo-verify, make it hang or meet a defect; the most that one may be is an input error.

`python -m tools.fuzz files --count N --seed S` damages the modules of `testdata/`, in every format, and runs the
command line on them in workers that are replaced. It prints how they ended, and the seed and number of those that
failed; `--show NUMBER --seed S` writes such a file to standard output.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter

from hlo_verify.workers import Lost, Pool
from tools.fuzz.files.trial import Trial, attempt

SECONDS = 120.0
MEMORY = 6 << 30


def run(seed: int, numbers: range, jobs: int) -> tuple[Counter[str], list[tuple[int, str]]]:
    """How the trials ended, and the numbers of those that failed, with what is known."""
    ends: Counter[str] = Counter()
    failures = []
    with Pool(attempt, jobs=jobs, seconds=SECONDS, memory=MEMORY, quiet=True) as pool:
        for number, answer in pool.answers([Trial(seed, number) for number in numbers]):
            said = f"FAILED: the worker {answer.reason}" if isinstance(answer, Lost) else answer
            ends[said.split(":")[0]] += 1
            if said.startswith("FAILED"):
                failures.append((numbers[number], said))
                print(f"--seed {seed} --show {numbers[number]}: {said}", file=sys.stderr, flush=True)
    return ends, failures


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz files", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="how many files to damage")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--seed", type=int, help="a new one if not given")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, metavar="NUMBER", help="write that damaged file to standard output")
    arguments = parser.parse_args(argv)
    seed = random.SystemRandom().randrange(1 << 31) if arguments.seed is None else arguments.seed
    if arguments.show is not None:
        sys.stdout.buffer.write(Trial(seed, arguments.show).make()[1])
        return 0
    numbers = range(arguments.first, arguments.first + arguments.count)
    ends, failures = run(seed, numbers, arguments.jobs)
    print(f"{arguments.count} damaged files, seed {seed}: {', '.join(f'{n} {end}' for end, n in ends.most_common())}")
    return 1 if failures else 0
