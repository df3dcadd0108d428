"""A progress bar on stderr, for work that takes longer than a second."""

from __future__ import annotations

import sys
import time
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hlo_verify.render.characters import one_line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 1.0
"""Seconds of work before the bar appears."""

WIDE = 60
"""Columns of a terminal that has room for a bar."""

COUNT, TIME = 13, 8
"""Columns that counts up to 999,999 and times take."""


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

    def works_on(self, name: str, left: int) -> None:
        """Say what is worked on, and how many more there are after it."""
        said = one_line(name)
        self.description = f"({left} left) {said}" if left else said

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
        from rich.table import Column

        console = Console(file=sys.stderr)
        one_line = partial(Column, no_wrap=True, overflow="crop")
        wide = console.width >= WIDE
        # On a narrow terminal the bar gives way, and then the end of the name.
        room = console.width - (COUNT + TIME + 12 if wide else COUNT + 2)
        name = TextColumn("{task.description}", markup=False, table_column=one_line(max_width=max(room, 8)))
        count = MofNCompleteColumn(table_column=one_line())
        columns = (name, BarColumn(), count, TimeElapsedColumn(table_column=one_line())) if wide else (name, count)
        self._progress = Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task(self.description, total=None)
        self._progress.start()
