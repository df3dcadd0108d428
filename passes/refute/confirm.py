"""Whether results surely differ: both modules evaluated on enclosures, at growing precision, until those are disjoint.

The first are intervals of floats, whole arrays at a time; balls, many times as slow, are asked where these leave
something open. Evaluation in floating point only searches. What cancels there (`exp(y) - 1` against `expm1(y)`) may
look different and be equal; enclosures of equal numbers overlap at every precision.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from flint import arb

from hlo_verify.evaluate import Blocks, Difference, Evaluation, Limits, UnknownError, balls, difference, evaluate
from hlo_verify.evaluate.balls import BALLS, precision
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.maps import Maps
from hlo_verify.evaluate.needed import needs
from hlo_verify.evaluate.numbers import exact
from hlo_verify.evaluate.signs import other_choices
from hlo_verify.evaluate.state import WEIGHTS, Instead
from hlo_verify.passes.refute.literals import CLEARLY, Literals, literals_of
from hlo_verify.passes.refute.trial import Inputs, Trial, beyond_noise, local_arguments, within_rounding
from hlo_verify.program.element_types import exponent_bits, finfo, is_float
from hlo_verify.program.ir import Name
from hlo_verify.program.pair import Pair
from hlo_verify.session import Session


@dataclass(frozen=True, slots=True)
class Stage:
    """One kind of enclosures, and with how many bits; `limits` are the names of what they may take."""

    real: np.dtype[Any]
    bits: int
    limits: tuple[str, str]
    decides: bool = False
    """Whether what floats may decide otherwise is taken for decided as real numbers are."""


FLOATS = Stage(INTERVALS, 53, ("interval_elements", "interval_work"))
DECIDED = replace(FLOATS, decides=True)
FEWEST = 64
"""The bits of the first balls."""

FURTHER = 4
"""So many times as many bits the next ones have."""

NEARLY = 0.99
"""What floating point makes of a difference is off by less than that leaves, or it is noise."""

ROUNDED = "that is no more than rounding its constants makes of it"

TOO_SMALL = "it differs by what is too small for its type alone, and 0 on either side in floating point"

BY_SIGNS = "what differs hangs on the signs of eigenvectors or singular vectors, which are anybody's choice"

STUCK = -1.0
"""Stands for the width of a result that more bits do not make narrower."""


@dataclass(slots=True)
class Confirmed:
    """What enclosures say of some results: where they surely differ, and of the others why that cannot be told."""

    differences: dict[int, Difference] = field(default_factory=dict)
    open: dict[int, str] = field(default_factory=dict)
    work: float = 0.0
    """What it took (`Limits`)."""
    largest: int = 0
    """Elements of the largest tensor."""
    is_too_large: bool = False
    """Whether the modules take too much to be evaluated on enclosures for these inputs."""
    is_dear: bool = False
    """Whether even the first of them could not be had."""


@dataclass(slots=True)
class Confirmer:
    """Tells whether results of one pair surely differ for some inputs."""

    pair: Pair
    session: Session = field(default_factory=Session)
    _literals: Literals | None = None
    _folded: list[dict[Name, Instead]] = field(default_factory=list)
    """What is in place of values of each module."""
    _elements: float = math.inf

    @property
    def assumes_rounded(self) -> bool:
        """Whether some constant was taken for a rounded number."""
        return self._literals is not None and self._literals.is_used

    def confirm(
        self,
        inputs: Inputs,
        results: Collection[int],
        seen: Mapping[int, Difference] | None = None,
        elements: int | None = None,
        most: float = math.inf,
    ) -> Confirmed:
        """Where those results surely differ for such inputs, and why the others are open. Where it is known how far
        apart they are `seen` in floating point, what cannot be clear is not asked as if it could. No tensor needs to
        have more than so many `elements`; balls are not asked where they would take more work than that, about."""
        said = Confirmed()
        self._elements = math.inf if elements is None else elements
        widths: dict[tuple[int, bool], float] = {}
        known_faint = faintly(seen or {})
        for stage in self._stages():
            if stage is not FLOATS and said.open and _foreseen(said, stage) > most:
                self._give_up(said, "wrong_work")
                break
            left = [n for n in results if n not in said.differences]
            narrow = [n for n in left if n not in known_faint and widths.get((n, True)) != STUCK]
            faint = self._compare(inputs, narrow, stage, True, said, widths)
            # What the narrow enclosures leave open, the wide ones do; what is faint needs them in any case.
            faint += [n for n in left if n in known_faint]
            wide = [n for n in faint if widths.get((n, False)) != STUCK]
            self._compare(inputs, wide, stage, False, said, widths)
            if stage is FLOATS and said.open and said.largest > self.session.limits.enclosed_elements:
                self._give_up(said, "enclosed_elements")
        if said.open and not said.is_too_large and any(widths.get((n, False)) != STUCK for n in said.open):
            self.session.reached("enclosed_bits")
        self._leave_rounding(inputs, said)
        return said

    def surely(self, trial: Trial, results: Collection[int], least: float) -> dict[int, Difference]:
        """Where those results surely differ for a trial's inputs, of what looks so by that fraction, beyond noise."""
        seen, _ = beyond_noise(trial, trial.differences(results, least))
        return self.confirm(trial.inputs, seen, seen).differences if seen else {}

    def where_decided(self, inputs: Inputs, results: Collection[int]) -> dict[int, Difference]:
        """Where those results differ clearly if floats decide as real numbers do: whether they do, XLA has to show."""
        said = Confirmed()
        self._compare(inputs, results, DECIDED, True, said, {})
        self._leave_rounding(inputs, said)
        return said.differences

    def _leave_rounding(self, inputs: Inputs, said: Confirmed) -> None:
        """Leave open what may be no more than constants were rounded by, unless it differs whatever these stand for."""
        limits = self.session.limits
        most = Limits(int(min(limits.evaluation_elements, self._elements)), limits.evaluation_work)
        faint, work = within_rounding(self.pair, inputs, said.differences, most)
        said.work += work
        for n in faint:
            del said.differences[n]
            said.open[n] = ROUNDED
        self._compare(inputs, faint, FLOATS, False, said, {})

    def _stages(self) -> Iterator[Stage]:
        """The enclosures, one after the other."""
        yield FLOATS
        bits = FEWEST
        while bits <= self.session.limits.enclosed_bits:
            yield Stage(BALLS, bits, ("enclosed_elements", "enclosed_work"))
            bits *= FURTHER

    def _compare(
        self,
        inputs: Inputs,
        results: Collection[int],
        stage: Stage,
        is_strict: bool,
        said: Confirmed,
        widths: dict[tuple[int, bool], float],
    ) -> list[int]:
        """Add to what is said of those results, with constants of both modules as they are written, or such that stand
        for what they may be rounded from. Those that differ with these constants by no more than a rounding."""
        if not results or said.is_too_large:
            return []
        with precision(stage.bits), np.errstate(all="ignore"):
            whole, local = self._both(inputs, results, stage, is_strict)
            found = {n: self._apart(whole, local, n) for n in results}
            depend = set[int]()
            if whole.vectors or local.vectors:
                differing = [n for n, each in found.items() if each is not None]
                depend = self._hang_on_signs((whole, local), inputs, differing, stage, is_strict)
                found |= dict.fromkeys(depend)
        said.work += whole.work + local.work
        faint, as_written = [], is_strict and self.assumes_rounded
        for n, apart in found.items():
            if apart is not None and _are_both_zero(apart, self.pair.logical.result_types[n].dtype):
                said.open[n] = TOO_SMALL
                widths[n, True] = widths[n, False] = STUCK
                continue
            if apart is not None and (not as_written or _is_clear(apart, CLEARLY)):
                said.differences[n] = replace(apart, as_written=as_written)
                said.open.pop(n, None)
                continue
            faint += [n] if apart is not None else []
            said.open[n] = BY_SIGNS if n in depend else _reason(whole, local, n, stage.bits)
            if n in depend:
                widths[n, True] = widths[n, False] = STUCK
            elif stage is not FLOATS:
                before, now = widths.get((n, is_strict), math.inf), _width(whole, local, n)
                widths[n, is_strict] = STUCK if stage.bits > FEWEST and now >= before / 2 else now
        said.largest = max(said.largest, whole.largest, local.largest)
        if said.open and max(whole.exceeded, local.exceeded):
            said.is_dear = said.is_dear or stage is FLOATS
            self._give_up(said, stage.limits[1])
        return faint

    def _hang_on_signs(
        self,
        both: tuple[Evaluation, Evaluation],
        inputs: Inputs,
        results: Collection[int],
        stage: Stage,
        is_strict: bool,
    ) -> set[int]:
        """The results of which a side differs from itself where eigenvectors have other signs, or may do so: a library
        may give either, and no specification says which."""
        found = set[int]()
        for signs in other_choices(max(each.vectors for each in both)):
            left = [n for n in results if n not in found]
            if left:
                others = self._both(inputs, left, stage, is_strict, signs)
                found |= {n for n in left if not all(_meet(*sides, n) for sides in zip(both, others, strict=True))}
        return found

    def _give_up(self, said: Confirmed, limit: str) -> None:
        said.is_too_large = True
        self.session.reached(limit)

    def _both(
        self, inputs: Inputs, results: Collection[int], stage: Stage, is_strict: bool = False, signs: int = 0
    ) -> tuple[Evaluation, Evaluation]:
        """Both modules' evaluations at the precision that is set."""
        if self._literals is None:
            self._literals = literals_of(self.pair.logical, self.pair.partitioned)
            self._folded = [self._literals.folded(module) for module in (self.pair.logical, self.pair.partitioned)]
        self._literals.is_strict = is_strict
        elements, work = (getattr(self.session.limits, name) for name in stage.limits)
        room = self.session.limits.evaluation_room
        limits = Limits(int(min(elements, self._elements)), work, heed=self.session.check, room=room)
        given = tuple(enclosed(blocks, stage.real) for blocks in inputs)
        maps, devices = Maps(), 1 if self.pair.arguments is None else self.pair.devices
        held = local_arguments(self.pair, given, maps)
        asked = partial(
            evaluate,
            only=results,
            real=stage.real,
            limits=limits,
            literals=self._literals,
            decides=stage.decides,
            signs=signs,
        )
        # what makes the logical module divide by zero is no witness; what makes a device do so, is one
        of_whole, of_parts = self._folded
        whole = asked(self.pair.logical, given, 1, has_domains=True, instead=of_whole)
        return whole, asked(self.pair.partitioned, held, devices, maps=maps, instead=of_parts)

    def _apart(self, whole: Evaluation, local: Evaluation, n: int) -> Difference | None:
        a, b = whole.results[n], local.results[n]
        if a is None or b is None:
            return None
        try:
            return difference(a, b, self.pair.results[n])
        except UnknownError:
            return None


