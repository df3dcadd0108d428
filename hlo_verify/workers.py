"""Worker processes for questions that may hang, eat memory or die: each loses its own question, nothing else.

A task goes to a worker over a socket and its answer comes back over it; a worker that ends closes its end. A worker's
memory may be limited by the operating system (RLIMIT_AS, above what it has when it starts), its time by the parent,
which kills it at the deadline. A worker that was killed or that died is replaced, and one that has answered so many
tasks is too. One whose parent is no more ends by itself.

Why not the standard library's pools: `ProcessPoolExecutor(max_tasks_per_child=...)` deadlocks on Python 3.11, and what
starts processes afresh there imports the user's main program again.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import IO, Any, Generic, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

TASKS = 200
"""After so many tasks a worker is replaced: solvers give memory back only when they end."""

STARTING = 60.0
"""The most seconds that a worker may take to start."""

_WORDS = 400
"""Characters of last words: XLA prints whole instructions."""

FOREVER = 1e7
"""Seconds, some months, of what may take as long as it wants."""

LOOK = 3600.0
"""The most seconds to wait for a word of any worker: the system cannot wait for months."""

ALONE = 2.0
"""Seconds between two looks of a worker whether its parent is still there."""

STARTS = 3
"""After so many workers in a row that ended before they were ready, no more are started."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A task without an answer: its worker ran out of time or memory, or died."""

    reason: str


Tell = Callable[[Any], None]
"""What a worker says something with."""

Told = Callable[[int, Any], None]
"""Hears what workers say of the task of that number before they have an answer."""


@dataclass(frozen=True, slots=True)
class _Died:
    """How a worker ended that had a task."""

    reason: str

    def lost(self, times: int) -> Lost:
        return Lost(f"{self.reason}, {times} times" if times > 1 else self.reason)


@dataclass(slots=True)
class _Worker:
    process: subprocess.Popen[bytes]
    pipe: Connection
    errors: IO[bytes] | None
    deadline: float
    seconds: float = STARTING
    """How long it may take for what it does."""
    ready: bool = False
    done: int = 0
    task: int | None = None


@dataclass(slots=True)
class Pool(Generic[Task, Result]):
    """`jobs` processes that apply a function (of a module, so that it can be imported there) to tasks.

    Each task has `seconds` of wall time and `memory` bytes of address space beyond what a worker starts with, where
    there are such limits. Use it as a context manager: leaving it, by whatever way, ends every process.
    """

    function: Callable[[Task], Result] | Callable[[Task, Tell], Result]
    """Takes a task; where somebody hears, also a function that hands something to them."""
    jobs: int
    seconds: float = FOREVER
    memory: int | None = None
    tasks: int = TASKS
    quiet: bool = False
    """Whether what workers write to stderr stays off the terminal; the last words of one that died are its reason."""
    tries: int = 1
    """How often a task may be given to a worker that dies of it. One that failed, or ran out of time or memory, would
    do so again."""
    hears: Told | None = None
    _workers: list[_Worker] = field(default_factory=list)
    _failed: int = 0
    """How many workers in a row have not started."""

    def __enter__(self) -> Pool[Task, Result]:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            self._end(worker)
        self._workers.clear()

    def start(self) -> None:
        """Start a worker, if there is none, without waiting for it."""
        if not self._workers:
            self._start()

    @property
    def processes(self) -> tuple[int, ...]:
        """The ids of the processes at work."""
        return tuple(worker.process.pid for worker in self._workers)

    def map(self, tasks: Sequence[Task], seconds: float | None = None) -> list[Result | Lost]:
        """The answers, in the order of the tasks, whatever the number of jobs."""
        found: dict[int, Result | Lost] = dict(self.answers(tasks, seconds))
        return [found[n] for n in range(len(tasks))]

    def answers(self, tasks: Sequence[Task], seconds: float | None = None) -> Iterator[tuple[int, Result | Lost]]:
        """The number of each task with its answer, as they come. Where no worker can be started, all are lost.

        Each of these tasks has `seconds`, where that is less than what tasks of this pool have.
        """
        waiting = deque(range(len(tasks)))
        died: Counter[int] = Counter()
        while waiting or self._busy():
            while self._failed < STARTS and len(self._workers) < min(self.jobs, len(waiting) + self._busy()):
                self._start()
            if not self._workers:
                break
            for worker in self._workers:
                if worker.ready and worker.task is None and waiting:
                    number = waiting.popleft()
                    try:
                        contents = pickle.dumps(tasks[number])
                    except RecursionError:
                        yield number, Lost("could not be given something so deep")
                    else:
                        self._give(worker, number, contents, min(self.seconds, seconds or self.seconds))
            self._watch()
            for worker in list(self._workers):
                for number, found in self._hear(worker):
                    if isinstance(found, _Died):
                        died[number] += 1
                        if died[number] < self.tries:
                            waiting.append(number)
                            continue
                        found = found.lost(died[number])
                    yield number, found
        for number in waiting:
            yield number, Lost("did not start")

    def _busy(self) -> int:
        return sum(worker.task is not None for worker in self._workers)

    def _start(self) -> None:
        try:
            self._workers.append(self._started())
        except OSError:  # the system has no process or memory to spare
            self._failed += 1

    def _started(self) -> _Worker:
        here, there = socket.socketpair()
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):  # a worker that is stopped does not stop its parent
            here.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", int(self.seconds) + 1, 0))
        serves = f"serve({there.fileno()}, {os.getpid()})"
        program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; {serves}"
        errors = tempfile.TemporaryFile() if self.quiet else None  # noqa: SIM115 (as long as the worker lives)
        with here, there:
            process = subprocess.Popen(
                [sys.executable, "-c", program],
                pass_fds=(there.fileno(),),
                stdin=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # an interrupt from the terminal is for the parent, which ends its workers
            )
            pipe = Connection(here.detach())
        with contextlib.suppress(OSError):
            pipe.send((self.function, self.seconds, self.memory, self.hears is not None))
        return _Worker(process, pipe, errors, time.monotonic() + STARTING)

    def _give(self, worker: _Worker, number: int, contents: bytes, seconds: float) -> None:
        worker.task, worker.seconds, worker.deadline = number, seconds, time.monotonic() + seconds
        with contextlib.suppress(OSError):  # it has died, or does not listen; `_hear` finds out
            worker.pipe.send_bytes(contents)

    def _watch(self) -> None:
        """Wait until a worker says something, ends, or is out of time."""
        active = [worker for worker in self._workers if worker.task is not None or not worker.ready]
        if active:
            left = min(worker.deadline for worker in active) - time.monotonic()
            wait([worker.pipe for worker in active], timeout=min(max(0.0, left), LOOK))

    def _hear(self, worker: _Worker) -> Iterator[tuple[int, Result | Lost | _Died]]:
        number = worker.task
        if number is None and worker.ready:
            return
        message: tuple[str, Any] | None = None
        ended = False
        try:
            if worker.pipe.poll():
                message = worker.pipe.recv()
        except (EOFError, OSError):
            ended = True
        if message is None:
            reason = self._lost(worker, ended)
            if reason is None:
                return
            self._workers.remove(worker)
            self._end(worker)
            if number is None:
                self._failed += 1
            else:
                yield number, _Died(reason) if ended else Lost(reason)
            return
        if message[0] == "ready":
            worker.ready, self._failed = True, 0
            return
        assert number is not None
        if message[0] == "told":
            if self.hears is not None:
                self.hears(number, message[1])
            return
        worker.task, worker.done = None, worker.done + 1
        if worker.done >= self.tasks or message[0] == "lost":
            self._workers.remove(worker)
            self._end(worker)
        yield number, Lost(message[1]) if message[0] == "lost" else message[1]

    def _lost(self, worker: _Worker, ended: bool) -> str | None:
        """Why a worker will not answer; None where it still may."""
        if ended:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(5)
            code = worker.process.poll()
            if code is None:
                return "went silent"
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit status {code}"
            return how + _last_words(worker.errors)
        if time.monotonic() >= worker.deadline:
            return f"took more than {worker.seconds:g} s"
        return None

    def _end(self, worker: _Worker) -> None:
        with contextlib.suppress(OSError):  # with what it has started, XLA that partitions for it
            os.killpg(worker.process.pid, signal.SIGKILL)
        worker.process.kill()
        worker.process.wait()
        worker.pipe.close()
        if worker.errors is not None:
            worker.errors.close()


