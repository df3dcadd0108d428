"""What makes up random programs: a builder that chooses operands among the values that there are."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tools.fuzz.programs.program import INTEGERS, Builder, Kind

DIRECTIONS = "EQ NE LT LE GT GE".split()


@dataclass(frozen=True, slots=True)
class Family:
    """What programs are made of: element types, and kinds of operations with how often each is drawn."""

    dtypes: tuple[str, ...]
    steps: dict[str, int]
    length: tuple[int, int] = (2, 6)
    sizes: tuple[int, ...] = (1, 2, 3, 4, 4, 6, 8)
    """Of dimensions."""
    by_device: float = 0.2
    """How often what devices run is written in ways that depend on the device."""
    called: float = 0.1
    """How often a part of a program is a function that it calls."""
    beside_poles: bool = False
    """Whether what devices run computes what may be no number, and makes nothing of it."""


@dataclass(slots=True)
class Maker:
    """Appends random operations; `values` can be used by later ones."""

    builder: Builder
    random: random.Random
    family: Family
    base: tuple[int, ...]
    steps: Mapping[str, Callable[[Maker], list[int]]]
    """Kinds of operations: each appends some, and returns the values that later ones may use."""
    values: list[int] = field(default_factory=list)
    depth: int = 0

    def kind(self, value: int) -> Kind:
        return self.builder.kind(value)

    def some(self, accept: Callable[[Kind], bool] = lambda kind: True) -> int | None:
        """A value, rather a late one."""
        found = [value for value in self.values if accept(self.kind(value))]
        if not found:
            return None
        return found[-1] if self.random.random() < 0.5 else self.random.choice(found)

    def dtype(self) -> str:
        return self.random.choice(self.family.dtypes)

    def number(self, dtype: str) -> float | int | bool:
        """A constant, more often one at which something may happen."""
        if dtype == "i1":
            return self.random.random() < 0.5
        if dtype in INTEGERS:
            bits = int(dtype.lstrip("ui"))
            low, high = (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            picked = self.random.choice(
                [0, 1, 2, 3, 4, 5, 7, 8, 10, 16, -1, -2, -3, low, high, high // 2, high // 2 + 1]
            )
            return min(max(picked, low), high)
        if "special" in self.family.steps and self.random.random() < 0.5:
            return self.random.choice([float("inf"), float("-inf"), float("nan"), 0.0, float("-inf")])
        return self.random.choice([0.0, 1.0, 2.0, -1.0, 0.5, 3.0, -2.0, 0.25])

    def of_type(self, dtype: str, shape: Sequence[int]) -> int:
        """A value of that type: one that there is, a converted or broadcast one, or a constant."""
        kind = Kind(tuple(shape), dtype)
        exact = self.some(lambda k: k == kind)
        if exact is not None and self.random.random() < 0.8:
            return exact
        near = self.some(lambda k: k.shape == kind.shape and not (k.is_float and kind.is_integer))
        if near is not None and self.random.random() < 0.6:
            return self.converted(near, dtype)
        if self.random.random() < 0.3 and kind.shape and dtype != "i1":
            return self.builder.op("iota", (), kind, dim=self.random.randrange(len(kind.shape)))
        return self.builder.constant(self.number(dtype), kind)

    def converted(self, a: int, dtype: str) -> int:
        if self.kind(a).dtype == dtype:
            return a
        if dtype == "i1":
            return self.builder.compare(
                self.random.choice(DIRECTIONS), a, self.builder.like(self.number(self.kind(a).dtype), a)
            )
        return self.builder.convert(a, dtype)

    def index(self) -> int:
        """A scalar integer of the program."""
        found = self.some(lambda k: k.is_integer and len(k.shape) <= 2 and 0 not in k.shape)
        if found is None:
            return self.builder.constant(self.random.randrange(-1, 4), Kind((), "i32"))
        shape = self.kind(found).shape
        if shape:
            at = [self.random.randrange(n) for n in shape]
            found = self.builder.reshape(self.builder.slice(found, at, [k + 1 for k in at]))
        return found if self.random.random() < 0.5 else self.builder.convert(found, "i32")

    def step(self) -> None:
        names, weights = zip(*self.family.steps.items(), strict=True)
        (name,) = self.random.choices(names, weights)
        found = self.steps[name](self)
        self.values.extend(found)