def _meet(one: Evaluation, other: Evaluation, n: int) -> bool:
    """Whether each element of a result, enclosed twice, may be the same number."""
    a, b = one.results[n], other.results[n]
    if a is None or b is None or a.values.shape != b.values.shape:
        return False
    pairs = zip(a.values.reshape(-1), b.values.reshape(-1), strict=True)
    return all(x.overlaps(y) if isinstance(x, arb) and isinstance(y, arb) else x == y for x, y in pairs)


def _foreseen(said: Confirmed, stage: Stage) -> float:
    """About how much all work comes to with such balls: as much as before, on many times as slow enclosures."""
    first = WEIGHTS[BALLS] / WEIGHTS[INTERVALS]
    return said.work * (1 + first) if stage.bits == FEWEST else 2 * said.work


def _width(whole: Evaluation, local: Evaluation, n: int) -> float:
    """How wide the widest enclosure of a result is."""
    sides = [side.results[n] for side in (whole, local)]
    return max((balls.radius(blocks.values) for blocks in sides if blocks is not None), default=math.inf)


def asked_first(trial: Trial, seen: Mapping[int, Difference], most: float) -> dict[int, Difference]:
    """Of results that look different, those that enclosures are asked about at once: what takes least first, as many as
    that work allows for. One that surely differs refutes the module."""
    needed = needs(trial.pair.logical.main, seen, lambda op: sum(trial.whole.costs.get(n, 0.0) for n in op.results))
    scale = WEIGHTS[INTERVALS] * trial.work / max(trial.whole.work, 1.0)
    faint = faintly(seen)
    clear = seen.keys() - faint
    chosen: list[int] = []
    for n in sorted(seen, key=lambda n: (n in faint, needed.of([n]))):
        asked = {*chosen, n}
        # those that are faint are asked about by themselves
        work = scale * (needed.of(asked & clear) + needed.of(asked & faint))
        if not chosen or work <= most:
            chosen.append(n)
    return {n: seen[n] for n in chosen}