_FATAL = re.compile(r"F\d{4} |terminate called|\s+what\(\)")
"""How XLA, and C++, say why they end a process."""


def _last_words(errors: IO[bytes] | None) -> str:
    if errors is None:
        return ""
    errors.seek(0)
    lines = errors.read().decode(errors="replace").splitlines()
    fatal = " | ".join(line.strip() for line in lines if _FATAL.match(line))
    return f": {fatal[:_WORDS]}" if fatal else ""


def serve(descriptor: int, parent: int) -> None:
    """A worker's life, on its end of the socket: what to do, then tasks."""
    pipe = Connection(descriptor)
    threading.Thread(target=_end_alone, args=(parent,), daemon=True).start()
    try:
        function, seconds, memory, tells = pipe.recv()
        if memory is not None:
            _limit(memory)
        given = ((lambda message: pipe.send(("told", message))),) if tells else ()
        pipe.send(("ready", None))
        while True:
            task = pipe.recv()
            signal.setitimer(signal.ITIMER_REAL, seconds + 1)  # in case that the parent is stopped
            answer = _answer(function, (task, *given), memory)
            signal.setitimer(signal.ITIMER_REAL, 0)
            pipe.send(answer)
    except (EOFError, OSError):
        os._exit(0)


def _end_alone(parent: int) -> None:
    """End this process, and what it has started, once its parent is another one."""
    while os.getppid() == parent:
        time.sleep(ALONE)
    os.killpg(0, signal.SIGKILL)


def _answer(function: Callable[..., Any], given: tuple[Any, ...], memory: int | None) -> tuple[str, Any]:
    try:
        return "answer", function(*given)
    except Exception as error:
        if not isinstance(error, MemoryError) and "out of memory" not in str(error):
            return "lost", f"failed: {type(error).__name__}: {error}"
        return "lost", "needed more memory than there is" if memory is None else f"needed more than {memory >> 20} MiB"


def _limit(memory: int) -> None:
    """Limit the address space to so many bytes more than it has now, where the system tells how much that is."""
    try:
        with open("/proc/self/statm") as status:
            used = int(status.read().split()[0]) * resource.getpagesize()
    except OSError:
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    wanted = used + memory
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
