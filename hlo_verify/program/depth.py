"""Modules that nest deeply: how deep the passes may recurse, and what is said of a module that is deeper.

The passes recurse where a module nests: calls, branches, loops, and the terms that come of them. Python allows 1000
frames by default, which 300 functions that call one another are enough to use up.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError

FRAMES = 10_000
"""Frames of Python: enough for 1000 branches inside of one another, or for 2000 functions that call one another."""

STACK = 64 << 20
"""Bytes of stack: a frame that C code stands between takes 2.5 KiB at most, as measured in Python 3.11."""

P = ParamSpec("P")
R = TypeVar("R")


def deeply(function: Callable[P, R]) -> Callable[P, R]:
    """The function with room for `FRAMES`; it raises `InputError` for a module that is nested more deeply than that."""

    @functools.wraps(function)
    def roomy(*args: P.args, **kwargs: P.kwargs) -> R:
        before = sys.getrecursionlimit()
        if before < FRAMES and _stack_grows():
            sys.setrecursionlimit(FRAMES)
        try:
            return function(*args, **kwargs)
        except RecursionError as error:
            raise InputError(
                "a module is nested too deeply: its calls, branches, loops or terms are inside of one another more "
                f"often than {sys.getrecursionlimit()} frames of Python can follow; verify a part of it",
                Input.UNSUPPORTED_MODULE,
            ) from error
        finally:
            sys.setrecursionlimit(before)

    return roomy


def _stack_grows() -> bool:
    """Whether this thread's stack may grow to `STACK`; the main thread's does, up to a limit that can be raised."""
    if threading.current_thread() is not threading.main_thread() or not sys.platform.startswith("linux"):
        return False
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft != resource.RLIM_INFINITY and soft < STACK:
        if hard != resource.RLIM_INFINITY and hard < STACK:
            return False
        resource.setrlimit(resource.RLIMIT_STACK, (STACK, hard))
    return True
