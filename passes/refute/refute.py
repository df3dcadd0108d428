"""Refute what was not proved: results that differ for some inputs, which were found, made readable and replayed."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from hlo_verify.diagnostics import Input, Internal, Mismatch, Solver
from hlo_verify.diagnostics.errors import DisagreementError, InputError
from hlo_verify.evaluate import Blocks, Difference, Limits, allows
from hlo_verify.passes.diagnose.examine import Examination
from hlo_verify.passes.diagnose.finding import Lead
from hlo_verify.passes.prove.reports import out_of_time
from hlo_verify.passes.refute import trial as trials
from hlo_verify.passes.refute import where_decided, witness_file
from hlo_verify.passes.refute.literals import ASSUMPTION
from hlo_verify.passes.refute.repair_search import Allowance, lost_value, suggest, watched
from hlo_verify.passes.refute.repairs import repairs
from hlo_verify.passes.refute.search import Search
from hlo_verify.passes.refute.trial import Counterexample, Inputs
from hlo_verify.passes.refute.witness_file import Saved
from hlo_verify.passes.refute.xla_replay import Replay, is_small, replay
from hlo_verify.program import preconditions
from hlo_verify.program.ir import Module
from hlo_verify.program.pair import pair_of
from hlo_verify.program.sharding import Sharding
from hlo_verify.report import Finding, Report, Result, Verdict
from hlo_verify.session import Session, TimeUpError
from hlo_verify.witness import Point, Witness
from hlo_verify.xla.execute import Executor

FEW = 8
"""An argument with no more elements than this is written out."""

RUNNING = 60.0
"""How long XLA may take for a module, in seconds: past them, a report says that it was not replayed."""

MUCH_LESS = 1 / 3
"""What takes this share of all, or less, is looked at before all of it is. A loss takes that of a scanned model, which
keeps what its layers made for the gradients; of a model that keeps nothing, it takes nearly half, and gradients show
clearly what a mean over all tokens does not."""

LESS = 1 / 2
"""That share, where inputs are such that nothing hangs on what is too large, so that each layer is evaluated."""


@dataclass(frozen=True, slots=True, eq=False)
class Refutation:
    """The report with what was refuted, and the counterexamples."""

    report: Report
    counterexamples: tuple[Counterexample, ...] = ()


@dataclass(slots=True)
class Refuter:
    """Refutes the results of one pair: at first in passing, so that nobody tries to prove them, then for good.

    A context manager: it may have XLA started in a child process, which takes as long as the rest.
    """

    search: Search
    _executor: Executor | None = None

    def __enter__(self) -> Refuter:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._executor is not None:
            self._executor.close()

    def differing(
        self, results: Collection[int], *, in_earnest: bool = False, work: float = math.inf, is_large: bool = False
    ) -> set[int]:
        """Those of the results that differ for one of a few inputs, or of as many as there are or so much work allows
        for, `in_earnest`; if some do, all that are soon found to. With those that evidently look so, where it takes too
        much to be certain. Of a large module, the glance is at inputs for which nothing hangs on large tensors."""
        search, limits = self.search, self.search.session.limits
        if in_earnest:
            found = search.find(results, work=min(work, limits.search_work), within=work < limits.search_work)
        else:
            draws, share = (0, LESS) if is_large else (limits.glance_inputs, MUCH_LESS)
            found = search.find_first(results, draws=draws, work=limits.glance_work, share=share)
            found = found or search.find(results, draws=draws, work=limits.glance_work)
            if not found and not any(search.session.values_seen.get(n) for n in results):
                found = search.find_first(results, draws=draws, work=limits.glance_work, in_any_case=True)
        if found:
            self._start()
            found = search.find(results)
        return found | search.evident.intersection(results)

    def _start(self) -> None:
        if self._executor is None and is_small(self.search.pair):
            self._executor = Executor(self.search.pair.devices, timeout=RUNNING)
            self._executor.start()

    def refute(self, examination: Examination) -> Refutation:
        """Look for counterexamples to every result that was not proved.

        Raises `DisagreementError` where a result that was proved differs too: then the proof is wrong.
        """
        report, session = examination.report, self.search.session
        session.phase = "inputs were looked for that make a result differ"
        open_ = [result.index for result in report.results if result.verdict is Verdict.UNKNOWN]
        is_late = self._search(open_)
        if self.search.found(open_):
            self._start()
        results, kept, denied = list(report.results), [], set[int]()
        allowance = Allowance.of(session)
        for found in self.search.counterexamples(open_):
            self._check_proofs(found, report)
            replayed = replay(found, self._executor)
            for n, values in replayed.denied.items():
                reason = _denied(found.differences[n], *values)
                results[n] = replace(self._with_doubt(results[n]), reason=reason, code=Internal.DISAGREEMENT)
            denied |= replayed.denied.keys()
            found = replace(found, differences={n: d for n, d in found.differences.items() if n not in replayed.denied})
            if found.differences:
                kept.append(found)
                _conclude(results, found, replayed, examination.leads, allowance)
        kept += self._where_decided(results, report, examination.leads, allowance)
        if kept and self.search.confirmer.assumes_rounded:
            report = replace(report, assumptions=(*report.assumptions, ASSUMPTION))
        results = [result if result.index in denied else self._with_doubt(result) for result in results]
        report = replace(report, results=tuple(results))
        return Refutation(out_of_time(report, session) if is_late else report, tuple(kept))

    def _where_decided(
        self, results: list[Result], report: Report, leads: Mapping[Finding, Lead], allowance: Allowance
    ) -> list[Counterexample]:
        """Make results refuted that XLA shows to differ, where it hangs on what floats decide."""
        open_ = [result.index for result in results if result.verdict is Verdict.UNKNOWN]
        found = where_decided.counterexample(self.search, open_)
        if found is None:
            return []
        self._start()
        replayed = replay(found, self._executor)
        found = replace(found, differences={n: found.differences[n] for n in replayed.shown()})
        if not found.differences:
            return []
        self._check_proofs(found, report)
        _conclude(results, found, replayed, leads, allowance)
        return [found]

    def _search(self, results: Collection[int]) -> bool:
        """Look for inputs that make those results differ. Whether the time was up before it ended."""
        try:
            self.search.find(results)
        except TimeUpError:
            return True
        return False

    def _with_doubt(self, result: Result) -> Result:
        """An unproved result that looked different, with why it is not refuted."""
        why = self.search.open.get(result.index)
        if result.verdict is not Verdict.UNKNOWN or why is None:
            return result
        reason = f"{result.reason}; for some inputs it looks different, but {why}"
        return replace(result, reason=reason, seems_to_differ=True)

    def _check_proofs(self, found: Counterexample, report: Report) -> None:
        """Raises `DisagreementError` where a result that was proved differs for a counterexample's inputs."""
        proved = [result.index for result in report.results if result.verdict is Verdict.PROVED]
        if not proved:
            return
        limits = Limits(found.trial.elements, self.search.session.limits.evaluation_work)
        trial = trials.run(self.search.pair, found.trial.inputs, only=proved, limits=limits)
        for n, apart in self.search.confirmer.surely(trial, proved, trials.EVIDENT).items():
            raise DisagreementError(
                f"result {report.results[n].name} was proved, and evaluation finds {apart.found} for {apart.expected} "
                f"at {list(apart.element)} on device {apart.device}"
            )

    def again(self, inputs: Inputs, results: Collection[int]) -> tuple[Counterexample, Replay]:
        """What such inputs show."""
        trial = trials.run(self.search.pair, inputs)
        found = Counterexample(trial, self.search.confirmer.confirm(inputs, results).differences)
        self._start()
        return found, replay(found, self._executor)


