"""Worker processes: one that is killed, hangs, dies or eats memory loses its own task, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_verify.workers import Lost, Pool

MEMORY = 1 << 28
ROOT = Path(__file__).resolve().parents[1]


def work(task: tuple[str, int]) -> int:
    """What the workers run here."""
    kind, n = task
    if kind == "hang":
        while True:
            time.sleep(60)
    if kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "leave":
        os._exit(7)
    if kind == "eat":
        return len(bytearray(n))
    if kind == "fail":
        raise ValueError(f"no {n}")
    if kind == "pid":
        return os.getpid()
    return n * n


def test_answers_are_in_order_for_any_number_of_jobs() -> None:
    tasks = [("square", n) for n in range(20)]
    for jobs in (1, 3):
        with Pool(work, jobs=jobs, seconds=20, memory=MEMORY) as pool:
            assert pool.map(tasks) == [n * n for n in range(20)]


def test_what_goes_wrong_is_one_lost_task() -> None:
    tasks = [("square", 1), ("hang", 0), ("die", 0), ("eat", 1 << 30), ("leave", 0), ("fail", 3), ("square", 2)]
    with Pool(work, jobs=2, seconds=1, memory=MEMORY) as pool:
        found = pool.map(tasks)
    assert (found[0], found[6]) == (1, 4)
    reasons = [lost.reason for lost in found if isinstance(lost, Lost)]
    assert reasons == [
        "took more than 1 s",
        "was ended by signal 9",
        "needed more than 256 MiB",
        "ended with exit status 7",
        "failed: ValueError: no 3",
    ]


def test_kill_a_worker_in_the_middle() -> None:
    with Pool(work, jobs=1, seconds=20, memory=MEMORY) as pool:
        answers = pool.answers([("square", 1), ("hang", 0), ("square", 3)])
        assert next(answers) == (0, 1)
        (victim,) = pool.processes
        # the worker is given its next task as the generator goes on: end it from beside, once it hangs
        killer = threading.Timer(0.5, os.kill, (victim, signal.SIGKILL))
        killer.start()
        assert next(answers) == (1, Lost("was ended by signal 9"))
        assert next(answers) == (2, 9)
        assert pool.processes != (victim,)
        killer.join()


def test_a_worker_that_is_stopped_or_ended_before_its_task() -> None:
    long = ("square", 0, "x" * (1 << 24))  # more than the system takes for somebody who does not listen
    with Pool(_number, jobs=1, seconds=1, memory=MEMORY) as pool:
        assert pool.map([("square", 1, "")]) == [1]
        os.kill(pool.processes[0], signal.SIGSTOP)
        assert [isinstance(found, Lost) for found in pool.map([long, long])] == [True, False]
        os.kill(pool.processes[0], signal.SIGKILL)
        assert pool.map([("square", 2, ""), ("square", 3, "")])[1] == 9


def _number(task: tuple[str, int, object]) -> int:
    return work(task[:2])


def test_workers_that_do_not_start_lose_their_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Pool(work, jobs=2, seconds=20, memory=MEMORY) as pool:
        assert pool.map([("square", 1)] * 3) == [Lost("did not start")] * 3
    monkeypatch.setattr(sys, "executable", "/no/such/file")
    with Pool(work, jobs=2, seconds=20, memory=MEMORY) as pool:
        assert pool.map([("square", 1)]) == [Lost("did not start")]


def test_something_too_deep_is_lost() -> None:
    deep: object = ()
    for _ in range(100_000):
        deep = (deep,)
    with Pool(_number, jobs=1, seconds=20, memory=MEMORY) as pool:
        lost, found = pool.map([("square", 1, deep), ("square", 2, "")])
    assert isinstance(lost, Lost)
    assert found == 4


def test_workers_are_replaced_after_so_many_tasks() -> None:
    with Pool(work, jobs=1, seconds=20, memory=MEMORY, tasks=2) as pool:
        first, second, third = pool.map([("pid", 0)] * 3)
    assert first == second != third


def test_leaving_ends_every_process() -> None:
    with pytest.raises(KeyboardInterrupt), Pool(work, jobs=2, seconds=60, memory=MEMORY) as pool:
        for n, _ in pool.answers([("square", 1), ("hang", 0), ("hang", 0)]):
            assert n == 0
            processes = pool.processes
            raise KeyboardInterrupt
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_worker_ends_whose_parent_was_killed() -> None:
    program = (
        "from hlo_verify.workers import Pool\nfrom tests.test_workers import work\n"
        "pool = Pool(work, jobs=1)\npool.start()\n"
        "answers = pool.answers([('square', 1), ('hang', 0)])\nnext(answers)\nprint(*pool.processes, flush=True)\n"
        "next(answers)"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
    until = time.monotonic() + 60
    while time.monotonic() < until and _lives(worker):
        time.sleep(0.1)
    assert not _lives(worker)


def _lives(process: int) -> bool:
    """Whether it runs: one that nobody waits for is no more either."""
    try:
        with open(f"/proc/{process}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def told_first(task: int, tell: Callable[[str], None]) -> int:
    tell(f"at {task}")
    return task


def test_what_workers_tell_is_heard_before_the_answer() -> None:
    heard: list[tuple[int, str]] = []
    with Pool(told_first, jobs=2, hears=lambda *said: heard.append(said)) as pool:
        for number, answer in pool.answers([7, 8]):
            assert (number, f"at {answer}") in heard
    assert sorted(heard) == [(0, "at 7"), (1, "at 8")]


def dies_at_first(mark: str) -> str:
    if not os.path.exists(mark):
        open(mark, "w").close()
        os._exit(7)
    return mark


def test_a_task_that_a_worker_died_of_is_tried_again(tmp_path: Path) -> None:
    marks = [str(tmp_path / name) for name in "abc"]
    with Pool(dies_at_first, jobs=2, tries=2) as pool:
        assert pool.map(marks) == marks
    with Pool(work, jobs=1, tries=3) as pool:
        assert pool.map([("die", 0), ("square", 2), ("fail", 3)]) == [
            Lost("was ended by signal 9, 3 times"),
            4,
            Lost("failed: ValueError: no 3"),
        ]
