"""Ends what takes long in the middle of one term: whoever makes it looks up now and then whether it may go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_looked_at: ContextVar[Callable[[], None] | None] = ContextVar("looked at", default=None)


@contextmanager
def looking(check: Callable[[], None]) -> Iterator[None]:
    """Have `look` do this in this thread."""
    token = _looked_at.set(check)
    try:
        yield
    finally:
        _looked_at.reset(token)


def look() -> None:
    """Called while a term is made that may take long: raises what ends it, where it may end there."""
    check = _looked_at.get()
    if check is not None:
        check()
