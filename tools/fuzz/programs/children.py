"""Pairs judged in child processes. One that is killed, or aborts, costs the pair that it was at, and nothing else.

A `multiprocessing.Pool` waits for ever for what a killed worker had, so that there is none here: each child sends its
records one by one, and the end of its pipe says that it is gone.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

Record = dict[str, Any]
Work = Callable[[int], Record]

ABORT = "abort"
"""The verdict of a pair that ended the process that judged it twice."""

CHUNK = 1000
"""Pairs that a process judges before another one takes its place, so that what it keeps does not add up."""


def judged(work: Work, numbers: Sequence[int], jobs: int) -> Iterator[Record]:
    """What `work`, which a process that is started anew can import, returns of each of those numbers, as they come."""
    waiting = deque(deque(numbers[k : k + CHUNK]) for k in range(0, len(numbers), CHUNK))
    again: set[int] = set()
    children: dict[Connection[Any, Any], _Child] = {}
    try:
        while waiting or children:
            while waiting and len(children) < jobs:
                child = _Child(work, waiting.popleft())
                children[child.connection] = child
            for connection in wait(list(children)):
                assert isinstance(connection, Connection)
                child = children[connection]
                try:
                    record = connection.recv()
                    child.left.popleft()
                except (EOFError, OSError):
                    record = _lost(child, again)
                    child.end()
                if record is not None:
                    yield record
                if not child.left or child.is_over:
                    child.end()
                    del children[connection]
                    if child.left:
                        waiting.appendleft(child.left)
    finally:
        for child in children.values():
            child.end()


def _lost(child: _Child, again: set[int]) -> Record | None:
    """A child is gone: the number that it was at is tried once more, and then given up with a record."""
    number = child.left[0]
    if number not in again:
        again.add(number)
        return None
    child.process.join()
    child.left.popleft()
    why = f"the process that judged it ended with status {child.process.exitcode}, twice"
    return {"number": number, "truth": "none", "verdict": ABORT, "surprise": ABORT, "why": why}


class _Child:
    """A process, and the numbers that it did not send a record of yet, in order."""

    def __init__(self, work: Work, numbers: deque[int]) -> None:
        context = multiprocessing.get_context("spawn")
        self.left, self.is_over = numbers, False
        self.connection, there = context.Pipe(duplex=False)
        self.process = context.Process(target=_serve, args=(there, work, tuple(numbers)), daemon=True)
        self.process.start()
        there.close()

    def end(self) -> None:
        """End it, if it did not end by itself."""
        if not self.is_over:
            self.is_over = True
            self.connection.close()
            self.process.kill()
            self.process.join()


def _serve(connection: Connection[Any, Any], work: Work, numbers: Sequence[int]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    for number in numbers:
        connection.send(work(number))
