"""Search for inputs for which the modules differ, and make them readable.

Inputs are drawn block by block (`hlo_verify.evaluate`), so that whole modules are evaluated at their own sizes and on
all their devices; nothing is assumed of values in between. A search that ends without a counterexample says nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hlo_verify.evaluate import Blocks, Difference, Limits, default_scale, random_argument
from hlo_verify.ir import Module, TensorType
from hlo_verify.ops.values import is_float
from hlo_verify.passes import trial as trials
from hlo_verify.passes.trial import Inputs, Pair, Trial

SECONDS = 20.0
"""How long inputs are searched for, and then made readable for half as long."""

CLEAR = 1e-2
"""A difference of this fraction of a result's largest element is worth no better inputs."""


@dataclass(frozen=True, slots=True)
class Draw:
    """How inputs are drawn: floats are up to `scale` times what keeps sums near 1, integers below `integers`."""

    scale: float
    detail: int
    integers: int
    positive: bool = False


DRAWS = (
    Draw(1.0, 4, 8),
    Draw(1.0, 8, 40, positive=True),
    Draw(1e-2, 4, 8),
    Draw(4.0, 8, 3),
    Draw(1e-3, 4, 40, positive=True),
    Draw(1.0, 64, 1000),
    Draw(16.0, 3, 2, positive=True),
    Draw(1e-4, 16, 8),
)
"""Tried in turn. Small values tell the constants apart that are added to a variance; large ones what saturates."""


@dataclass(frozen=True, slots=True, eq=False)
class Counterexample:
    """Inputs for which results differ, and where each of them differs most."""

    trial: Trial
    differences: dict[int, Difference]


@dataclass(slots=True)
class Search:
    """The search for one pair; `deadline` is in seconds of `time.monotonic`."""

    pair: Pair
    deadline: float
    limits: Limits = field(default_factory=Limits)

    @property
    def over(self) -> bool:
        return time.monotonic() > self.deadline

    def find(self, results: Collection[int]) -> list[Counterexample]:
        """Counterexamples that together refute as many of those results as can be; of few different inputs."""
        best: dict[int, tuple[Difference, Trial]] = {}
        for n, draw in enumerate(DRAWS):
            if self.over and n > 0:
                break
            trial = trials.run(self.pair, self.draw(draw, n), limits=self.limits)
            unclear = [r for r in results if r not in best or not _is_clear(best[r][0])]
            found = trials.exceeds_rounding(trial, trial.differences(unclear), self.limits)
            for r, apart in found.items():
                if r not in best or _relative(apart) > _relative(best[r][0]):
                    best[r] = apart, trial
            if all(r in best and _is_clear(best[r][0]) for r in results):
                break
            if not any(value is not None for value in trial.local.results):
                break  # nothing of it can be evaluated, whatever the inputs
        return _by_trial(best)

    def draw(self, draw: Draw, seed: int) -> Inputs:
        generator = np.random.default_rng(seed)
        logical = self.pair.logical
        shardings = self.pair.arguments or logical.argument_shardings
        return tuple(
            random_argument(
                kind.shape,
                kind.dtype,
                generator,
                tiles=None if sharding is None else sharding.tiles,
                scale=draw.scale * default_scale(kind.shape),
                integers=draw.integers,
                detail=draw.detail,
                positive=draw.positive,
            )
            for kind, sharding in zip(logical.main.argument_types, shardings, strict=True)
        )

    def shrink(self, found: Counterexample) -> Counterexample:
        """The counterexample with every argument as plain as it can be while no result that differs agrees."""
        order = sorted(range(len(found.trial.inputs)), key=lambda n: -found.trial.inputs[n].values.size)
        for n in order:
            for plain in self._plainer(found.trial.inputs[n], self.pair.logical.main.argument_types[n]):
                if self.over:
                    return found
                inputs = (*found.trial.inputs[:n], plain, *found.trial.inputs[n + 1 :])
                trial = trials.run(self.pair, inputs, limits=self.limits)
                still = trials.exceeds_rounding(trial, trial.differences(found.differences), self.limits)
                if still.keys() == found.differences.keys() and all(map(_is_clear, still.values())):
                    found = Counterexample(trial, still)
                    break
        return found

    def _plainer(self, blocks: Blocks, kind: TensorType) -> Iterator[Blocks]:
        """Simpler values for an argument, the simplest first."""
        if kind.dtype == "i1" or blocks.values.size == 0:
            return
        for value in (0, 1):
            yield _filled(blocks, value)
        if is_float(kind.dtype):
            for step in (1.0, 0.5, 0.125):
                rounded = np.round(blocks.values / step) * step
                if not np.array_equal(rounded, blocks.values) and np.any(rounded):
                    yield replace(blocks, values=rounded)


def _filled(blocks: Blocks, value: int) -> Blocks:
    classes = tuple(np.zeros_like(each) for each in blocks.classes)
    return replace(blocks, classes=classes, values=np.full((1,) * blocks.values.ndim, value, blocks.values.dtype))


def _relative(apart: Difference) -> float:
    return float(apart.size / max(apart.scale, 1e-300))


def _is_clear(apart: Difference) -> bool:
    return _relative(apart) > CLEAR


def _by_trial(best: dict[int, tuple[Difference, Trial]]) -> list[Counterexample]:
    by_trial: dict[int, Counterexample] = {}
    for n, (apart, trial) in sorted(best.items()):
        by_trial.setdefault(id(trial), Counterexample(trial, {})).differences[n] = apart
    return list(by_trial.values())


def search(
    logical: Module, partitioned: Module, results: Sequence[int], seconds: float = SECONDS
) -> list[Counterexample]:
    """Counterexamples for those results, by their number: as few inputs as possible, as plain as possible."""
    started = time.monotonic()
    pair = trials.pair_of(logical, partitioned)
    found = Search(pair, started + seconds).find(results)
    return [Search(pair, time.monotonic() + seconds / 2).shrink(each) for each in found]
