"""Trials: both modules of a pair evaluated for one choice of inputs, and where their results differ.

Nothing here knows of the prover, nor in `search` and `xla_replay`: `hlo_verify.evaluate` walks the modules' own
operations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hlo_verify.evaluate import Blocks, Difference, Evaluation, Limits, UnknownError, difference, evaluate, shards
from hlo_verify.evaluate.maps import Maps
from hlo_verify.program.ir import Name
from hlo_verify.program.pair import Pair
from hlo_verify.program.sharding import Sharding

Inputs = tuple[Blocks, ...]
"""A value for every argument of the logical module."""

SEED = 20
"""Of what is arbitrary: elements past the end of a tensor, and the addends of an unreduced one."""

NOTICED = 1e-12
"""The least difference that is looked at more closely, as a fraction of a result's largest element: evaluation in
double precision is off by less, where nothing cancels."""

EVIDENT = 1e-5
"""A difference of this fraction is no rounding, in most cases: more of them are looked at; repairs are sorted by it."""

NOISE = 64
"""XLA, which runs in single precision, is asked to confirm a difference that is at least so many times what single
precision makes of either value."""

CLEAR = 1e-2
"""A difference of this fraction of a result's largest element is worth no better inputs; no narrow type hides it."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What both modules compute of some inputs."""

    pair: Pair
    inputs: Inputs
    whole: Evaluation
    local: Evaluation
    elements: int = Limits().elements
    """Elements that one tensor was allowed to have."""

    @property
    def largest(self) -> int:
        """Elements of the largest tensor that was evaluated."""
        return max(self.whole.largest, self.local.largest)

    @property
    def lacks_meanings(self) -> bool:
        """Whether operations could not be evaluated for another reason than their size, or these inputs."""
        return self.whole.lacks_meanings or self.local.lacks_meanings

    @property
    def is_known_for_none(self) -> bool:
        """Whether no result of the partitioned module can be evaluated, whatever the inputs."""
        is_tried = not self.whole.exceeded and not self.local.hangs_on_arguments
        return is_tried and not any(value is not None for value in self.local.results)

    @property
    def exceeded(self) -> int:
        """Elements of the largest that was not; 0 if there is none."""
        return max(self.whole.exceeded, self.local.exceeded)

    @property
    def work(self) -> float:
        """What both evaluations took."""
        return self.whole.work + self.local.work

    @property
    def foreseen(self) -> float:
        """About what an evaluation takes that is no coarser: of both modules, and with what was too large now."""
        if not self.exceeded:
            return self.work
        return 2 * max(self.whole.work, self.local.work) * max(1.0, self.exceeded / self.elements)

    def note_seen(self, seen: dict[int, bool], results: Collection[int], is_telling: bool = True) -> None:
        """Note of which results there were values of both modules, if the inputs are telling, and of which there were
        none, as they are too large."""
        for n in results:
            if is_telling and self.whole.results[n] is not None and self.local.results[n] is not None:
                seen[n] = True
            elif self.exceeded:
                seen.setdefault(n, False)

    def differences(self, results: Collection[int], least: float = EVIDENT) -> dict[int, Difference]:
        """Where each of those results differs most, by that fraction of its largest element; without those that agree,
        or could not be evaluated.

        Nothing follows from it: what is equal in real arithmetic may look different (`confirm`). NaN where the logical
        module has a number counts, the other way it does not.
        """
        found = {}
        for n in results:
            whole, local = self.whole.results[n], self.local.results[n]
            if whole is None or local is None:
                continue
            try:
                apart = difference(whole, local, self.pair.results[n])
            except UnknownError:
                continue
            if apart is not None and apart.size > least * apart.scale:
                found[n] = apart
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Counterexample:
    """Inputs for which results differ, and where each of them differs most."""

    trial: Trial
    differences: dict[int, Difference]


def run(
    pair: Pair,
    inputs: Inputs,
    *,
    real: type = np.float64,
    watch: tuple[Collection[Name], Collection[Name]] = ((), ()),
    whole: Evaluation | None = None,
    limits: Limits | None = None,
    needed: Collection[int] | None = None,
    only: Collection[int] | None = None,
) -> Trial:
    """Evaluate both modules; `watch` are values of either that are asked for later, `whole` the logical module's
    evaluation for these inputs, where it is known. If none of the results that are `needed` is known of the logical
    module, the partitioned one is not evaluated: it counts as exceeding the limits too. With `only`, nothing but
    those results and what is watched is evaluated."""
    limits = limits or Limits()
    whole = whole or evaluate(pair.logical, inputs, 1, watch=watch[0], only=only, real=real, limits=limits)
    if needed is not None and whole.exceeded and all(whole.results[n] is None for n in needed):
        refused = replace(whole, results=(None,) * len(pair.results), work=0.0)
        return Trial(pair, inputs, whole, refused, limits.elements)
    maps = Maps()
    local = evaluate(
        pair.partitioned,
        local_arguments(pair, inputs, maps),
        1 if pair.arguments is None else pair.devices,
        watch=watch[1],
        only=only,
        real=real,
        limits=limits,
        maps=maps,
    )
    return Trial(pair, inputs, whole, local, limits.elements)


