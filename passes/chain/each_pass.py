"""A chain of modules, verified pass by pass.

Every module is compared with the one before it, which is quick where they are alike; where that does not do, a module
before the partitioner is compared with the last one that was proved, and a partitioned one with the module that the
partitioner was given. Each comparison is over all inputs, so that a pass on which the proof fails does not keep
later ones from being proved (docs/decisions/chains.md).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hlo_verify import custom_calls, defects
from hlo_verify.diagnostics import Diagnostic, Severity, Solver
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.limits import TIME_LIMIT, Effort, Limits
from hlo_verify.passes.chain.amplified import Amplified, amplified
from hlo_verify.passes.chain.folded_constants import Folded, Reading
from hlo_verify.passes.chain.pair_programs import knows_devices, pair_of_programs, pair_of_wholes
from hlo_verify.passes.chain.proofs import forms
from hlo_verify.passes.diagnose.examine import examine, prove
from hlo_verify.passes.diagnose.proved import are_proved
from hlo_verify.passes.diagnose.scenes import shown
from hlo_verify.passes.load.conversion import until
from hlo_verify.passes.load.load import load
from hlo_verify.passes.place.infer import infer
from hlo_verify.passes.place.inferred import Inferred
from hlo_verify.passes.prove.prove import glance
from hlo_verify.passes.prove.reports import ASSUMPTIONS
from hlo_verify.passes.prove.same_program import Programs
from hlo_verify.passes.refute.when_asked import WhenAsked
from hlo_verify.program.depth import deeply
from hlo_verify.program.ir import Module, operations
from hlo_verify.program.op_families import has_effect
from hlo_verify.program.pair import check_agreement, device_count
from hlo_verify.report import ChainReport, Report, Step, Verdict
from hlo_verify.session import Session, TimeUpError
from hlo_verify.sources import dump_chains, shardings_file
from hlo_verify.sources.dump_pairs import Dump

Progress = Callable[[int, int], None]


class Found(NamedTuple):
    """A verdict, how it was found, why it is not PROVED (with a code), and the dump that was compared with."""

    verdict: Verdict
    how: str = ""
    reason: str = ""
    code: str = ""
    compared_with: str = ""


BEGINNING = "the beginning"
SAME = "same operations"
ALIKE = "equal to the one before"
PROVED_AGAIN = "equal to the last one proved"
LOGICAL = "equal to the logical module"
NOTHING = "there is nothing that it could be compared with: what was before is missing, or cannot be read"
BY_DEVICE = (
    "it works device by device, and such modules are only compared operation by operation before the partitioner"
)
ROUNDED = (
    "it is equal but for roundings of constants; in programs of several replicas it is not seen whether they stay some"
)
REPLICAS = "programs of several replicas are not compared with one another"


@deeply
def verify_passes(
    chain: dump_chains.Chain,
    *,
    devices: int | None = None,
    shardings: Sequence[shardings_file.Shardings | None] = (),
    refute: bool = True,
    progress: Progress | None = None,
    effort: Effort = "normal",
    time_limit: float | None = TIME_LIMIT,
) -> ChainReport:
    """Decide for each dump of a chain whether it is still the program that the first one was.

    `shardings` are demanded of the module that the partitioner was given. A dump that cannot be read is UNKNOWN; the
    first that can, before the partitioner, is PROVED: it is what the program is. `effort` and `time_limit` are what
    each step may take, as for `hlo_verify.verify`.
    """
    return _Walk(chain, devices, shardings, refute, partial(Session.begin, Limits.of(effort), time_limit)).run(progress)


class _Walk:
    """One walk along a chain, which keeps what later modules are compared with."""

    def __init__(
        self,
        chain: dump_chains.Chain,
        devices: int | None,
        shardings: Sequence[shardings_file.Shardings | None],
        refute: bool,
        begun: Callable[[], Session],
    ) -> None:
        self._chain = chain
        self._devices = devices
        self._shardings = shardings
        self._refute = refute
        self._begun = begun
        """Gives the session of another step, which begins then."""
        self._session = Session()
        self._programs = Programs()
        self._folded = Folded()
        self._is_partitioned = False
        self._first: Module | None = None
        """The first that could be read: what it says of where arguments and results lie, no pass may say otherwise."""
        self._logical: Module | None = None
        """What the partitioner was given."""
        self._inferred: Inferred | None = None
        """Where things lie behind it, and what the partitioner was given."""
        self._given = Found(Verdict.PROVED)
        """The verdict for that."""
        self._last: Module | None = None
        self._proved: Module | None = None
        self._found = Found(Verdict.PROVED)
        """The verdict for the last module that could be read."""
        self._report: Report | None = None
        self._notes: dict[str, None] = {}
        self._device_count = 1
        self._far: Amplified | None = None
        """Where the module that is being decided amplifies the roundings of constants, if that is all that is amiss."""

    def run(self, progress: Progress | None) -> ChainReport:
        started = time.perf_counter()
        steps: list[Step] = []
        with contextlib.suppress(KeyboardInterrupt):  # what is known so far is kept
            for n, dump in enumerate(self._chain.dumps):
                if progress is not None:
                    progress(n, len(self._chain.dumps))
                begun = time.perf_counter()
                if n == self._chain.partitioned:
                    self._partition()
                found = self._step(dump)
                seconds = time.perf_counter() - begun
                steps.append(Step(dump.step, dump.pipeline, dump.after, dump.path.name, *found, seconds))
        seconds = time.perf_counter() - started
        assumptions = (*ASSUMPTIONS, *self._notes)
        missing = len(self._chain.dumps) - len(steps)
        return ChainReport(
            self._chain.module, tuple(steps), assumptions, self._device_count, seconds, self._report, missing
        )

    def _partition(self) -> None:
        """From here on modules are what a device runs."""
        self._is_partitioned = True
        self._logical, self._given = self._last, self._found
        self._last, self._proved, self._found = None, None, Found(Verdict.PROVED)
        if self._logical is not None:
            for demanded in self._shardings:
                self._logical = self._logical if demanded is None else demanded.apply(self._logical)

    def _step(self, dump: Dump) -> Found:
        self._session = session = self._begun()
        try:
            with until(session.deadline):
                module = load(dump.path, devices=self._devices)
            found = self._decide(module)
        except TimeUpError:
            return Found(Verdict.UNKNOWN, reason=f"the time was up while {session.phase}", code=Solver.TIME_UP.value)
        except InputError as error:
            return Found(Verdict.UNKNOWN, reason=str(error), code=error.code.value)
        except Exception as error:  # a defect: what it says of one dump says nothing of the others
            said = defects.diagnose(error)
            return Found(Verdict.UNKNOWN, reason=said.message, code=said.code.value)
        self._found = found
        return found

    def _decide(self, given: Module) -> Found:
        self._first = self._first or given
        check_agreement(self._first, given)
        before = self._last or self._logical
        readings = [Reading(given)] if before is None else list(self._folded.readings(before, given))
        self._far = None
        if self._last is None and not self._is_partitioned:
            module, found = given, Found(Verdict.PROVED, BEGINNING)
        else:
            module, found = self._like_one_before(given, readings) or self._unlike_those_before(given, readings)
        self._last = module
        if found.verdict is Verdict.PROVED:
            self._proved = module
            self._notes.update(dict.fromkeys((*module.notes, *custom_calls.assumptions((module,)), *_beside(module))))
        return found

    def _like_one_before(self, given: Module, readings: Sequence[Reading]) -> tuple[Module, Found] | None:
        """A module that is equal to the last one, or else to the last proved, with the verdict that they share."""
        if self._last is not None:
            for reading in readings:
                how = self._likeness(self._last, reading.module)
                is_it = how == SAME and reading.is_as_computed
                if is_it or (how and self._is_covered(reading)):
                    return reading.module, self._found._replace(how=how, compared_with=_file(self._last))
        if self._proved is not None and self._proved is not self._last:
            for reading in self._folded.readings(self._proved, given):
                if self._likeness(self._proved, reading.module) and self._is_covered(reading):
                    return reading.module, Found(Verdict.PROVED, PROVED_AGAIN, compared_with=_file(self._proved))
        return None

    def _is_covered(self, reading: Reading) -> bool:
        """Whether the roundings of constants that a reading allows stay roundings; if not, it is noted how far. Of a
        module that makes no pair with itself, nothing says so."""
        if not reading.meant:
            return True
        pair = self._pair(reading.module, reading.module)
        if pair is None:
            return False
        far = amplified(*pair, reading.meant, self._session)
        self._far = self._far or far
        return far is None

    def _likeness(self, earlier: Module, module: Module) -> str:
        """How two modules are seen to be equal at once; empty if they are not."""
        if self._programs.of(earlier) == self._programs.of(module):
            return SAME
        pairs = (self._pair(first, second) for first, second in forms(earlier, module))
        return ALIKE if any(pair is not None and self._is_equal_at_once(pair) for pair in pairs) else ""

    def _unlike_those_before(self, given: Module, readings: Sequence[Reading]) -> tuple[Module, Found]:
        """A module that may be another program than the last, as it is best read, with its verdict."""
        if self._far is not None:
            readings = [Reading(given)]  # and if it is not equal as it stands, it is known why
        liked = next((each for each in readings if self._is_like_its_reference(each.module)), None)
        soon = None if liked is not None else next(filter(self._is_soon_proved, readings), None)
        if soon is not None:
            return soon.module, Found(Verdict.PROVED, PROVED_AGAIN, compared_with=_file(self._proved))
        reading = liked or readings[0]
        if liked is not None or self._far is None:
            found = self._with_an_earlier_one(reading.module)
            if found.verdict is not Verdict.PROVED or self._is_covered(reading):
                return reading.module, found
        reason = ROUNDED if self._far is None else str(self._far)
        return given, Found(Verdict.UNKNOWN, reason=reason, code=Solver.AMPLIFIED.value)

    def _is_like_its_reference(self, module: Module) -> bool:
        """Whether a module is at once seen to equal its reference."""
        pair = self._reference(module)
        return pair is not None and self._is_equal_at_once((pair.logical, pair.partitioned))

    def _is_soon_proved(self, reading: Reading) -> bool:
        """Whether few steps, case by case, show that a reading is the last module proved: each is asked about so
        before one is in earnest, as what is equal takes few steps and what is not takes many."""
        pair = None if self._proved is None else self._pair(self._proved, reading.module)
        if pair is None:
            return False
        limits = self._session.limits
        steps, network = min(limits.total_steps, limits.reading_steps), limits.reading_network_steps
        few = replace(limits, total_steps=steps, network_steps=network)
        session = replace(self._session, limits=few, _reached={})
        results = range(len(reading.module.main.results))
        try:
            proved = are_proved(*pair, results, session)
        except InputError:  # other arguments or results
            return False
        return proved and self._is_covered(reading)

    def _with_an_earlier_one(self, module: Module) -> Found:
        """The verdict by the module's reference; then by the last module proved."""
        pair = self._reference(module)
        if pair is None:
            alone = self._logical is None and self._proved is None
            return Found(Verdict.UNKNOWN, reason=NOTHING if alone else REPLICAS if self._is_partitioned else BY_DEVICE)
        earlier = _file(self._logical or self._proved)
        report = self._decided(pair)
        if report.verdict is Verdict.PROVED:
            how = LOGICAL if self._is_partitioned else PROVED_AGAIN
            guessed = f" with {report.under} (inferred)" if report.under else ""
            return self._given._replace(how=how + guessed, compared_with=earlier)
        if report.verdict is Verdict.REFUTED:
            if self._report is None or self._report.verdict is not Verdict.REFUTED:
                self._report = report
            return Found(Verdict.REFUTED, "", *_reason(report), earlier)
        other = None if self._proved is None or not self._is_partitioned else self._pair(self._proved, module)
        if other is not None and prove(*other, session=self._session).verdict is Verdict.PROVED:
            return Found(Verdict.PROVED, PROVED_AGAIN, compared_with=_file(self._proved))
        self._report = self._report or report
        return Found(Verdict.UNKNOWN, "", *_reason(report), earlier)

    def _reference(self, module: Module) -> Inferred | None:
        """What the module has to equal, and the module: behind the partitioner what it was given, else the last module
        proved. None where these make no pair."""
        if self._logical is None:
            pair = None if self._proved is None else self._pair(self._proved, module)
            return None if pair is None else Inferred(*pair)
        if self._inferred is not None:
            return self._inferred.of(module)
        inferred = infer(self._logical, module, self._session)
        self._device_count = device_count(inferred.logical, inferred.partitioned)
        self._notes.update(dict.fromkeys(inferred.said))
        if inferred.partitioned is module and not inferred.unreduced:  # it holds for later modules too
            self._inferred = inferred
        return inferred

    def _pair(self, first: Module, second: Module) -> tuple[Module, Module] | None:
        """Two modules of one half as a pair; None where there is no way to say so."""
        if not self._is_partitioned:
            ours = not knows_devices(first) and not knows_devices(second)
            return pair_of_wholes(first, second) if ours else None
        devices = first.partitions
        if devices is None or second.partitions != devices or (first.replicas, second.replicas) != (1, 1):
            return None
        return pair_of_programs(first, second, devices)

    def _is_equal_at_once(self, pair: tuple[Module, Module]) -> bool:
        """Whether two modules are equal by construction; not where they have other arguments or results."""
        self._session.phase = "results were compared by construction"
        try:
            return glance(*pair, session=self._session).is_all
        except InputError:
            return False

    def _decided(self, pair: Inferred) -> Report:
        """A proof; or else a refutation, where the module before is known to be right or wrong."""
        modules = (pair.logical, pair.partitioned)
        session = self._session
        if not self._refute or self._found.verdict is Verdict.UNKNOWN:
            return pair.judged(shown(examine(*modules, session=session), *modules).report)
        with WhenAsked(*modules, session) as refutes:
            examination = shown(examine(*modules, differing=refutes.differing, session=session), *modules)
            if examination.report.verdict is Verdict.PROVED:
                return pair.judged(examination.report)
            refutation = refutes.refute(examination)
            return pair.judged(refutation.report, refutation.counterexamples, session)


def _reason(report: Report) -> tuple[str, str]:
    """Why a module is not proved, in a line, and a code for it."""
    said: list[Diagnostic] = sorted(report.diagnostics, key=lambda each: each.severity is not Severity.ERROR)
    return (str(said[0].message), said[0].code.value) if said else ("it has no results", "")


def _file(module: Module | None) -> str:
    return "" if module is None else Path(module.path).name


def _beside(module: Module) -> Iterator[str]:
    """What is not compared: what a module does beside giving results."""
    names = (op.name for op in operations(module.main) if has_effect(op))
    for name in dict.fromkeys(names):
        yield f"what passes do to {name}, beside its results, is not looked at"
