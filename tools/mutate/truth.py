"""What a mutant computes, next to what the logical module does: both run on XLA's CPU devices with random arguments."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify.passes.canonicalize.dense import numpy_dtype
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import Module
from hlo_verify.program.pair import is_global
from hlo_verify.program.sharding import Sharding
from hlo_verify.xla.execute import ExecutionError, Executor, Shards
from tools.mutate.cases import Case

Array = npt.NDArray[Any]

_NOISE = 20.0
"""Differences up to so many times those of the good pair are its noise."""
_CLEAR = 10.0
"""Differences beyond so many times the noise are none of rounding."""
_STEADY = 1e-4
"""How far the good pair may be apart, relative to the largest element of a result."""
_DRAWS = 10
"""Draws at each scale until there is one at which the good pair agrees."""
_SCALES = (1.0, 1e-3, 30.0)
"""Of the arguments of each run. What is added for stability counts with small ones, limits with large ones."""


class Truth(enum.StrEnum):
    """DIFFERS: a device has other values. EQUAL: none has. UNCLEAR: rounding, or overflow. INVALID: it cannot run."""

    DIFFERS = "differs"
    EQUAL = "equal"
    UNCLEAR = "unclear"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`ratio` is the largest difference of any result, in units of its noise; `why` says which, or what went wrong."""

    truth: Truth
    ratio: float = 0.0
    why: str = ""
    differing: tuple[int, ...] = ()
    """The results of which a device surely has other values."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One draw of arguments, as the devices take them, with the logical results and each one's noise."""

    arguments: list[Array]
    wanted: list[Array]
    noise: list[float]


class Judge:
    """Runs mutants of one case."""

    def __init__(self, case: Case, many: Executor) -> None:
        self.case = case
        self.logical, self.partitioned = load(case.logical), load(case.partitioned)
        self.many = many
        self.per_device = is_global(self.partitioned)
        self.runs = [self._steady(number) for number in range(len(_SCALES))]

    def _steady(self, number: int) -> _Run:
        """A draw at which the good pair agrees, not one where rounding decides (which of two almost equal is larger).

        At scale 1, if there is none at the one that is wanted. Some indices of the last draw are out of range.
        """
        near = 0.0
        for scale in (_SCALES[number], 1.0):
            for seed in range(_DRAWS):
                bounds = (-1, self.case.integers + 2) if number == 2 and seed < _DRAWS // 2 else (0, self.case.integers)
                whole = draw(self.logical, bounds, scale, (number, seed))
                run = self._prepare(whole)
                near = max(run.noise, default=0.0) / _NOISE
                if near < _STEADY:
                    return run
        raise ValueError(f"{self.case.name}: the good pair differs by {near:.2g}")

    def _typed(self, arguments: Sequence[Array]) -> list[Array]:
        kinds = self.logical.main.argument_types
        return [each.astype(numpy_dtype(kind.dtype)) for each, kind in zip(arguments, kinds, strict=True)]

    def _prepare(self, whole: Sequence[Array]) -> _Run:
        stacked = [argument[None] for argument in whole]
        wanted = [result[0] for result in self.many.run(self.case.logical, stacked, logical=True)]
        if self.per_device:
            arguments = stacked
        else:
            placed = _placements(self.logical.argument_shardings, self.partitioned.argument_shardings)
            arguments = [cut(argument, sharding) for argument, sharding in zip(whole, placed, strict=True)]
        got = self._ran(self.case.partitioned, arguments)
        near = [distance(*each) for each in zip(wanted, got, strict=True)]
        return _Run(arguments, wanted, [_NOISE * max(each, 1e-7) for each in near])

    def _ran(self, module: bytes, arguments: Sequence[Array]) -> list[Shards]:
        """What each device holds of the results."""
        if self.per_device:
            return self.many.run_shards(module, arguments)
        results = self.many.run(module, arguments)
        placed = _placements(self.logical.result_shardings, self.partitioned.result_shardings)
        return [Shards(values, starts(sharding, values)) for values, sharding in zip(results, placed, strict=True)]

    def judge(self, mutant: bytes, witness: Sequence[Array] | None = None) -> Outcome:
        """Whether a mutant computes what the logical module does: with random arguments, or with those of a witness."""
        worst, why, odd = 0.0, "", ""
        runs = self.runs if witness is None else [self._prepare(self._typed(witness))]
        differing: set[int] = set()
        for number, run in enumerate(runs):
            try:
                got = self._ran(mutant, run.arguments)
            except ExecutionError as error:
                return Outcome(Truth.INVALID, why=f"{error.failure}: {str(error)[:300]}")
            for n, (wanted, have) in enumerate(zip(run.wanted, got, strict=True)):
                ratio = distance(wanted, have) / run.noise[n]
                if not np.isfinite(ratio):  # hlo-verify assumes that there are none
                    odd = odd or f"NaN or infinity in result {n} of draw {number}"
                elif ratio > worst:
                    worst, why = ratio, f"result {n} of draw {number}"
                if np.isfinite(ratio) and ratio > _CLEAR:
                    differing.add(n)
            if differing:
                return Outcome(Truth.DIFFERS, worst, why, tuple(sorted(differing)))
        return Outcome(Truth.UNCLEAR if worst > 1 or odd else Truth.EQUAL, worst, odd or why)


