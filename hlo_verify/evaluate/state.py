"""What an evaluation keeps: its maps, its devices, what it may cost, and what it could not do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify.evaluate.balls import BALLS
from hlo_verify.evaluate.blocks import Blocks
from hlo_verify.evaluate.held import Held
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.maps import Array, Maps
from hlo_verify.evaluate.numbers import is_complex
from hlo_verify.evaluate.signs import is_opposite
from hlo_verify.evaluate.unknown import TooLargeError
from hlo_verify.program.ir import Function, Name, Op, TensorType

WEIGHTS = {BALLS: 64, INTERVALS: 4}
"""How many times as long as one of floats an operation on enclosures takes."""

OPERATION = 20_000
"""The work of an operation on few elements: it takes as long as so many more of them would."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an evaluation may cost."""

    elements: int = 1 << 25
    """Of the values of one tensor, or of what an operation needs on its way, as if each were a float of 64 bits."""
    work: float = 1e11
    """Elements of all results together, multiplications of contractions, and `OPERATION` for each operation."""
    turns: int = 4096
    """Of one loop."""
    room: float = 1 << 26
    """Elements of all values that are held at one time, as if each were a float of 64 bits."""
    heed: Callable[[], None] | None = None
    """Is called before every operation; what it raises ends the evaluation."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where operations run: on how many devices, and what a region that is manual over some mesh axes means.

    `partitions` and `replicas` number the devices (`replica * partitions + partition`); both None outside of any
    device's program. `automatic[d]` numbers the position of device d along the axes that are not manual.
    """

    devices: int
    partitions: int | None = None
    replicas: int | None = None
    manual: frozenset[str] = frozenset()
    automatic: npt.NDArray[np.int64] | None = None


Literals = Callable[[Array, str], Array]
"""How far the numbers that a constant's elements of a floating-point type stand for may be from them."""


def as_written(array: Array, dtype: str) -> Array:
    """Constants are the numbers that they are written as."""
    return np.zeros_like(array, complex if is_complex(dtype) else float)


Instead = Callable[[Array], Array]
"""Other elements in place of those that a value was found to have."""

Environment = dict[Name, Blocks | None]
Observer = Callable[[Name, "Blocks | None"], None]
"""Is told what a value is, as often as it is made; None where that is not known."""

Runner = Callable[["Run", Function, Sequence[Blocks | None], Place], "list[Blocks | None]"]


@dataclass(slots=True)
class Run:
    """One evaluation."""

    run: Runner
    real: np.dtype[Any]
    """The type of floating-point elements: numpy's, or of enclosures `balls.BALLS` or `intervals.INTERVALS`."""
    limits: Limits
    mesh_devices: int
    """The devices of the mesh that manual regions are over."""
    maps: Maps = field(default_factory=Maps)
    environment: Environment = field(default_factory=dict)
    held: Held = field(default_factory=Held)
    types: dict[Name, TensorType] = field(default_factory=dict)
    constants: dict[int, tuple[Op, Blocks]] = field(default_factory=dict)
    last_uses: dict[int, tuple[Function, dict[int, list[Name]]]] = field(default_factory=dict)
    watched: dict[Name, Blocks | None] = field(default_factory=dict)
    unknown: dict[str, bool] = field(default_factory=dict)
    """Operations that were not evaluated, with location and why; whether that was for a size, theirs or another's, or
    for these arguments."""
    hangs_on_arguments: bool = False
    """Whether some were not for these arguments, which may be for others."""
    exceeded: int = 0
    """The most values that an operation needs which was not evaluated for its size; 0 if there is none."""
    refused: dict[Name, None] = field(default_factory=dict)
    """The results of such operations."""
    undefined: dict[str, None] = field(default_factory=dict)
    """What has no defined value in this evaluation, with locations; of enclosures alone."""
    literals: Literals = as_written
    decides: bool = False
    """Whether what floats may decide otherwise is decided as by the numbers in the middle of enclosures."""
    instead: Mapping[Name, Instead] = field(default_factory=dict)
    fixed: frozenset[Name] = frozenset()
    """Values that are the same for all arguments."""
    observe: Observer | None = None
    has_domains: bool = False
    """Whether nothing is known of a function of real numbers outside of its domain, and at its poles, but where these
    numbers are `independent` of all arguments; of balls alone."""
    independent: frozenset[Name] = frozenset()
    signs: int = 0
    """Which signs eigenvectors and singular vectors have (`signs`); of balls alone."""
    vectors: int = 0
    """How many of these were made."""
    work: float = 0.0
    costs: dict[Name, float] = field(default_factory=dict)
    """The work of each operation, its regions included, by its first result."""
    largest: int = 0

    def signs_of_next(self, count: int) -> list[int]:
        """The signs of vectors that are made next, 1 or -1."""
        first, self.vectors = self.vectors, self.vectors + count
        return [-1 if is_opposite(n, self.signs) else 1 for n in range(first, self.vectors)]

    @property
    def weight(self) -> int:
        """How many times as long as a float an element takes."""
        return WEIGHTS.get(self.real, 1)

    @property
    def is_enclosed(self) -> bool:
        """Whether elements are enclosures."""
        return self.real in WEIGHTS

    def note(self, why: str, op: Op) -> None:
        """Keep that something has no defined value."""
        self.undefined[f"{why} at {op.location}"] = None

    def spend(self, elements: float) -> None:
        """Account for an array of so many elements that is about to be made. Raises `TooLargeError`."""
        self.fits(elements)
        self.toil(elements)

    def fits(self, elements: float) -> None:
        """Raise `TooLargeError` where there is no memory for an array of so many elements."""
        if elements > self.limits.elements:
            self.exceeded = max(self.exceeded, math.ceil(elements))
            raise TooLargeError(f"needs {elements:.2g} values, more than {self.limits.elements:.2g}")
        if self.held.elements + elements > self.limits.room:
            self.exceeded = max(self.exceeded, self.limits.elements + 1)
            raise TooLargeError(f"needs more than {self.limits.room:.2g} values at one time")

    def set(self, name: Name, type_: TensorType, value: Blocks | None) -> None:
        """A value is made."""
        self.held.add(value)
        self.held.drop(self.environment.get(name))
        self.environment[name], self.types[name] = value, type_

    def forget(self, name: Name) -> None:
        """A value is used no more."""
        self.held.drop(self.environment.pop(name, None))

    def toil(self, work: float) -> None:
        """Account for so much work. Raises `TooLargeError`."""
        self.work += work * self.weight
        if self.work > self.limits.work:
            self.exceeded = max(self.exceeded, self.limits.elements + 1)
            raise TooLargeError(f"more work than {self.limits.work:.2g} elements")


Rule = Callable[[Op, list[Blocks], Run, Place], list[Blocks]]
PartialRule = Callable[[Op, list["Blocks | None"], Run, Place], list["Blocks | None"]]
"""One that is given what is known, and gives what it can of it."""
