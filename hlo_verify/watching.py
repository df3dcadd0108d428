"""`hlo-verify --watch DUMP_DIR`: what XLA dumps is verified as it appears, until somebody interrupts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlo_verify.render import Outcome

POLL = 0.5
"""Seconds between two looks at the folder. XLA does not say when a file is complete: one that is the same at two looks
is taken for it, and verified again where it changes."""

State = tuple[tuple[str, int, int], ...]
"""Names, sizes and times of files."""


@dataclass(frozen=True, slots=True)
class Appeared:
    """A module of the folder: its files, none where only one half is there yet."""

    name: str
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Watched:
    """What was decided of each module, in the order in which they came, and the modules that nothing is known of."""

    outcomes: Mapping[str, Outcome]
    left: tuple[str, ...]


def watch(
    find: Callable[[], Sequence[Appeared]],
    decide: Callable[[Appeared, int], Outcome],
    show: Callable[[Outcome], None],
    pause: Callable[[], None] = lambda: time.sleep(POLL),
) -> Watched:
    """Decide every module that `find` finds once its files are complete, and again where they have changed, until
    `KeyboardInterrupt`. `decide` is told how many others are waiting."""
    outcomes: dict[str, Outcome] = {}
    before: dict[str, State] = {}
    known: dict[str, State] = {}
    try:
        while True:
            now = {each: _state(each.files) for each in find() if each.files and not _lacks(each)}
            complete = [each for each, state in now.items() if before.get(each.name) == state != known.get(each.name)]
            for number, each in enumerate(complete, 1):
                outcomes.pop(each.name, None)  # it is not known of what is there now
                outcomes[each.name] = decide(each, len(complete) - number)
                known[each.name] = now[each]
                show(outcomes[each.name])
            before = {each.name: state for each, state in now.items()}
            pause()
    except KeyboardInterrupt:
        left = [each.name for each in find() if _is_open(each, known.get(each.name))]
        return Watched({name: outcome for name, outcome in outcomes.items() if name not in left}, tuple(left))


def _is_open(each: Appeared, known: State | None) -> bool:
    """Whether nothing is known of what is there now. What was decided of files that were taken away is what it was."""
    return known is None or (known != _state(each.files) and not _lacks(each))


def _lacks(each: Appeared) -> bool:
    """Whether files of it are not there, or not any more."""
    return len(_state(each.files)) < len(each.files)


def _state(files: Sequence[Path]) -> State:
    found = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        found.append((str(file), status.st_size, status.st_mtime_ns))
    return tuple(found)