def faintly(seen: Mapping[int, Difference]) -> set[int]:
    """The results that floating point shows to be no farther apart than a rounding of constants may put them."""
    return {n for n, apart in seen.items() if not _is_clear(apart, NEARLY * CLEARLY)}


def _are_both_zero(apart: Difference, dtype: str) -> bool:
    """Whether two values differ by what a machine has 0 for in either of them; of complex numbers, part by part. Types
    with more bits for the exponent than f16 have numbers that are small enough, and 0 for what is below normal ones."""
    kind = dtype.removeprefix("complex<").removesuffix(">")
    if not is_float(kind):
        return False
    limits = finfo(kind)
    is_flushed = exponent_bits(kind) > exponent_bits("f16")
    least = float(limits.smallest_normal) if is_flushed else float(limits.smallest_subnormal) / 2
    parts = ((getattr(value, part) for value in (apart.expected, apart.found)) for part in ("real", "imag"))
    return all(a == b or (abs(a) < least and abs(b) < least) for a, b in parts)


def _is_clear(apart: Difference, least: float) -> bool:
    """Whether values differ by more than that fraction of them, and not as integers, which a rounding moves by one."""
    if not math.isfinite(apart.size):
        return True
    is_inexact = isinstance(apart.expected, np.inexact)
    return is_inexact and apart.size > least * max(abs(apart.expected), abs(apart.found))


def enclosed(blocks: Blocks, real: np.dtype[Any]) -> Blocks:
    """What is drawn, as enclosures of that kind."""
    letters = "f" if real == INTERVALS else "fc"
    return replace(blocks, values=exact(blocks.values, real)) if blocks.values.dtype.kind in letters else blocks


def _reason(whole: Evaluation, local: Evaluation, n: int, bits: int) -> str:
    """Why it is open whether a result differs."""
    undefined = whole.undefined or local.undefined
    if undefined:
        return f"what differs may depend on what has no defined value: {undefined[0]}"
    unknown = [side.unknown for side in (whole, local) if side.results[n] is None and side.unknown]
    if unknown:
        return f"what differs cannot be enclosed: {unknown[0][0]}"
    return f"the values are no further apart than {bits} bits and the rounding of constants can tell"
