"""Tasks that several processes work on at a time: what comes of them is the same for any number of processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hlo_verify.jobs import Job
from hlo_verify.render.progress import Bar
from hlo_verify.tasks import Asking, Task, lost, run
from hlo_verify.workers import Lost, Pool, Told

if TYPE_CHECKING:
    from hlo_verify.render import Outcome

RECYCLED = 50
"""Tasks of one process: each takes seconds, and what solvers have taken they give back only at the end."""

TRIES = 2
"""How often a task is given to a process that dies of it: another one may have taken the memory."""


class Workers(Protocol):
    """Whoever works on tasks: processes of this machine, or of a cluster."""

    def answers(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome | Lost]]: ...


Starts = Callable[[int, Told], AbstractContextManager[Workers]]
"""Starts so many workers, and says who hears what they tell."""


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processes(jobs: int, hears: Told) -> Pool[Task, Outcome]:
    """So many processes of this machine."""
    return Pool(run, jobs=jobs, tasks=RECYCLED, quiet=True, tries=TRIES, hears=hears)


def in_parallel(
    jobs: Sequence[Job], asking: Asking, count: int, bar: Bar, start: Starts = processes
) -> Iterator[tuple[int, Outcome]]:
    """The number and the outcome of each job, in their order. The largest are begun first; an interrupt ends all
    workers, and those that are done come before it."""
    order = sorted(range(len(jobs)), key=lambda n: -_size(jobs[n]))
    share = replace(asking, jobs=max(1, asking.jobs // min(count, len(jobs))))
    tasks = [Task(jobs[n], share) for n in order]
    found: dict[int, Outcome] = {}
    given = 0
    shares = _Shares(bar, [Path(jobs[n].name).name for n in order])
    try:
        with start(count, shares.hear) as workers:
            for number, answer in workers.answers(tasks):
                shares.end(number)
                job = jobs[order[number]]
                found[order[number]] = lost(job, answer.reason) if isinstance(answer, Lost) else answer
                while given in found:
                    yield given, found.pop(given)
                    given += 1
    except KeyboardInterrupt:
        yield from sorted(found.items(), key=lambda each: each[0])
        raise


def _size(job: Job) -> int:
    """About how much there is to verify, in bytes; compressed ones count as they are."""
    total = 0
    for file in job.files:
        try:
            total += file.stat().st_size
        except OSError:
            continue
    return total


@dataclass(slots=True)
class _Shares:
    """How far those are that work at a time, on one bar."""

    bar: Bar
    names: Sequence[str]
    _at: dict[int, tuple[int, int]] = field(default_factory=dict)
    _ended: set[int] = field(default_factory=set)

    def hear(self, number: int, at: tuple[int, int]) -> None:
        if number not in self._ended:
            self._at[number] = at
        self._show()

    def end(self, number: int) -> None:
        self._ended.add(number)
        self._at.pop(number, None)
        self._show()

    def _show(self) -> None:
        left = len(self.names) - len(self._ended) - len(self._at)
        if self._at:
            self.bar.works_on(", ".join(self.names[number] for number in self._at), left)
            done, total = (sum(parts) for parts in zip(*self._at.values(), strict=True))
        else:  # nobody says how far he is
            done, total = len(self._ended), len(self.names)
        self.bar(done, total)
