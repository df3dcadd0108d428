"""Which targets of custom calls users have given a meaning; `hlo_verify.custom_calls` is where they say it.

What is said without a session holds for all, the package's default; what is said on one holds there, and comes before.
A verification sees what was said when it began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Said:
    """What was said of a target."""

    words: str
    """For reports: a verdict leans on it."""
    rule: Callable[..., Any]
    """An `ops.values.Rule`."""


DEFAULT: dict[str, Said] = {}
"""By target, for all sessions."""

_seen: ContextVar[Mapping[str, Said] | None] = ContextVar("what was said of custom calls", default=None)


def registered() -> Mapping[str, Said]:
    """What was said, by target: what the verification of this thread sees, or the default outside of one."""
    seen = _seen.get()
    return DEFAULT if seen is None else seen


@contextmanager
def as_said(own: Mapping[str, Said]) -> Iterator[None]:
    """Let this thread see what was said up to now, and before that what a session has of its own."""
    token = _seen.set({**registered(), **own})
    try:
        yield
    finally:
        _seen.reset(token)
