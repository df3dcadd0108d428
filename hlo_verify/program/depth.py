"""Modules that nest deeply: how deep the passes may recurse, and what is said of a module that is deeper.

The passes recurse where a module nests: calls, branches, loops, and the terms that come of them. Python allows 1000
frames by default, which 300 functions that call one another are enough to use up.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import ParamSpec, TypeVar

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError

FRAMES = 10_000
"""Frames of Python: enough for 1000 branches inside of one another, or for 2000 functions that call one another."""

STACK = 64 << 20
"""Bytes of stack: a frame that C code stands between takes 2.5 KiB at most, as measured in Python 3.11."""

P = ParamSpec("P")
R = TypeVar("R")

_has_room: ContextVar[bool] = ContextVar("room for frames", default=False)
_lock = threading.Lock()
_inside = 0
_before = sys.getrecursionlimit()


def deeply(function: Callable[P, R]) -> Callable[P, R]:
    """The function with room for `FRAMES`; it raises `InputError` for a module that is nested more deeply than that.

    The main thread's stack grows; any other thread has one of a fixed size, and a call from there runs in a thread of
    its own.
    """

    @functools.wraps(function)
    def roomy(*args: P.args, **kwargs: P.kwargs) -> R:
        run = functools.partial(function, *args, **kwargs)
        try:
            if _has_room.get():
                return run()
            if threading.current_thread() is not threading.main_thread():
                return _on_its_own_stack(run)
            with _frames(FRAMES if _stack_grows() else 0):
                return run()
        except RecursionError as error:
            raise InputError(
                "a module is nested too deeply: its calls, branches, loops or terms are inside of one another more "
                f"often than {sys.getrecursionlimit()} frames of Python can follow; verify a part of it",
                Input.UNSUPPORTED_MODULE,
            ) from error

    return roomy


@contextmanager
def _frames(count: int) -> Iterator[None]:
    """Allow so many frames, or as many as are allowed now. That is a setting of the process: it is as it was when the
    last thread is done."""
    global _inside, _before
    with _lock:
        if not _inside:
            _before = sys.getrecursionlimit()
        _inside += 1
        sys.setrecursionlimit(max(count, sys.getrecursionlimit()))
    token = _has_room.set(True)
    try:
        yield
    finally:
        _has_room.reset(token)
        with _lock:
            _inside -= 1
            if not _inside:
                sys.setrecursionlimit(_before)


def _on_its_own_stack(run: Callable[[], R]) -> R:
    """What a call gives, in a thread with a stack of `STACK`."""
    answer: Future[R] = Future()

    def work() -> None:
        try:
            with _frames(FRAMES):
                answer.set_result(run())
        except BaseException as error:
            answer.set_exception(error)

    thread = threading.Thread(target=copy_context().run, args=(work,))
    with _lock:
        size = threading.stack_size(STACK)
        try:
            thread.start()
        finally:
            threading.stack_size(size)
    thread.join()
    return answer.result()


def _stack_grows() -> bool:
    """Whether the main thread's stack may grow to `STACK`: it does up to a limit, that can be raised."""
    if not sys.platform.startswith("linux"):
        return False
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft != resource.RLIM_INFINITY and soft < STACK:
        if hard != resource.RLIM_INFINITY and hard < STACK:
            return False
        resource.setrlimit(resource.RLIMIT_STACK, (STACK, hard))
    return True
