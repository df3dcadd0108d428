"""A progress bar on stderr, for work that takes longer than a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 1.0
"""Seconds of work before the bar appears."""


class Bar:
    """A context manager that is called with (done, total); total is 0 while it is not known how much there is to do.

    Draws nothing where `shown` is false, and nothing before `PATIENCE` has passed. Calls may come often: the bar
    redraws itself a few times a second.
    """

    def __init__(self, shown: bool, description: str = "") -> None:
        self.description = description
        self._shown = shown
        self._start = time.monotonic()
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def __call__(self, done: int, total: int) -> None:
        if not self._shown:
            return
        if self._progress is None and time.monotonic() - self._start >= PATIENCE:
            self._open()
        if self._progress is not None and self._task is not None:
            self._progress.update(
                self._task, description=self.description, completed=done, total=total if total > 0 else None
            )

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        name = TextColumn("{task.description}", markup=False)
        columns = (name, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(file=sys.stderr), transient=True)
        self._task = self._progress.add_task(self.description, total=None)
        self._progress.start()
