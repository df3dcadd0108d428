"""Read XLA's live ranges (`*-live-range.txt`): the schedule with loops and calls written out, and from when to when
each value is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo.shapes import Path, integers

_STEP = re.compile(r"\s+(\d+):(\S+)\s*")
_RANGE = re.compile(r"\s+(\S+?)\{([\d,]*)\}:(\d+)-(\d+)\s*")


@dataclass(frozen=True, slots=True)
class LiveRanges:
    """`steps`: the names of instructions in the order in which they run. `ranges`: by value (what makes it, and which
    part of that), the first step and the last one at which it is kept."""

    steps: tuple[str, ...]
    ranges: dict[tuple[str, Path], tuple[int, int]]


def parse_live(text: str) -> LiveRanges:
    """The live ranges of a module. Raises InputError for a text that holds none."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("HloLiveRange"):
        raise InputError("these are no live ranges: they do not begin with HloLiveRange", Input.NOT_A_MODULE)
    steps: list[str] = []
    ranges: dict[tuple[str, Path], tuple[int, int]] = {}
    for line in lines[1:]:
        if line.startswith("  Live ranges at"):
            break  # what is kept at the peak, which says nothing new
        if (step := _STEP.fullmatch(line)) is not None:
            if int(step[1]) != len(steps):
                raise InputError(f"step {len(steps)} of the live ranges is missing", Input.DAMAGED)
            steps.append(step[2])
        elif (kept := _RANGE.fullmatch(line)) is not None:
            ranges[kept[1], integers(kept[2])] = int(kept[3]), int(kept[4])
    return LiveRanges(tuple(steps), ranges)