def draw(module: Module, bounds: tuple[int, int], scale: float, seed: Sequence[int]) -> list[Array]:
    """Arguments for a logical module: truth values, floats of about that scale, and integers from the first bound to
    below the second."""
    generator = np.random.default_rng(seed)
    arguments = []
    for name, kind in zip(module.argument_names, module.main.argument_types, strict=True):
        dtype = numpy_dtype(kind.dtype)
        if dtype.kind in "iu":
            arguments.append(
                generator.integers(max(bounds[0], np.iinfo(dtype).min), bounds[1], kind.shape).astype(dtype)
            )
            continue
        if dtype.kind == "b":
            arguments.append(generator.integers(0, 2, kind.shape).astype(dtype))
            continue
        values = generator.uniform(0.1, 1.0, kind.shape) * generator.choice([-1, 1], kind.shape) * scale
        if len(kind.shape) > 1:
            values = values / np.sqrt(kind.shape[-2])  # or softmax saturates
        if dtype.kind == "c":
            values = values * np.exp(1j * generator.uniform(0, np.pi, kind.shape))
        arguments.append((np.abs(values) if "'nu'" in name else values).astype(dtype))  # Adam takes its square root
    return arguments


def _placements(first: Sequence[Sharding | None], second: Sequence[Sharding | None]) -> list[Sharding]:
    found = [one or other for one, other in zip(first, second, strict=True)]
    return [sharding for sharding in found if sharding is not None]


def place(sharding: Sharding, sizes: tuple[int, ...], device: int) -> tuple[slice, ...]:
    """Which elements of a tensor a device holds."""
    shards = [-(-size // tiles) for size, tiles in zip(sizes, sharding.tiles, strict=True)]
    starts = [int(c) * shard for c, shard in zip(sharding.coordinates[device], shards, strict=True)]
    return tuple(slice(s, min(s + n, size)) for s, n, size in zip(starts, shards, sizes, strict=True))


def cut(whole: Array, sharding: Sharding) -> Array:
    """What each device holds of an argument, stacked. Raises ValueError where shards do not divide it."""
    return np.stack([whole[place(sharding, whole.shape, device)] for device in range(sharding.devices)])


def starts(sharding: Sharding, shards: Array) -> Array:
    """Where the shard of each device starts in the whole."""
    return np.asarray(sharding.coordinates)[: len(shards)] * np.asarray(shards.shape[1:], np.int64)


def distance(whole: Array, shards: Shards) -> float:
    """The largest difference on any device, relative to the largest element; infinite where NaNs or infinities do."""
    exact = np.complex128 if np.iscomplexobj(whole) else np.float64
    want = whole.astype(exact)
    finite = np.abs(want[np.isfinite(want)])
    scale = max(float(finite.max(initial=0.0)), 1e-30)
    worst = 0.0
    for start, shard in zip(shards.starts, shards.values.astype(exact), strict=True):
        one = np.asarray(want[tuple(slice(s, s + n) for s, n in zip(start, shard.shape, strict=True))])
        other = np.asarray(shard[tuple(map(slice, one.shape))])
        odd = ~(np.isfinite(one) & np.isfinite(other))
        if not np.array_equal(one[odd], other[odd], equal_nan=True):
            return float("inf")
        worst = max(worst, float(np.abs(one[~odd] - other[~odd]).max(initial=0.0)) / scale)
    return worst
