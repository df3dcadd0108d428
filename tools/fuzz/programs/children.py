"""Pairs judged in child processes. One that is killed, or aborts, costs the pair that it was at, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hlo_verify.workers import Lost, Pool

Record = dict[str, Any]
Work = Callable[[int], Record]

ABORT = "abort"
"""The verdict of a pair that ended the process that judged it twice."""

CHUNK = 1000
"""Pairs that a process judges before another one takes its place, so that what it keeps does not add up."""


def judged(work: Work, numbers: Sequence[int], jobs: int) -> Iterator[Record]:
    """What `work`, which a process that is started anew can import, returns of each of those numbers, as they come."""
    pool: Pool[int, Record] = Pool(work, jobs=jobs, tasks=CHUNK, tries=2)
    with pool:
        for place, record in pool.answers(numbers):
            if isinstance(record, Lost):
                why = f"the process that judged it {record.reason}"
                record = {"number": numbers[place], "truth": "none", "verdict": ABORT, "surprise": ABORT, "why": why}
            yield record
