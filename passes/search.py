"""Search for inputs for which the modules differ, and make them readable.

Inputs are drawn block by block (`hlo_verify.evaluate`), so that whole modules are evaluated at their own sizes and on
all their devices; nothing is assumed of values in between. A search that ends without a counterexample says nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from hlo_verify.evaluate import Blocks, Difference, Limits, default_scale, index_limits, random_argument
from hlo_verify.evaluate.numbers import is_float
from hlo_verify.ir import TensorType
from hlo_verify.passes import trial as trials
from hlo_verify.passes.pair import Pair
from hlo_verify.passes.trial import Counterexample, Inputs, Trial

SECONDS = 20.0
"""How long inputs are searched for, and SHRINKING how long they are then made readable."""

SHRINKING = 3.0

LEAST = 30.0
"""What one evaluation may take in any case, in seconds: a search that stops early has only begun fewer of them."""

FEW = 2
"""After so many draws, a difference need not be clear."""


@dataclass(frozen=True, slots=True)
class Draw:
    """How inputs are drawn: floats are up to `scale` times what keeps sums near 1, integers below what they index, or
    `integers`; `share` of the dimensions are cut in up to `detail` classes."""

    scale: float
    detail: int
    integers: int
    positive: bool = False
    share: float = 1.0


DRAWS = (
    Draw(1.0, 2, 8, share=0.5),
    Draw(1.0, 4, 40, positive=True),
    Draw(1e-2, 4, 8, share=0.5),
    Draw(4.0, 4, 3),
    Draw(1e-3, 4, 40, positive=True, share=0.5),
    Draw(16.0, 3, 2, positive=True),
    Draw(1e-4, 8, 8),
    Draw(1.0, 8, 1000),
    Draw(1.0, 32, 8, share=0.5),
    Draw(8.0, 32, 40),
)
"""Tried in turn. Small values tell the constants apart that are added to a variance; large ones what saturates."""


@dataclass(slots=True)
class Search:
    """The search for one pair. It goes on where it stopped."""

    pair: Pair
    _tried: int = 0
    _best: dict[int, tuple[Difference, Trial]] = field(default_factory=dict)
    _limits: tuple[int | None, ...] | None = None
    """For each argument of integers, what they are below, where that is known."""

    def find(self, results: Collection[int], *, draws: int = len(DRAWS), seconds: float = SECONDS) -> set[int]:
        """Which of those results differ for some inputs, after so many draws in all."""
        deadline = time.monotonic() + seconds
        while self._tried < draws and not self._is_enough(results):
            left = deadline - time.monotonic()
            if left < 0:
                break
            limits = Limits(seconds=max(left, LEAST))
            trial = trials.run(self.pair, self.draw(DRAWS[self._tried], self._tried), limits=limits)
            self._tried += 1
            self._note(trial, results, limits)
            if not any(value is not None for value in trial.local.results):
                self._tried = len(DRAWS)  # nothing of it can be evaluated, whatever the inputs
        return {n for n in results if n in self._best}

    def _note(self, trial: Trial, results: Collection[int], limits: Limits) -> None:
        unclear = [n for n in results if n not in self._best or not trials.is_clear(self._best[n][0])]
        found = trials.exceeds_rounding(trial, trial.differences(unclear), limits)
        for n, apart in found.items():
            if n not in self._best or apart.relative > self._best[n][0].relative:
                self._best[n] = apart, trial

    def _is_enough(self, results: Collection[int]) -> bool:
        """Whether every result differs clearly, or after a few draws at all."""
        return all(n in self._best and (trials.is_clear(self._best[n][0]) or self._tried >= FEW) for n in results)

    def counterexamples(self, results: Collection[int]) -> list[Counterexample]:
        """What was found for those results, of as few different inputs as can be, as plain as can be."""
        deadline = time.monotonic() + SHRINKING
        by_trial: dict[int, Counterexample] = {}
        for n, (apart, trial) in sorted(self._best.items()):
            if n in results:
                by_trial.setdefault(id(trial), Counterexample(trial, {})).differences[n] = apart
        return [self._shrunk(each, deadline) for each in by_trial.values()]

    def draw(self, draw: Draw, seed: int) -> Inputs:
        generator = np.random.default_rng(seed)
        logical = self.pair.logical
        if self._limits is None:
            self._limits = index_limits(logical)
        shardings = self.pair.arguments or logical.argument_shardings
        return tuple(
            random_argument(
                kind.shape,
                kind.dtype,
                generator,
                tiles=None if sharding is None else sharding.tiles,
                scale=draw.scale * default_scale(kind.shape),
                integers=limit or draw.integers,
                detail=draw.detail,
                positive=draw.positive,
                share=draw.share,
            )
            for kind, sharding, limit in zip(logical.main.argument_types, shardings, self._limits, strict=True)
        )

    def _shrunk(self, found: Counterexample, deadline: float) -> Counterexample:
        """The counterexample with every argument as plain as it can be while no result that differs agrees."""
        order = sorted(range(len(found.trial.inputs)), key=lambda n: -found.trial.inputs[n].values.size)
        for n in order:
            for plain in self._plainer(found.trial.inputs[n], self.pair.logical.main.argument_types[n]):
                left = deadline - time.monotonic()
                if left < 0:
                    return found
                limits = Limits(seconds=max(left, LEAST))
                inputs = (*found.trial.inputs[:n], plain, *found.trial.inputs[n + 1 :])
                trial = trials.run(self.pair, inputs, limits=limits)
                still = trials.exceeds_rounding(trial, trial.differences(found.differences), limits)
                if still.keys() == found.differences.keys() and all(map(trials.is_clear, still.values())):
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
