"""Prove that every result of the partitioned module is its shard of the logical result, by construction.

A walk over both modules gives every result as a term. Two terms are equal by construction if they are one object. What
is not is examined case by case in `passes.diagnose.examine`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from hlo_verify.diagnostics import Diagnostic, Input, Solver, Unsupported
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.index.expr import Var
from hlo_verify.index.interned import made
from hlo_verify.meter import TERM
from hlo_verify.ops.counting import ENDLESS, MAY_NOT_END
from hlo_verify.ops.induction import Reading
from hlo_verify.ops.values import Value
from hlo_verify.passes.prove.device_order import by_place
from hlo_verify.passes.prove.effects import unless_effects_differ
from hlo_verify.passes.prove.interpret import run
from hlo_verify.passes.prove.layer_sharing import Sharing
from hlo_verify.passes.prove.layers import Keys, boundaries
from hlo_verify.passes.prove.lineage import obligations, same_elements
from hlo_verify.passes.prove.notation import Notation
from hlo_verify.passes.prove.stages import Stages
from hlo_verify.passes.prove.start import begin
from hlo_verify.program.ir import Module, Op, operations
from hlo_verify.program.pair import device_count, is_global, result_placements
from hlo_verify.program.sharding import Sharding
from hlo_verify.report import LawUse, Report, Result, Stage, Verdict
from hlo_verify.session import Session
from hlo_verify.terms.laws import SAID
from hlo_verify.terms.term import Poly
from hlo_verify.terms.used import counts

Progress = Callable[[int, int], None]

ASSUMPTIONS = (
    "real arithmetic: no rounding, conversions between floating-point types are the identity",
    "arguments are numbers, and the logical module divides by no zero (and the like) on the way to a result",
    "reducers are applied in any order",
)

LOOPS_END = "loops end on which no result hangs, also where nothing shows how often they go round"

BY_PLACE = "steps of the proof number devices by their places in the mesh"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one walk over both modules found."""

    wanted: list[Value]
    found: list[Value]
    stages: Stages
    unsupported: tuple[Diagnostic, ...]


def nothing(logical: Module, devices: int) -> Report:
    """The report of a pair of which nothing is known yet."""
    unknown = [Result(n, name, Verdict.UNKNOWN) for n, name in enumerate(logical.result_names)]
    return Report(logical.name, tuple(unknown), ASSUMPTIONS, devices, 0.0)


def out_of_time(report: Report, session: Session) -> Report:
    """The report where the time is up: what is proved or refuted stays so, of the rest it says what was being done."""
    unproved = (result.verdict is Verdict.UNKNOWN for result in report.results)
    results = (late(each, session) if is_late else each for each, is_late in zip(report.results, unproved, strict=True))
    return replace(report, results=tuple(results))


def late(result: Result, session: Session) -> Result:
    """An unproved result of which more might be known, had there been more time."""
    if result.code is Solver.TIME_UP:
        return result
    reason = f"the time was up while {session.phase}"
    said = f"{result.reason}; {reason}" if result.reason else reason
    return replace(result, reason=said, code=Solver.TIME_UP, spent=session.spent(session.phase))


def prove_at_once(
    logical: Module,
    partitioned: Module,
    *,
    progress: Progress | None = None,
    session: Session | None = None,
    most: float = math.inf,
) -> Report:
    """Prove what one walk shows to be equal by construction. Anything else is UNKNOWN, without a reason.

    Raises `InputError` where the modules are no pair, `TimeUpError` where the session's time is up, and `EnoughError`
    where the walk makes more terms than `most`.
    """
    with (session or Session()).on() as session, session.at_most(most, made):
        report, _ = at_once(logical, partitioned, progress, session)
        return unless_effects_differ(report, logical, partitioned)


