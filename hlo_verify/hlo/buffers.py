"""Read XLA's buffer assignment: which bytes each value has (`*-buffer-assignment.txt`), and who makes and reads it
(`*-buffer-assignment-values.txt`)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo.shapes import Path, integers, spelled

_ALLOCATION = re.compile(r"allocation (\d+): size (\d+)(.*?):?\s*$")
_VALUE = re.compile(
    r"\s*value: <(\d+) ([^\s{]+)(?:\{([\d,]*)\})?(?: \(phi\))? @(-?\d+)> \(size=(\d+),offset=(\d+)\): (.*)"
)
_HEAD = re.compile(r"<(\d+) ([^\s{]+)(?:\{([\d,]*)\})?(?: \(phi\))? @(-?\d+)>")
_POSITION = re.compile(r"\s+([^\s,]+)(?: \{([\d,]*)\})?\s*$")
_USE = re.compile(r"\s+([^\s,]+), operand (\d+)(?: \{([\d,]*)\})?\s*$")


@dataclass(frozen=True, slots=True)
class Placed:
    """A value in an allocation: what makes it, which part of that, its memory space, and its bytes."""

    number: int
    name: str
    path: Path
    space: int
    size: int
    offset: int

    @property
    def end(self) -> int:
        return self.offset + self.size

    def __str__(self) -> str:
        return f"{self.name}{spelled(self.path)}" if self.path else self.name


@dataclass(frozen=True, slots=True)
class Allocation:
    """Bytes that are had as one piece; `said` is what the text says of them: `parameter 3`, `thread-local`."""

    number: int
    size: int
    said: str
    values: list[Placed] = field(default_factory=list)

    @property
    def is_shared(self) -> bool:
        """Whether its values can meet: not those of constants, or of computations that an operation applies."""
        return "thread-local" not in self.said and "constant" not in self.said.split(",")[-1]


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Where a value is (instructions, and parts of their results), and who reads it."""

    positions: tuple[tuple[str, Path], ...]
    uses: tuple[tuple[str, int, Path], ...]


def parse_assignment(text: str) -> list[Allocation]:
    """The allocations of a buffer assignment. Raises InputError for a text that is none."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("BufferAssignment"):
        raise InputError("this is no buffer assignment: it does not begin with BufferAssignment", Input.NOT_A_MODULE)
    found: list[Allocation] = []
    for line in lines[1:]:
        if (value := _VALUE.match(line)) is not None and found:
            number, name, path, space, size, offset, _ = value.groups()
            found[-1].values.append(Placed(int(number), name, integers(path), int(space), int(size), int(offset)))
        elif (allocation := _ALLOCATION.match(line)) is not None:
            found.append(Allocation(int(allocation[1]), int(allocation[2]), allocation[3]))
        elif line.strip():
            break  # totals follow, which say nothing new
    return found


def parse_values(text: str) -> dict[int, Lifetime]:
    """By number of a value, where it is and who reads it."""
    found: dict[int, Lifetime] = {}
    current: int | None = None
    positions: list[tuple[str, Path]] = []
    uses: list[tuple[str, int, Path]] = []
    for line in text.splitlines():
        if (head := _HEAD.match(line)) is not None:
            current, positions, uses = int(head[1]), [], []
        elif current is None or line.startswith((" positions:", " uses:")):
            continue
        elif line.startswith(" from instruction:"):
            found[current] = Lifetime(tuple(positions), tuple(uses))
            current = None
        elif (use := _USE.fullmatch(line)) is not None:
            uses.append((use[1], int(use[2]), integers(use[3])))
        elif (position := _POSITION.fullmatch(line)) is not None and position[1] != "(none)":
            positions.append((position[1], integers(position[2])))
    return found
