"""Whether results surely differ: both modules evaluated on enclosures, at growing precision, until those are disjoint.

Evaluation in floating point only searches. What cancels there (`exp(y) - 1` against `expm1(y)`) may look different and
be equal; enclosures of equal numbers overlap at every precision.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from hlo_verify.evaluate import Blocks, Difference, Evaluation, Limits, UnknownError, difference, evaluate
from hlo_verify.evaluate.balls import exact, precision, radius
from hlo_verify.passes.refute.literals import CLEARLY, Literals, literals_of
from hlo_verify.passes.refute.trial import Inputs, local_arguments
from hlo_verify.program.pair import Pair
from hlo_verify.session import Session

PRECISIONS = (64, 256, 1024)
"""The bits of the enclosures, one after the other."""

STUCK = -1.0
"""Stands for the width of a result that more bits do not make narrower."""

STEPS = tuple((bits, is_strict) for bits in PRECISIONS for is_strict in (False, True))
"""Each precision with constants that stand for what they may be rounded from, then with those of both modules as they
are written."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What enclosures say of some results: where they surely differ, and of the others why that cannot be told."""

    differences: dict[int, Difference]
    open: dict[int, str]
    work: float
    """What it took (`Limits`)."""
    is_too_large: bool = False
    """Whether the modules take too much to be evaluated on enclosures for these inputs."""


@dataclass(slots=True)
class Confirmer:
    """Tells whether results of one pair surely differ for some inputs."""

    pair: Pair
    session: Session = field(default_factory=Session)
    _literals: Literals | None = None

    @property
    def assumes_rounded(self) -> bool:
        """Whether some constant was taken for a rounded number."""
        return self._literals is not None and self._literals.is_used

    def confirm(self, inputs: Inputs, results: Collection[int]) -> Confirmed:
        """Where those results surely differ for such inputs, and why the others are open."""
        found: dict[int, Difference] = {}
        reasons: dict[int, str] = {}
        widths: dict[tuple[int, bool], float] = {}
        is_too_large, work = False, 0.0
        for bits, is_strict in STEPS:
            left = [n for n in results if n not in found and widths.get((n, is_strict)) != STUCK]
            if not left or is_too_large or (is_strict and not self.assumes_rounded):
                continue
            with precision(bits):
                whole, local = self._both(inputs, left, is_strict)
                for n in left:
                    reasons[n] = _reason(whole, local, n, bits)
                    apart = self._apart(whole, local, n)
                    if apart is not None and (not is_strict or _is_clear(apart)):
                        found[n] = apart
                    before, now = widths.get((n, is_strict), math.inf), _width(whole, local, n)
                    is_stuck = bits > PRECISIONS[0] and now >= before / 2
                    widths[n, is_strict] = STUCK if is_stuck else now
            work += whole.work + local.work
            is_too_large = any(side.exceeded for side in (whole, local))
            if is_too_large:
                self.session.reached("enclosed_work")
        left = [n for n in results if n not in found]
        return Confirmed(found, {n: reasons[n] for n in left}, work, bool(left) and is_too_large)

    def _both(self, inputs: Inputs, results: Collection[int], is_strict: bool = False) -> tuple[Evaluation, Evaluation]:
        """Both modules' evaluations at the precision that is set."""
        if self._literals is None:
            self._literals = literals_of(self.pair.logical, self.pair.partitioned)
        self._literals.is_strict = is_strict
        bounds = self.session.limits
        limits = Limits(bounds.enclosed_elements, bounds.enclosed_work, heed=self.session.check)
        balls = tuple(_enclosed(blocks) for blocks in inputs)
        held, devices = local_arguments(self.pair, balls), 1 if self.pair.arguments is None else self.pair.devices
        sides = (self.pair.logical, balls, 1), (self.pair.partitioned, held, devices)
        whole, local = (
            evaluate(module, given, count, only=results, real=object, limits=limits, literals=self._literals)
            for module, given, count in sides
        )
        return whole, local

    def _apart(self, whole: Evaluation, local: Evaluation, n: int) -> Difference | None:
        a, b = whole.results[n], local.results[n]
        if a is None or b is None:
            return None
        try:
            return difference(a, b, self.pair.results[n])
        except UnknownError:
            return None


def _width(whole: Evaluation, local: Evaluation, n: int) -> float:
    """How wide the widest enclosure of a result is."""
    sides = [side.results[n] for side in (whole, local)]
    return max((radius(blocks.values) for blocks in sides if blocks is not None), default=math.inf)


def _is_clear(apart: Difference) -> bool:
    """Whether values differ by far more than a rounding; integers may differ by one."""
    if not math.isfinite(apart.size):
        return True
    is_float = isinstance(apart.expected, np.inexact)
    return is_float and apart.size > CLEARLY * max(abs(apart.expected), abs(apart.found))


def _enclosed(blocks: Blocks) -> Blocks:
    return replace(blocks, values=exact(blocks.values)) if blocks.values.dtype.kind in "fc" else blocks


def _reason(whole: Evaluation, local: Evaluation, n: int, bits: int) -> str:
    """Why it is open whether a result differs."""
    undefined = whole.undefined or local.undefined
    if undefined:
        return f"what differs may depend on what has no defined value: {undefined[0]}"
    unknown = [side.unknown for side in (whole, local) if side.results[n] is None and side.unknown]
    if unknown:
        return f"what differs cannot be enclosed: {unknown[0][0]}"
    return f"the values are no further apart than {bits} bits and the rounding of constants can tell"