def local_arguments(pair: Pair, inputs: Sequence[Blocks], maps: Maps | None = None) -> tuple[Blocks | None, ...]:
    """What the devices hold of the inputs; None where that takes too much to say. `maps` are for what is made of it."""
    if pair.arguments is None:
        return tuple(inputs)
    generator, maps = np.random.default_rng(SEED), maps or Maps()

    def held(whole: Blocks, sharding: Sharding) -> Blocks | None:
        try:
            return shards(whole, sharding.spread(pair.devices), pair.devices, generator, maps=maps)
        except UnknownError:
            return None

    return tuple(held(*each) for each in zip(inputs, pair.arguments, strict=True))


def exceeds_rounding(trial: Trial, found: dict[int, Difference]) -> dict[int, Difference]:
    """Those differences that rounding cannot explain: single precision moves neither value by nearly as much."""
    moved, _ = _moved_by_single_precision(trial.pair, trial.inputs, found, Limits(trial.elements))
    return {n: found[n] for n, by in moved.items() if found[n].size > NOISE * by or not np.isfinite(found[n].size)}


def within_rounding(
    pair: Pair, inputs: Inputs, found: Mapping[int, Difference], limits: Limits
) -> tuple[set[int], float]:
    """Those that are seen of rounded constants as they are written, and that single precision may make as large: where
    a sum cancels, what is left is of the size of what its constants were rounded by. And the work of finding out."""
    asked = {n: apart for n, apart in found.items() if apart.as_written and np.isfinite(apart.size)}
    moved, work = _moved_by_single_precision(pair, inputs, asked, limits)
    return {n for n, by in moved.items() if not found[n].size > NOISE * by}, work


def beyond_noise(trial: Trial, found: dict[int, Difference]) -> tuple[dict[int, Difference], float]:
    """Those differences that are more than what double precision makes of equal values, and the work of finding out.

    Single precision moves a value by some 2^29 times what double precision does.
    """
    limits = Limits(trial.elements)  # a loop makes what no difference is about, too: as little as before
    moved, work = _moved_by_single_precision(trial.pair, trial.inputs, found, limits)
    noise = {n: NOISE * float(np.finfo(np.float64).eps / np.finfo(np.float32).eps) * by for n, by in moved.items()}
    hidden = [n for n, least in noise.items() if np.isfinite(least) and found[n].size <= least]
    return {n: apart for n, apart in found.items() if n not in hidden}, work


def _moved_by_single_precision(
    pair: Pair, inputs: Inputs, found: Mapping[int, Difference], limits: Limits
) -> tuple[dict[int, float], float]:
    """How far single precision moves both values of each difference together, where they are known, and the work."""
    if not found:
        return {}, 0.0
    again = run(pair, inputs, real=np.float32, limits=limits, only=found)
    moved = {}
    for n, apart in found.items():
        whole, local = again.whole.results[n], again.local.results[n]
        if whole is not None and local is not None:
            expected = element(whole, 0, apart.element)
            if apart.beside is not None:
                expected = element(local, apart.beside, apart.local_element)
            found_ = element(local, apart.device, apart.local_element)
            moved[n] = abs(expected - number(apart.expected)) + abs(found_ - number(apart.found))
    return moved, again.work


def is_clear(apart: Difference) -> bool:
    """Whether a difference is a large one."""
    return apart.relative > CLEAR


def evident(seen: Mapping[int, Difference]) -> set[int]:
    """The results whose difference is no rounding, in most cases."""
    return {n for n, apart in seen.items() if apart.relative > EVIDENT}


def is_as_good(still: Counterexample, found: Counterexample) -> bool:
    """Whether all that differed still differs, and clearly."""
    return still.differences.keys() == found.differences.keys() and all(map(is_clear, still.differences.values()))


def element(blocks: Blocks, device: int, index: Sequence[int]) -> Any:
    """One element on one device, as a number; of a value that all devices share, on any."""
    device = device if blocks.devices > 1 else 0
    return number(blocks.values[tuple(c[i] for c, i in zip(blocks.classes, (device, *index), strict=True))])


def number(value: Any) -> Any:
    """A numpy scalar as a number of Python's; of a truth value, 0 or 1."""
    return int(value) if value.dtype.kind in "biu" else value.item()
