"""What a report says of a counterexample: the value that is lost, and an edit that was proved to make it right."""

from __future__ import annotations

import cmath
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from hlo_verify.diagnostics import Mismatch
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.evaluate import Difference, Limits, UnknownError, difference
from hlo_verify.evaluate.needed import only_results
from hlo_verify.passes.diagnose.finding import Lead
from hlo_verify.passes.diagnose.proved import are_proved
from hlo_verify.passes.refute import trial as trials
from hlo_verify.passes.refute.draws import Draw, Drawing
from hlo_verify.passes.refute.repairs import Repair, Repairs
from hlo_verify.passes.refute.trial import EVIDENT, Counterexample, Trial
from hlo_verify.program.sharding import Sharding
from hlo_verify.session import Session

TELLING = Draw(1.0, 8, 8)
"""Inputs of so many different elements that two shards are hardly ever alike."""


@dataclass(slots=True)
class Allowance:
    """What repairs may take, of all faults together."""

    session: Session
    work: float
    proofs: int

    @classmethod
    def of(cls, session: Session) -> Allowance:
        """What a session allows for."""
        return cls(session, session.limits.repair_work, session.limits.repair_proofs)

    def of_one_proof(self) -> Session:
        """What the proof of one repair may take; what it runs into is no matter of the report's."""
        limits = self.session.limits
        steps, refusals = min(limits.total_steps, limits.repair_steps), min(limits.refusals, limits.repair_refusals)
        return replace(self.session, limits=replace(limits, total_steps=steps, refusals=refusals), _reached={})

    @property
    def is_left(self) -> bool:
        """Whether there may be another one. A report without a repair runs into no limit that matters."""
        return self.work > 0 and self.proofs > 0 and not self.session.is_over and self.session.meter.left > 0


def suggest(
    found: Counterexample,
    mends: Repairs,
    lead: Lead,
    results: Collection[int],
    lost: Difference | None,
    allowance: Allowance,
) -> Repair | None:
    """A repair of the fault that makes all of those results PROVED. `lost` is where the fault's own value differs."""
    apart = lost or found.differences[min(results)]
    known = apart.found and cmath.isfinite(apart.found) and cmath.isfinite(apart.expected)
    factor = abs(apart.expected / apart.found) if known else None
    proofs, elsewhere = 0, None
    for repair in mends.near(lead.name, factor, results):
        if proofs >= allowance.session.limits.fault_proofs or not allowance.is_left:
            return None
        if not _agrees(found, repair, results, allowance):
            continue
        elsewhere = elsewhere or _elsewhere(found, results, allowance)
        if _differs(elsewhere, repair, results, allowance):
            continue
        proofs += 1
        allowance.proofs -= 1
        whole, local = (only_results(module, results) for module in (found.trial.pair.logical, repair.module))
        numbers = range(len(set(results))) if len(whole.result_names) == len(set(results)) else results
        if are_proved(whole, local, numbers, allowance.of_one_proof()):
            says_more = repair.code is Mismatch.DIFFERS or lead.mismatch is Mismatch.JOINED_LATE
            return replace(repair, code=lead.mismatch) if says_more else repair
    return None


def _agrees(found: Counterexample, repair: Repair, results: Collection[int], allowance: Allowance) -> bool:
    """Whether the repaired module's results are right for the counterexample's inputs."""
    pair = replace(found.trial.pair, partitioned=repair.module)
    trial = trials.run(pair, found.trial.inputs, whole=found.trial.whole, only=results)
    _charge(trial.local.work, allowance)
    sizes = {}
    for n in results:
        whole, local = trial.whole.results[n], trial.local.results[n]
        if whole is None or local is None:
            return False
        sizes[n] = whole.values.size + local.values.size
    for n in sorted(sizes, key=lambda n: sizes[n]):
        if allowance.work <= 0:
            return False
        allowance.work -= sizes[n]
        if trial.differences([n]):
            return False
    return True


def _limits(trial: Trial, allowance: Allowance) -> Limits:
    return Limits(trial.elements, min(allowance.work, allowance.session.limits.glance_work))


def _charge(work: float, allowance: Allowance) -> None:
    allowance.work -= work
    allowance.session.meter.charge(work)


def _elsewhere(found: Counterexample, results: Collection[int], allowance: Allowance) -> Trial:
    """Both modules for inputs that were not made plain: a witness's shards may be alike, whatever is sent where."""
    pair = found.trial.pair
    trial = trials.run(pair, Drawing(pair).draw(TELLING, 0), limits=_limits(found.trial, allowance), only=results)
    _charge(trial.work, allowance)
    return trial


def _differs(elsewhere: Trial, repair: Repair, results: Collection[int], allowance: Allowance) -> bool:
    """Whether the repaired module's results are wrong for those inputs; not where they take too much to be known."""
    if any(elsewhere.whole.results[n] is None for n in results):
        return False
    pair, limits = replace(elsewhere.pair, partitioned=repair.module), _limits(elsewhere, allowance)
    trial = trials.run(pair, elsewhere.inputs, whole=elsewhere.whole, only=results, limits=limits)
    _charge(trial.local.work, allowance)
    return bool(trial.differences(results))


def watched(found: Counterexample, leads: Collection[Lead], limits: Limits | None = None) -> Trial:
    """The values where meanings are lost, of both modules; for `lost_value`."""
    wholes = [lead.logical for lead in leads if lead.logical is not None and lead.starts is not None]
    locals_ = [lead.name for lead in leads if lead.logical is not None and lead.starts is not None]
    return trials.run(found.trial.pair, found.trial.inputs, watch=(wholes, locals_), limits=limits, only=())


def lost_value(trial: Trial, lead: Lead) -> Difference | None:
    """Both values where the meaning is lost, of a trial that watched them; None where there is no logical value to
    compare with, or they agree."""
    if lead.logical is None or lead.starts is None:
        return None
    whole, local = trial.whole.watched.get(lead.logical), trial.local.watched.get(lead.name)
    if whole is None or local is None:
        return None
    shape, sizes = np.array(local.shape, np.int64), np.array(whole.shape, np.int64)
    if len(shape) != len(sizes) or 0 in shape or np.any(lead.starts % shape):
        return None
    coordinates, tiles = lead.starts // shape, -(-sizes // shape)
    if np.any(coordinates >= tiles):
        return None  # the value has another shape than the shards that it was taken for
    others = np.zeros(len(coordinates), np.int64)
    try:
        apart = difference(whole, local, Sharding(tuple(tiles.tolist()), coordinates, others))
    except (InputError, UnknownError):
        return None
    return apart if apart is not None and not apart.nan and apart.size > EVIDENT * apart.scale else None