def at_once(
    logical: Module, partitioned: Module, progress: Progress | None, session: Session
) -> tuple[Report, Outcome | None]:
    """What is equal by construction, and what a walk over all operations found, if it took one."""
    session.phase = "results were compared by construction"
    started = time.perf_counter()
    devices = device_count(logical, partitioned)
    placed = result_placements(logical, partitioned, devices)
    with session.interruptible():
        found = _prove_by_place(logical, partitioned, devices, progress, session)
        found = found or _prove_repeated(logical, partitioned, devices, placed, session)
        if found is not None:
            return replace(found, seconds=time.perf_counter() - started), None
        outcome = walk(logical, partitioned, False, progress, session=session)
    results = _by_construction(logical, outcome, placed)
    return report_of(logical, outcome, results, devices, started), outcome


def _prove_by_place(
    logical: Module, partitioned: Module, devices: int, progress: Progress | None, session: Session
) -> Report | None:
    """The proof with devices numbered by their places in the mesh; None where that is what they are, or does not prove
    it all: what is said of what is not proved is said of devices by their own numbers."""
    other = by_place(logical, partitioned, devices)
    if other is None:
        return None
    placed = result_placements(*other, devices)
    found = _prove_repeated(*other, devices, placed, session)
    if found is None:
        outcome = walk(*other, False, progress, session=session)
        found = report_of(logical, outcome, _by_construction(logical, outcome, placed), devices, 0.0)
    if found.verdict is Verdict.PROVED:
        return replace(found, assumptions=(*found.assumptions, BY_PLACE))
    session.memory.start_anew()
    return None


def report_of(logical: Module, outcome: Outcome, results: list[Result], devices: int, started: float) -> Report:
    hang = may_hang(outcome.unsupported)
    return Report(
        logical.name,
        tuple(results if hang is None else (_unless_it_hangs(result, hang) for result in results)),
        _assumptions(outcome.unsupported),
        devices,
        time.perf_counter() - started,
        stages=_stages(outcome.stages),
        unsupported=outcome.unsupported,
        laws=_laws(),
    )


def _laws() -> tuple[LawUse, ...]:
    return tuple(LawUse(name, SAID[name], times) for name, times in counts().items())


def _assumptions(unsupported: Iterable[Diagnostic]) -> tuple[str, ...]:
    """What a proof leans on: that loops end, where one is left of which nothing else is known."""
    leaves_loops = any(said.message in MAY_NOT_END for said in unsupported)
    return (*ASSUMPTIONS, LOOPS_END) if leaves_loops else ASSUMPTIONS


def may_hang(unsupported: Iterable[Diagnostic]) -> Diagnostic | None:
    """Where devices may wait for others that never arrive, or a loop never ends. A program that hangs gives none of its
    results."""
    hangs = (said for said in unsupported if said.code is Unsupported.BRANCH or said.message == ENDLESS)
    return next(hangs, None)


def _unless_it_hangs(result: Result, hang: Diagnostic) -> Result:
    if result.verdict is not Verdict.PROVED:
        return result
    reason = f"the program may hang at {hang.operation}: {hang.message}"
    return Result(result.index, result.name, Verdict.UNKNOWN, reason, hang.location, code=hang.code)


@dataclass(frozen=True, slots=True, eq=False)
class Glance:
    """What one walk shows by construction alone."""

    proved: frozenset[int]
    """The results that are equal."""
    otherwise: Mapping[int, Sharding]
    """Of the other results, those that are equal where they are placed in another way."""
    is_all: bool
    """Whether every result is equal, placed as it is or in another way."""
    known: int
    """How many values of the partitioned module are functions of logical ones."""

    @property
    def score(self) -> tuple[int, int, int]:
        """The larger, the more of the partitioned module is as it should be."""
        return len(self.proved) + len(self.otherwise), len(self.proved), self.known


Ways = Mapping[int, Sequence[Sharding]]
"""For some results, other ways in which they may be placed."""