def refuter(logical: Module, partitioned: Module, session: Session | None = None) -> Refuter:
    """For a pair of modules. Raises `InputError` where they are none."""
    return Refuter(Search(pair_of(logical, partitioned), session or Session()))


def _denied(apart: Difference, expected: float, got: float) -> str:
    return (
        f"evaluation finds {apart.found:.6g} for {apart.expected:.6g} at {list(apart.element)} on device "
        f"{apart.device}, but XLA computes {got:.6g} and {expected:.6g} there"
    )


def _conclude(
    results: list[Result], found: Counterexample, replayed: Replay, leads: Mapping[Finding, Lead], allowance: Allowance
) -> None:
    """Make the results of a counterexample refuted, and say of each finding what it takes to make them right."""
    inputs, mends = _inputs(found), repairs(found.trial.pair)
    by_finding: dict[Finding | None, list[int]] = {}
    for n in found.differences:
        by_finding.setdefault(results[n].finding, []).append(n)
    known = {finding: leads[finding] for finding in by_finding if finding is not None and finding in leads}
    limits = Limits(found.trial.elements, allowance.work)
    session, again = allowance.session, found.trial.work
    watching = watched(found, known.values(), limits) if known and session.affords(again) else None
    if watching is not None:
        session.meter.charge(watching.work)
    for finding, together in by_finding.items():
        lead = known.get(finding) if finding is not None else None
        lost = lost_value(watching, lead) if watching is not None and lead is not None else None
        repair = suggest(found, mends, lead, together, lost, allowance) if lead is not None else None
        if finding is not None and repair is not None:
            finding = replace(finding, suggestion=repair.text, code=repair.code)
        for n in together:
            witness_ = Witness(
                _point(found.differences[n]), inputs, replayed.how[n], None if lost is None else _point(lost)
            )
            code = Mismatch.DIFFERS if finding is None else finding.code
            refuted = replace(results[n], verdict=Verdict.REFUTED, finding=finding, code=code, witness=witness_)
            results[n] = refuted if found.differences[n].beside is None else _of_devices(refuted, found.differences[n])


