"""Several processes: the same reports in the same order as of one, whatever becomes of a process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hlo_verify import cli
from hlo_verify.in_parallel import TRIES, cores, in_parallel, processes
from hlo_verify.jobs import Job
from hlo_verify.render import Failure, Outcome
from hlo_verify.render.progress import Bar
from hlo_verify.report import Report, Result, Verdict
from hlo_verify.tasks import Asking, Task
from hlo_verify.workers import Pool, Told

TESTDATA = Path(__file__).resolve().parents[1] / "testdata"
SIDES = (
    "0001.spmd-partitioner.after_shardy-xla.before_spmd-partitioning.txt",
    "0002.spmd-partitioner.after_spmd-partitioning.before_control-dep-rewriter.txt",
)
PAIRS = {
    "a": ("mlp_2d/logical", "mlp_2d/partitioned"),
    "b": ("mlp_tp/logical", "mlp_tp/broken_dropped_psum"),
    "c": ("mlp_tp/logical", "mlp_tp/partitioned"),
    "d": ("mlp_tp/logical", "mlp_2d/partitioned"),
}
"""A folder's modules: two that are right, one that is wrong, and one that is no pair."""


def fill(folder: Path) -> Path:
    for n, (name, pair) in enumerate(PAIRS.items()):
        for side, file in zip(SIDES, pair, strict=True):
            shutil.copyfile(TESTDATA / f"{file}.hlo.gz", folder / f"module_{n:04}.jit_{name}.{side}.gz")
    (folder / f"module_0009.jit_half.{SIDES[0]}").write_text("HloModule m")
    return folder


def without_times(said: Any) -> Any:
    """A report but for its seconds."""
    if isinstance(said, list):
        return [without_times(each) for each in said]
    if isinstance(said, dict):
        return {key: without_times(value) for key, value in said.items() if "seconds" not in key}
    return said


def test_reports_are_the_same_for_any_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, told = fill(tmp_path), []
    for jobs in ("1", "3"):
        assert cli.main([str(folder), "--jobs", jobs, "--format", "json"]) == 1
        told.append(without_times(json.loads(capsys.readouterr().out)))
    assert told[0] == told[1]
    names = ["jit_a", "jit_b", "jit_c", "jit_d", "jit_half"]
    assert [each["name"].split(".")[1] for each in told[0]["modules"]] == names


def job(name: str, folder: Path | None = None) -> Job:
    return Job(name, Path(name), Path(name) if folder is None else folder)


def told_by(function: Callable[..., Outcome], started: list[Pool[Task, Outcome]] | None = None) -> Any:
    """What starts workers that do something else than verify."""

    def start(count: int, hears: Told) -> Pool[Task, Outcome]:
        pool: Pool[Task, Outcome] = Pool(function, jobs=count, tries=TRIES, hears=hears, quiet=True)
        if started is not None:
            started.append(pool)
        return pool

    return start


def proved(task: Task, _: object = None) -> Report:
    return Report(task.job.name, (Result(0, "y", Verdict.PROVED),), (), 8, 0.1)


def killed_once(task: Task, _: object) -> Report:
    """Killed where it is the first time that somebody tries."""
    mark = task.asking.project / task.job.name
    if task.job.name.startswith("dies") and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return proved(task)


def killed(task: Task, _: object) -> Report:
    if task.job.name == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return proved(task)


def hangs(task: Task, tell: Callable[[object], None]) -> Report:
    if task.job.name == "hangs":
        time.sleep(1)
        tell((3, 7))
        time.sleep(600)
    return proved(task)


def test_a_killed_worker_costs_nothing_where_the_next_one_lives(tmp_path: Path) -> None:
    jobs = [job("one"), job("dies"), job("dies too"), job("two")]
    found = list(in_parallel(jobs, Asking(tmp_path), 2, Bar(False), told_by(killed_once)))
    assert found == [(n, proved(Task(each, Asking(tmp_path)))) for n, each in enumerate(jobs)]


def test_a_task_that_kills_every_worker_is_lost_alone(tmp_path: Path) -> None:
    jobs = [job("one"), job("dies"), job("two")]
    (_, one), (_, lost), (_, two) = in_parallel(jobs, Asking(tmp_path), 2, Bar(False), told_by(killed))
    assert [one, two] == [proved(Task(each, Asking(tmp_path))) for each in (jobs[0], jobs[2])]
    assert isinstance(lost, Failure) and lost.internal and lost.name == "dies"
    assert "was ended by signal 9, 2 times" in lost.diagnostic.message


class Impatient(Bar):
    """Interrupts when it first hears how far a task is."""

    def __call__(self, done: int, total: int) -> None:
        if (done, total) == (3, 7):
            raise KeyboardInterrupt


def test_an_interrupt_ends_all_and_keeps_what_is_known(tmp_path: Path) -> None:
    started: list[Pool[Task, Outcome]] = []
    jobs = [job("hangs"), job("one"), job("two")]
    found: list[Outcome] = []
    processes: list[int] = []

    def outcomes() -> Iterator[Outcome]:
        start = told_by(hangs, started)
        for _, each in in_parallel(jobs, Asking(tmp_path), 2, Impatient(False), start):
            processes.extend(started[0].processes)
            yield each

    with pytest.raises(KeyboardInterrupt):
        found.extend(outcomes())
    assert [each.name for each in found] == ["one", "two"]
    assert not started[0].processes
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_workers_tell_how_far_they_are(tmp_path: Path) -> None:
    heard: list[tuple[int, int, str]] = []

    class Listening(Bar):
        def __call__(self, done: int, total: int) -> None:
            heard.append((done, total, self.description))
            if (done, total) == (3, 7):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(in_parallel([job("hangs"), job("one")], Asking(tmp_path), 2, Listening(False), told_by(hangs)))
    assert heard[-1] == (3, 7, "hangs")


def test_what_is_there(tmp_path: Path) -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)
    with processes(2, lambda *_: None) as pool:
        assert pool.jobs == 2