def glance(logical: Module, partitioned: Module, ways: Ways | None = None, *, session: Session | None = None) -> Glance:
    """Compare the modules by construction, in a single walk. A result that is not equal as it is placed is compared in
    the other ways that are given for it.

    Raises `InputError` where the modules are no pair, and `TimeUpError` where the session's time is up.
    """
    with (session or Session()).on() as session:
        placed = result_placements(logical, partitioned, device_count(logical, partitioned))
        outcome = walk(logical, partitioned, False, None, session=session)
        results = _by_construction(logical, outcome, placed)
        proved = frozenset(result.index for result in results if result.verdict is Verdict.PROVED)
        otherwise = {}
        for n, others in (ways or {}).items():
            fits = (way for way in others if _is_equal(n, logical.result_names[n], outcome, way))
            way = None if n in proved else next(fits, None)
            if way is not None:
                otherwise[n] = way
        stages = outcome.stages
        known = sum(stages.known(value) for step in stages.partitioned for value in step.values)
        return Glance(proved, otherwise, len(proved) + len(otherwise) == len(results), known)


def _is_equal(n: int, name: str, outcome: Outcome, sharding: Sharding) -> bool:
    """Whether a result is equal by construction where it is placed like that."""
    return not open_obligations(n, name, outcome, sharding, decide=False)


def _prove_repeated(
    logical: Module, partitioned: Module, devices: int, placed: list[Sharding], session: Session
) -> Report | None:
    """The proof of a module that consists of equal layers, each derived once; None if that does not prove it all."""
    if (
        is_global(partitioned)
        or not all(sharding.is_plain for sharding in placed)
        or any(map(_is_manual, operations(logical.main)))
    ):
        return None
    keys = Keys()
    between = boundaries(logical.main, keys)
    if not between:
        return None
    both = begin(logical, partitioned, run, session)
    once = Sharing(between, keys)
    wanted = once.run(logical.main, both.wholes, both.plain)
    found = once.run(partitioned.main, both.shards, both.local)
    results: list[Result] = []
    proved: set[object] = set()
    for n, name in enumerate(logical.result_names):
        pair = once.together(wanted[n], found[n])
        key = (pair, placed[n])
        if pair is None or key not in proved:
            values = once.resolve(wanted[n]), once.resolve(found[n])
            if any(term is not expected for term, expected, _ in _obligations(name, values, placed[n], both.device)):
                session.memory.start_anew()
                return None
            proved.add(key)
        results.append(Result(n, name, Verdict.PROVED))
    if may_hang(both.unsupported) is not None:
        session.memory.start_anew()
        return None
    return Report(
        logical.name,
        tuple(results),
        _assumptions(both.unsupported),
        devices,
        0.0,
        stages=tuple(once.stages),
        unsupported=both.unsupported,
        laws=_laws(),
    )


def _is_manual(op: Op) -> bool:
    return op.name == "sdy.manual_computation" or "manual" in str(op.attributes.get("sharding"))


def walk(
    logical: Module,
    partitioned: Module,
    decide: bool,
    progress: Progress | None,
    *,
    known_wrong: bool = False,
    session: Session | None = None,
    reading: Reading = Reading.NAMED,
) -> Outcome:
    total = len(logical.main.ops) + len(partitioned.main.ops)
    both = begin(logical, partitioned, run, session, reading)
    stages = both.watched(decide, (lambda done: progress(min(done, total), total)) if progress else None)
    stages.known_wrong = known_wrong
    wanted = run(logical.main, both.wholes, both.plain)
    found = run(partitioned.main, both.shards, both.local)
    return Outcome(wanted, found, stages, both.unsupported)


def walk_deciding(
    logical: Module,
    partitioned: Module,
    first: Outcome | None,
    progress: Progress | None,
    *,
    known_wrong: bool = False,
    session: Session | None = None,
) -> Outcome:
    """What a walk finds in which values are compared case by case too; that is what the `first` walk, which did not,
    found where no value comes out as another for that."""
    if first is not None:
        first.stages.known_wrong = known_wrong
        if not first.stages.recognises_more():
            return first
    return walk(logical, partitioned, True, progress, known_wrong=known_wrong, session=session)


