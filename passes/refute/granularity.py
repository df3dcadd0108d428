"""How finely the dimensions of inputs are split: as finely as evaluation is cheap, which only trying tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from hlo_verify.evaluate import Dimension
from hlo_verify.program.ir import Function, operations

CHEAP = 1 << 23
"""The most values of one tensor, as long as there are granularities for which that is enough."""

FINE, COARSE = 2, 8
"""So many are tried as fine as they are wanted, then so many of few classes, before more values are allowed."""

CLASSES = 2
"""How few."""


@dataclass(frozen=True, slots=True)
class Granularity:
    """Every dimension is split in up to `detail` classes, but for the `plain` ones, which are not split."""

    detail: int
    plain: frozenset[Dimension] = frozenset()

    def is_finer(self, other: Granularity) -> bool:
        """Whether it takes at least as much to evaluate."""
        return self.detail >= other.detail and self.plain <= other.plain


@dataclass(slots=True)
class Granularities:
    """What is known of the granularities of one pair's inputs."""

    dimensions: tuple[Dimension, ...]
    patience: float
    """Work that may be wasted on those that are too large, and no more than as much again as was of use."""
    elements: int = field(default_factory=lambda: CHEAP)
    """The most values of one tensor that are cheap now."""
    sparse: int = field(default_factory=lambda: CHEAP // 2)
    """The most where arguments are 0 to keep them few: as many as 2048 positions have scores."""
    _large: dict[Granularity, int] = field(default_factory=dict)
    """Those that were tried and too large, and at least how many values of one tensor they take."""
    _fitting: Granularity | None = None
    """One that is not too large, as far as is known."""
    _used: float = 0.0
    _wasted: float = 0.0
    """Work spent on those that were cheap, and on others."""

    @property
    def all_fit(self) -> bool:
        """Whether none is known to be too large."""
        return not self._large

    def choices(self, seed: int, detail: int) -> Iterator[Granularity]:
        """What to try: fine ones, then coarse ones, then what was cheap before; that alone where trying is dear.

        Values that are alike all over a dimension make derivatives of softmax and of norms vanish: as many
        dimensions are split as can be. If nothing is known to be cheap, what takes least is tried last.
        """
        tried = [0, 0]
        sizes = detail, min(detail, CLASSES)
        for n, granularity in [
            (n, Granularity(size, plain)) for n, size in enumerate(sizes) for plain in self._plain(seed)
        ]:
            is_dear = self._wasted > self._used + self.patience
            if tried[n] < (FINE, COARSE)[n] and not is_dear and not any(map(granularity.is_finer, self._large)):
                tried[n] += 1
                yield granularity
        plainest = Granularity(min(sizes), frozenset(self.dimensions))
        if self._fitting is not None:
            yield self._fitting
        elif plainest not in self._large:
            yield plainest

    def _plain(self, seed: int) -> list[frozenset[Dimension]]:
        """Dimensions to leave plain: none, then any one of them, then more and more. Where it is known what fits, half
        of those that are plain there come first."""
        generator = np.random.default_rng(seed)
        count = len(self.dimensions)
        wanted = [frozenset[Dimension](), *(frozenset([self.dimensions[n]]) for n in generator.permutation(count))]
        for size in range(2, count):
            wanted += [frozenset(self.dimensions[n] for n in generator.permutation(count)[:size]) for _ in range(count)]
        plain = [] if self._fitting is None else sorted(self._fitting.plain)
        halves = [generator.permutation(len(plain))[: len(plain) // 2] for _ in range(FINE if plain else 0)]
        return [*(frozenset(plain[n] for n in half) for half in halves), *wanted]

    def smallest(self) -> frozenset[Dimension]:
        """The smallest dimensions: batches and heads, along which programs hardly ever differ."""
        least = min((size for size, _ in self.dimensions), default=0)
        return frozenset(dimension for dimension in self.dimensions if dimension[0] == least)

    def note(self, granularity: Granularity, need: int, work: float) -> None:
        """What one was found to take: `need` values of one tensor at least, if it is not cheap, and 0 if it is."""
        if need:
            self._large[granularity] = need
            self._wasted += work
        else:
            self._fitting = granularity
            self._used += work

    def relax(self) -> None:
        """Allow for more values: twice as many, or what the least of those takes that were too large."""
        if self._large:
            self._fitting = min(self._large, key=self._large.__getitem__)
        self.elements = max(2 * self.elements, min(self._large.values(), default=0))
        self._large = {each: need for each, need in self._large.items() if need > self.elements}


def longest(function: Function) -> int:
    """The size of the longest dimension in a function."""
    types = (type_ for op in operations(function) for type_ in op.types)
    return max((size for type_ in (*function.argument_types, *types) for size in type_.shape), default=1)
