"""Values with numbers in them that mask scores: how far below these they are, in any reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hlo_verify.program.ir import Name

FAR = -1e9
"""What is less masks."""

LEAST = 1e-3
"""What is masked may be multiplied by such numbers, all together, and stays far below all scores."""

HALF_WAY = 0.5
"""A number above this part of what masks is above what is masked, in any reading."""

ABOVE = HALF_WAY * LEAST * FAR
"""A number that is greater is above all that is masked, in any reading."""


class ReachesMoreError(Exception):
    """What is masked gets to where its value matters."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A value that has elements which are masked: far below in either reading. All others are the same in both."""

    under: frozenset[tuple[Name, bool]] = frozenset()
    """The conditions under which alone an element is masked, each with what it is there; none where none is known."""
    scale: float = 1.0
    """What the numbers that mask were multiplied by, at least."""
    is_all: bool = False
    """Whether it is nothing but such numbers: only what a program does with them tells that they mask."""
    is_added: bool = False
    """Whether all of its other elements are 0, so that it masks what it is added to."""
    is_infinite: bool = False
    """Whether minus infinity alone masks."""
    shifts: int = 0
    """How many numbers were added to it, none of them larger than the opposite of `ABOVE`."""

    @property
    def moved(self) -> Masked:
        """Its elements, elsewhere."""
        return replace(self, under=frozenset())


def of_all(some: Sequence[Masked]) -> Masked:
    """What is masked where any of those is."""
    return Masked(
        scale=min(each.scale for each in some),
        is_all=all(each.is_all for each in some),
        is_infinite=all(each.is_infinite for each in some),
        shifts=sum(each.shifts for each in some),
    )


def shifted(masked: Masked) -> Masked:
    """What is masked, with something added that is not."""
    shifts = masked.shifts + 1
    if not is_far_below(shifts, masked.scale):
        raise ReachesMoreError
    return replace(masked, is_added=False, shifts=shifts)


def is_far_below(shifts: int, scale: float) -> bool:
    """Whether what masks is, scaled so and moved so often."""
    return (shifts + 1) * -ABOVE <= -FAR * scale


def is_moved(was: Masked, now: Masked) -> bool:
    """Whether a turn brings what a loop carries nearer to scores."""
    return now.scale < was.scale or now.shifts > was.shifts