def read_otherwise(logical: Module, partitioned: Module) -> tuple[Reading, ...]:
    """The other readings of loops with which a result may be proved that is not where loops are named."""
    ops = chain(operations(logical.main), operations(partitioned.main))
    return (Reading.SUMMED, Reading.WRITTEN_OUT) if any(op.name == "while" for op in ops) else ()


@dataclass(slots=True, eq=False)
class OtherReadings:
    """The same question where loops are read in other ways: each takes a walk, which is taken only if somebody asks."""

    logical: Module
    partitioned: Module
    placed: list[Sharding]
    session: Session
    terms: int = 0
    """How many terms the walk made that was in vain: another takes about as many, or half of them at the least."""
    _outcomes: dict[Reading, Outcome] = field(default_factory=dict)

    def prove(self, n: int, decide: bool = True) -> bool:
        """Whether the n-th result is proved in some reading, with `decide` case by case too. Raises `TimeUpError`."""
        before, self.session.phase = self.session.phase, "loops were read in another way"
        proved = any(self._proves(reading, n, decide) for reading in read_otherwise(self.logical, self.partitioned))
        self.session.phase = before
        return proved

    def _proves(self, reading: Reading, n: int, decide: bool) -> bool:
        outcome, meter = self._outcomes.get(reading), self.session.meter
        if outcome is None and not self.session.affords(TERM * self.terms / 2):
            return False
        if outcome is None:
            before = made()
            outcome = walk(self.logical, self.partitioned, False, None, session=self.session, reading=reading)
            outcome.stages.effort.left = min(outcome.stages.effort.left, self.session.limits.reading_steps)
            outcome.stages.network.left = min(outcome.stages.network.left, self.session.limits.reading_network_steps)
            self._outcomes[reading] = outcome
            meter.charge_terms(made() - before)
        if may_hang(outcome.unsupported) is not None:
            return False
        return not open_obligations(n, self.logical.result_names[n], outcome, self.placed[n], decide=decide)


def _stages(stages: Stages) -> tuple[Stage, ...]:
    """The cut points of the partitioned module, in order, as a report shows them."""
    notation = Notation(stages.logical)
    return tuple(
        Stage(op.name, str(op.location), notation.lineage(read), again) for op, read, again in stages.cut_points()
    )


def _obligations(
    name: str, values: tuple[Value, Value], sharding: Sharding, device: Var
) -> list[tuple[Poly, Poly, Poly]]:
    """What has to be equal for a result to be proved, and where."""
    wanted, found = values
    if not same_elements(wanted.type.dtype, found.type.dtype):
        raise InputError(
            f"result {name} has elements of type {wanted.type.dtype} in the logical module and {found.type.dtype} in "
            "the partitioned one: they are not a pair",
            Input.NOT_A_PAIR,
        )
    return list(obligations(name, wanted, found, sharding, device))


def open_obligations(n: int, name: str, outcome: Outcome, sharding: Sharding, *, decide: bool) -> list[Open]:
    """The terms of one result that are not seen to be equal, as pairs of found and expected. With `decide`, two terms
    that are not equal by construction are compared case by case."""
    stages, values = outcome.stages, (outcome.wanted[n], outcome.found[n])
    return [
        (term, expected)
        for term, expected, where in _obligations(name, values, sharding, stages.device)
        if term is not expected and not (decide and stages.is_result(term, expected, where))
    ]


Open = tuple[Poly, Poly]


def _by_construction(logical: Module, outcome: Outcome, placed: list[Sharding]) -> list[Result]:
    """The results that are equal by construction, PROVED, and the others, of which nothing else is known yet."""
    session = outcome.stages.effort.session
    found = []
    for n, name in enumerate(logical.result_names):
        session.check()
        verdict = Verdict.PROVED if _is_equal(n, name, outcome, placed[n]) else Verdict.UNKNOWN
        found.append(Result(n, name, verdict))
    return found
