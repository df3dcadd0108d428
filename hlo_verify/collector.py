"""Python's garbage collector, which finds nothing of ours and would look through all terms again and again."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = 100_000
"""So many objects are made before the collector looks; Python's own setting is 700, which costs a fifth of a proof."""

_lock = threading.Lock()
_inside = 0
_before = gc.get_threshold()


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Have the collector look less often: operations and terms have no cycles.

    It belongs to the whole process, whose other threads may need it: it stays on, and is as it was when the last thread
    is done. Where it is set to look less often already, or not at all, nothing is changed.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _inside, _before
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = gc.get_threshold()
            if 0 < _before[0] < SELDOM:
                gc.set_threshold(SELDOM, *_before[1:])


def _leave() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if not _inside and gc.get_threshold()[0] == SELDOM:
            gc.set_threshold(*_before)