def _of_devices(result: Result, apart: Difference) -> Result:
    """A refuted result that devices disagree on: what the logical module says of it is one of their values."""
    code, finding = Mismatch.DEVICES_DISAGREE, result.finding
    reason = f"devices {apart.beside} and {apart.device} hold different values of what should be the same on both"
    finding = None if finding is None else replace(finding, code=code, nearest="")
    return replace(result, reason=reason, code=code, finding=finding)


def _inputs(found: Counterexample) -> tuple[tuple[str, str], ...]:
    names = found.trial.pair.logical.argument_names
    return tuple((name, describe(blocks)) for name, blocks in zip(names, found.trial.inputs, strict=True))


def _point(apart: Difference) -> Point:
    """Of complex numbers, the part that differs more."""
    values = trials.number(apart.expected), trials.number(apart.found)
    if any(isinstance(value, complex) for value in values):
        apart_ = values[1] - values[0]
        values = tuple(v.real if abs(apart_.real) >= abs(apart_.imag) else v.imag for v in values)
    logical, partitioned = map(float, values)
    return Point(apart.device, apart.element, apart.local_element, logical, partitioned, apart.beside)


def describe(blocks: Blocks) -> str:
    """An input in words."""
    shape = blocks.shape
    size = int(np.prod(shape, dtype=np.int64))
    used = np.unique(blocks.values)
    if size == 0:
        return "no elements"
    if len(used) == 1:
        return f"{_number(used[0])}" + (" everywhere" if size > 1 else "")
    if size <= FEW:
        values = [trials.element(blocks, 0, index) for index in np.ndindex(shape)]
        return f"[{', '.join(map(_number, values))}]"
    ends = f"from {_number(used[0])} to {_number(used[-1])}"
    return f"{len(used)} values, {ends}; {_number(trials.element(blocks, 0, (0,) * len(shape)))} at the first element"


def _number(value: Any) -> str:
    return str(bool(value)).lower() if isinstance(value, bool | np.bool_) else f"{value:.6g}"


def save(path: Path, found: Counterexample, logical: bytes, partitioned: bytes) -> None:
    """Save a counterexample for modules whose files have those contents. Raises `InputError`."""
    pair = found.trial.pair
    points = tuple((n, d.device, d.element, d.local_element) for n, d in found.differences.items())
    arguments = pair.arguments or (None,) * len(found.trial.inputs)
    saved = Saved(
        pair.logical.name,
        pair.devices,
        logical,
        partitioned,
        found.trial.inputs,
        arguments,
        pair.results,
        points,
        pair.logical.assumed,
    )
    witness_file.save(path, saved)


def again(saved: Saved, logical: Module, partitioned: Module) -> Report:
    """What a saved witness shows of two modules. Raises `InputError` where it is not about such modules."""
    started = time.perf_counter()
    logical, partitioned = _as_placed(saved, logical), _as_placed(saved, partitioned)
    shapes = [blocks.shape for blocks in saved.inputs]
    if shapes != [type_.shape for type_ in logical.main.argument_types]:
        raise InputError("the witness is for other arguments than the logical module's", Input.NOT_A_PAIR)
    if saved.assumed and len(saved.assumed) != len(shapes):
        raise InputError("the witness assumes something of other arguments than the logical module's", Input.DAMAGED)
    logical = replace(logical, assumed=saved.assumed)
    if not all(map(allows, preconditions.assumed(logical), saved.inputs)):
        raise InputError(
            f"the inputs are no witness where it holds that {'; '.join(preconditions.said(logical))}", Input.DAMAGED
        )
    numbers = [n for n, *_ in saved.points]
    with refuter(logical, partitioned) as refutes:
        found, replayed = refutes.again(saved.inputs, numbers)
    differences = found.differences
    says = "no longer differs for these inputs", Solver.NO_LONGER_DIFFERS
    results = [Result(n, logical.result_names[n], Verdict.UNKNOWN, says[0], code=says[1]) for n in numbers]
    for k, n in enumerate(numbers):
        if n in replayed.denied:
            results[k] = replace(
                results[k], reason=_denied(differences[n], *replayed.denied[n]), code=Internal.DISAGREEMENT
            )
        elif n in differences:
            witness_ = Witness(_point(differences[n]), _inputs(found), replayed.how[n])
            results[k] = replace(
                results[k], verdict=Verdict.REFUTED, reason="", code=Mismatch.DIFFERS, witness=witness_
            )
    seconds = time.perf_counter() - started
    said = preconditions.said(logical)
    return Report(saved.name, tuple(results), (), saved.devices, seconds, preconditions=said)


def _as_placed(saved: Saved, module: Module) -> Module:
    """The module with the placements that the witness has, where it does not say itself."""

    def fill(own: Sequence[Sharding | None], given: Sequence[Sharding | None]) -> tuple[Sharding | None, ...]:
        return tuple(own) if len(own) != len(given) else tuple(a or b for a, b in zip(own, given, strict=True))

    return replace(
        module,
        argument_shardings=fill(module.argument_shardings, saved.arguments),
        result_shardings=fill(module.result_shardings, saved.results),
    )
