"""Small modules that are proved, looked at once more: both are evaluated for inputs that are drawn.

No proof leans on it, and nothing is proved by it: it takes back what evaluation contradicts. A law that is wrong shows
in small programs as in large ones, and there numbers cost next to nothing. Two things are looked for: a result that
surely differs (as for a witness, on enclosures), and elements that are no numbers in the logical module whatever the
inputs are, and numbers on a device: a proof takes for granted that inputs lead to none (0/0, the mean of an empty row),
which says nothing of what none of them leads out of.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from hlo_verify.diagnostics import Code, Internal, Solver
from hlo_verify.evaluate import Limits, UnknownError, allows, evaluate, numbers_alone
from hlo_verify.evaluate.balls import BALLS, precision
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.maps import Array, Maps
from hlo_verify.passes.refute import trial as trials
from hlo_verify.passes.refute.confirm import FEWEST, Confirmer, enclosed
from hlo_verify.passes.refute.draws import EVEN, Draw, Drawing, Zeroed
from hlo_verify.passes.refute.trial import Trial
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import Module
from hlo_verify.program.pair import Pair, pair_of
from hlo_verify.program.preconditions import assumed
from hlo_verify.report import Report, Verdict
from hlo_verify.session import Session, TimeUpError

DRAWS = (
    Draw(1.0, 128, 8),
    Draw(4.0, 128, 1000, positive=True),
    Draw(1.0, 128, 8, edges=True, zeros=Zeroed.ELEMENTS),
)
"""With as many different elements as there are; the last has zeros, and integers that wrap."""

DIFFERS = "internal error: it was proved, and evaluation finds {0.found} for {0.expected} at {1} on device {0.device}"
ELSEWHERE = "internal error: another result was proved, and evaluation finds that it differs"
NO_NUMBER = (
    "equal wherever the logical module gives numbers, but at place {place} of device {device} it gives none for any "
    "input that was tried, and the device does"
)


def countersigned(report: Report, logical: Module, partitioned: Module, session: Session) -> Report:
    """The report without the proofs that evaluation contradicts."""
    proved = [result.index for result in report.results if result.verdict is Verdict.PROVED]
    try:
        return _countersigned(report, proved, _Look(pair_of(logical, partitioned), session))
    except TimeUpError:  # it was proved in time
        return report


def _countersigned(report: Report, proved: Sequence[int], looked: _Look) -> Report:
    for number, draw in enumerate(DRAWS):
        differing = looked.differing(draw, number, proved)
        if differing:  # nothing is proved by a prover that is wrong somewhere
            return take_back(report, dict.fromkeys(proved, ELSEWHERE) | differing, Internal.DISAGREEMENT)
    alone = looked.numbers_alone()
    return take_back(report, alone, Solver.NO_NUMBER) if alone else report


def take_back(report: Report, said: Mapping[int, str], code: Code) -> Report:
    """The report where those results are not proved, and why."""
    results = (
        replace(result, verdict=Verdict.UNKNOWN, reason=said[result.index], code=code)
        if result.index in said
        else result
        for result in report.results
    )
    return replace(report, results=tuple(results))


@dataclass(slots=True)
class _Look:
    """Evaluates a pair for inputs that are drawn."""

    pair: Pair
    session: Session
    drawing: Drawing = field(init=False)
    confirmer: Confirmer = field(init=False)
    _alone: dict[int, Array] = field(default_factory=dict)
    """Of results of floats: where devices had numbers and the logical module none, for all draws so far."""

    def __post_init__(self) -> None:
        self.drawing, self.confirmer = Drawing(self.pair), Confirmer(self.pair, self.session)

    def differing(self, draw: Draw, seed: int, results: Collection[int]) -> dict[int, str]:
        """The results that surely differ for that draw, each with how."""
        inputs = self.drawing.draw(draw, seed)
        trial = trials.run(self.pair, inputs, limits=self._limits(), only=results)
        if not all(map(allows, assumed(self.pair.logical), inputs)):
            return {}
        self._keep_alone(trial, results)
        surely = self.confirmer.surely(trial, results, trials.NOTICED)
        return {n: DIFFERS.format(apart, list(apart.element)) for n, apart in surely.items()}

    def numbers_alone(self) -> dict[int, str]:
        """The results of which some element is a number on a device alone, for draws of all scales."""
        for seed, draw in enumerate(EVEN):
            open_ = [n for n, are_alone in self._alone.items() if are_alone.any()]
            if not open_:
                return {}
            inputs = self.drawing.draw(replace(draw, detail=DRAWS[0].detail), seed)
            self._keep_alone(trials.run(self.pair, inputs, limits=self._limits(), only=open_), open_)
        self._keep_alone(self._enclosed(self._alone), [*self._alone])
        said = {}
        for n, are_alone in self._alone.items():
            if are_alone.any():
                device, *place = (int(at[0]) for at in np.nonzero(are_alone))
                said[n] = NO_NUMBER.format(device=device, place=place)
        return said

    def _enclosed(self, results: Collection[int]) -> Trial:
        """The first draw once more, on enclosures. The rest of a sum, where 0 is divided by 0, may be any number; and
        what is too small or too large for a float is a number: `exp(-1e9) / exp(-1e9)` is 1."""
        inputs = self.drawing.draw(DRAWS[0], 0)
        maps, devices = Maps(), 1 if self.pair.arguments is None else self.pair.devices
        held = trials.local_arguments(self.pair, tuple(enclosed(each, INTERVALS) for each in inputs), maps)
        asked = partial(evaluate, only=results, limits=self._limits())
        with np.errstate(all="ignore"), precision(FEWEST):
            local = asked(self.pair.partitioned, held, devices, real=INTERVALS, maps=maps)
            whole = asked(self.pair.logical, tuple(enclosed(each, BALLS) for each in inputs), 1, real=BALLS)
        return Trial(self.pair, inputs, whole, local)

    def _limits(self) -> Limits:
        bounds = self.session.limits
        return Limits(bounds.evaluation_elements, bounds.countersigned_work, heed=self.session.check)

    def _keep_alone(self, trial: Trial, results: Collection[int]) -> None:
        """Keep what is alone for this trial as well; nothing of a result that could not be evaluated."""
        found = {}
        for n in results:
            whole, local = trial.whole.results[n], trial.local.results[n]
            if whole is None or local is None or not is_float(self.pair.logical.result_types[n].dtype):
                continue
            with suppress(UnknownError):
                found[n] = numbers_alone(whole, local, self.pair.results[n])
        known = self._alone or found
        self._alone = {n: are_alone & known[n] for n, are_alone in found.items() if n in known}
