"""What a session remembers: the tables that make equal terms one object, and answers that are worked out once.

Code that builds terms needs them everywhere and often, so they are no arguments of it. A module names what it needs:

    _signs: Callable[[], dict[Poly, int]] = per_session("signs", dict)

and `_signs()` is the table of the session that is on in this thread. Sessions share nothing, and what they remember
goes with them. Who makes terms without a session has tables that last as long as the process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

_kept: list[tuple[ContextVar[Any], Callable[[], Any]]] = []
"""Everything that each session has for itself, and how it is made; filled where modules are imported, then left."""

_of_no_session: dict[str, Any] = {}


def per_session(name: str, make: Callable[[], T], outside: Callable[[], T] | None = None) -> Callable[[], T]:
    """What gives the session's own value, which `make` makes when a session starts; `outside` makes that of no session.

    It is asked for whenever a term is built: the method of a context variable, which takes 10 ns. Raises `ValueError`
    for a name that is taken: two that shared one table would read each other's answers.
    """
    if name in _of_no_session:
        raise ValueError(f'two things that a session keeps are called "{name}"; rename one of them')
    value = _of_no_session[name] = (outside or make)()
    variable = ContextVar(name, default=value)
    _kept.append((variable, make))
    return variable.get


def once_a_session(function: Function) -> Function:
    """The function, which remembers its answers for as long as the session lasts."""
    remembering = per_session(f"{function.__module__}.{function.__qualname__}", lambda: functools.cache(function))

    @functools.wraps(function)
    def asked(*arguments: Any) -> Any:
        return remembering()(*arguments)

    return asked  # type: ignore[return-value]


class Memory:
    """The values that one session has of all that is kept for each."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        """By name; empty while the session is not on."""

    @contextmanager
    def on(self) -> Iterator[None]:
        """Remember here what this thread does meanwhile, from nothing to nothing."""
        before, self.values = self.values, {}
        try:
            with self.resumed():
                yield
        finally:
            self.values = before

    @contextmanager
    def resumed(self) -> Iterator[None]:
        """Remember here what this thread does meanwhile, and go on with what is remembered already."""
        values = self.values or {variable.name: make() for variable, make in _kept}
        tokens = [(variable, variable.set(values[variable.name])) for variable, _ in _kept]
        self.values = values
        try:
            yield
        finally:
            for variable, token in tokens:
                variable.reset(token)

    def forget(self) -> None:
        """Forget everything, where it is not on."""
        self.values = {}

    def start_anew(self) -> None:
        """Forget everything, where it is on: terms made before must not be mixed with later ones."""
        self.values = {variable.name: make() for variable, make in _kept}
        for variable, _ in _kept:
            variable.set(self.values[variable.name])


def names() -> list[str]:
    """What each session keeps."""
    return [variable.name for variable, _ in _kept]


def outside() -> dict[str, int]:
    """How much is kept without a session, by name."""
    sizes = {name: _size(value) for name, value in _of_no_session.items()}
    return {name: size for name, size in sizes.items() if size}


def _size(value: Any) -> int:
    if hasattr(value, "cache_info"):
        return int(value.cache_info().currsize)
    return len(value) if isinstance(value, dict | set) else 0
