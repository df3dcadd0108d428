"""Search for inputs for which the modules differ, and make them readable.

Inputs are drawn block by block (`hlo_verify.evaluate`), so that whole modules are evaluated at their own sizes and on
all their devices; nothing is assumed of values in between. A search that ends without a counterexample says nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from hlo_verify.evaluate import (
    Blocks,
    Difference,
    Kind,
    Limits,
    default_scale,
    index_limits,
    positive_arguments,
    random_argument,
)
from hlo_verify.evaluate.numbers import is_float
from hlo_verify.ir import TensorType
from hlo_verify.passes import trial as trials
from hlo_verify.passes.pair import Pair
from hlo_verify.passes.trial import Counterexample, Inputs, Trial

SECONDS = 20.0
"""How long inputs are searched for, and SHRINKING how long they are then made readable; of this thread's time, here
and below, so that what is found does not depend on what else the machine does."""

SHRINKING = 3.0

LEAST = 30.0
"""What one evaluation may take in any case, in seconds: a search that stops early has only begun fewer of them."""

FEW = 2
"""After so many draws, a difference need not be clear."""


@dataclass(frozen=True, slots=True)
class Draw:
    """How inputs are drawn: floats are up to `scale` times what keeps sums near 1, integers below what they index, or
    `integers`; dimensions are cut in up to `detail` classes. What a square root or a logarithm takes is positive in any
    case, unless `anything` goes."""

    scale: float
    detail: int
    integers: int
    positive: bool = False
    anything: bool = False


DRAWS = (
    Draw(1.0, 2, 8),
    Draw(1.0, 2, 40, positive=True),
    Draw(1.0, 4, 1000),
    Draw(1e-2, 4, 8),
    Draw(4.0, 4, 3, anything=True),
    Draw(1e-3, 4, 40, positive=True),
    Draw(16.0, 3, 2, positive=True),
    Draw(1e-4, 8, 8, anything=True),
    Draw(1.0, 8, 1000),
    Draw(1.0, 32, 8),
    Draw(8.0, 32, 40),
)
"""Tried in turn. Small values tell the constants apart that are added to a variance; large ones what saturates."""

CHEAP = 1 << 23
"""The most values of one tensor, as long as there are inputs for which that is enough; else twice as many. When nothing
was found, every draw is tried once more with as many as an evaluation may have (`Limits`)."""

TRIES = 8
"""So many choices of the dimensions that are not cut are tried before more values are allowed."""


@dataclass(slots=True)
class Search:
    """The search for one pair. It goes on where it stopped."""

    pair: Pair
    _tried: int = 0
    _cheap: int = CHEAP
    _slowest: float = 0.0
    """How long the slowest draw took."""
    _large: list[tuple[int, frozenset[Kind]]] = field(default_factory=list)
    """Details and plain kinds for which evaluation was not cheap."""
    _best: dict[int, tuple[Difference, Trial]] = field(default_factory=dict)
    _ranges: tuple[tuple[int | None, ...], frozenset[int]] | None = None
    """What each argument of integers is below, where that is known; and the arguments that have to be positive."""

    def find(self, results: Collection[int], *, draws: int = 2 * len(DRAWS), seconds: float = SECONDS) -> set[int]:
        """Which of those results differ for some inputs, after so many draws in all."""
        deadline = time.thread_time() + seconds
        while self._tried < draws and not self._is_enough(results):
            left = deadline - time.thread_time()
            if left < 0 or (self._tried >= len(DRAWS) and not self._large):
                break
            limits = Limits(seconds=max(left, LEAST))
            started = time.thread_time()
            trial = self._trial(self._tried, results, limits, deadline)
            self._tried += 1
            self._note(trial, results, limits)
            self._slowest = max(self._slowest, time.thread_time() - started)
            if not trial.whole.exceeded and not any(value is not None for value in trial.local.results):
                self._tried = 2 * len(DRAWS)  # nothing of it can be evaluated, whatever the inputs
        return {n for n in results if n in self._best}

    def _trial(self, number: int, results: Collection[int], limits: Limits, deadline: float) -> Trial:
        """Both modules for the draw of that number, cheap if need be and there are such inputs.

        As many kinds of dimensions are cut as can be: values that are alike all over a dimension make derivatives of
        softmax and of norms vanish. What is too large is found out before it is computed, and mostly early.
        """
        draw = DRAWS[number % len(DRAWS)]
        while number < len(DRAWS) and self._cheap < limits.elements:
            cheap = replace(limits, elements=self._cheap)
            for plain in self._choices(number, draw.detail):
                trial = trials.run(self.pair, self.draw(draw, number, plain), limits=cheap, needed=results)
                if not (trial.whole.exceeded or trial.local.exceeded) or time.thread_time() > deadline:
                    return trial
                self._note(trial, results, cheap)
                if self._is_enough(results):
                    return trial
                self._large.append((draw.detail, plain))
            self._cheap *= 2
            self._large.clear()
        return trials.run(self.pair, self.draw(draw, number), limits=limits)

    def _choices(self, number: int, detail: int) -> Iterator[frozenset[Kind]]:
        """Kinds of dimensions to leave plain: none, then any one of them, then more and more.

        Those are left out that are known to be too large, as any part of them is.
        """
        kinds = sorted({kind for each in self._kinds() for kind in each if kind[0] > 1})
        generator = np.random.default_rng(number)
        wanted = [frozenset[Kind](), *(frozenset([kinds[n]]) for n in generator.permutation(len(kinds)))]
        for count in range(2, len(kinds) + 1):
            drawn = (generator.permutation(len(kinds))[:count] for _ in range(len(kinds)))
            wanted += [frozenset(kinds[n] for n in each) for each in drawn]
        tried = 0
        for plain in wanted:
            if tried < TRIES and not any(detail >= least and plain <= large for least, large in self._large):
                tried += 1
                yield plain

    def _kinds(self) -> list[tuple[Kind, ...]]:
        """The kinds of the dimensions of every argument."""
        logical = self.pair.logical
        shardings = self.pair.arguments or logical.argument_shardings
        return [
            tuple(zip(kind.shape, (1,) * kind.rank if sharding is None else sharding.tiles, strict=True))
            for kind, sharding in zip(logical.main.argument_types, shardings, strict=True)
        ]

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
        deadline = time.thread_time() + SHRINKING
        by_trial: dict[int, Counterexample] = {}
        for n, (apart, trial) in sorted(self._best.items()):
            if n in results:
                by_trial.setdefault(id(trial), Counterexample(trial, {})).differences[n] = apart
        return [self._shrunk(each, deadline) for each in by_trial.values()]

    def draw(self, draw: Draw, seed: int, plain: Collection[Kind] = ()) -> Inputs:
        """Inputs; dimensions of the `plain` kinds are not cut."""
        generator = np.random.default_rng(seed)
        logical = self.pair.logical
        if self._ranges is None:
            self._ranges = index_limits(logical), positive_arguments(logical)
        limits, domain = self._ranges
        cut = [[tiles for _, tiles in each] for each in self._kinds()]
        return tuple(
            random_argument(
                kind.shape,
                kind.dtype,
                generator,
                tiles=tiles,
                scale=draw.scale * default_scale(kind.shape),
                integers=limits[n] or draw.integers,
                detail=draw.detail,
                positive=draw.positive or (n in domain and not draw.anything),
                plain=plain,
            )
            for n, (kind, tiles) in enumerate(zip(logical.main.argument_types, cut, strict=True))
        )

    def _shrunk(self, found: Counterexample, deadline: float) -> Counterexample:
        """The counterexample with every argument as plain as it can be while no result that differs agrees."""
        order = sorted(range(len(found.trial.inputs)), key=lambda n: -found.trial.inputs[n].values.size)
        for n in order:
            for plain in self._plainer(found.trial.inputs[n], self.pair.logical.main.argument_types[n]):
                left = deadline - time.thread_time()
                if left < min(self._slowest, SHRINKING):
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
