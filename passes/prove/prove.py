"""Prove that every result of the partitioned module is its shard of the logical result, by construction.

A walk over both modules gives every result as a term. Two terms are equal by construction if they are one object. What
is not is examined case by case in `passes.diagnose.examine`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from hlo_verify.diagnostics import Diagnostic
from hlo_verify.index.interned import made
from hlo_verify.meter import TERM
from hlo_verify.ops.complex_numbers import in_parts, is_complex
from hlo_verify.ops.induction import Reading, book_of
from hlo_verify.ops.values import Value
from hlo_verify.passes.prove.cut_points import Guesses, outside_of_loops
from hlo_verify.passes.prove.device_order import by_place
from hlo_verify.passes.prove.effects import unless_effects_differ
from hlo_verify.passes.prove.in_layers import Layered, in_layers
from hlo_verify.passes.prove.interpret import run
from hlo_verify.passes.prove.lineage import obligations
from hlo_verify.passes.prove.notation import Notation
from hlo_verify.passes.prove.reports import assumptions, laws, may_hang
from hlo_verify.passes.prove.stages import Stages
from hlo_verify.passes.prove.start import begin
from hlo_verify.passes.prove.worked_out import WorkedOut
from hlo_verify.program.element_types import INTEGER_RANGES, is_integer
from hlo_verify.program.ir import Module, operations
from hlo_verify.program.pair import device_count, has_loops_by_hand, result_placements
from hlo_verify.program.sharding import Sharding
from hlo_verify.report import Report, Result, Stage, Verdict
from hlo_verify.session import EnoughError, Session
from hlo_verify.terms.machine import are_congruent
from hlo_verify.terms.term import Poly

Progress = Callable[[int, int], None]

LARGE = 1_000
"""Of a module of more operations than this, one layer that is lost decides whether all is equal by construction."""

BY_PLACE = "steps of the proof number devices by their places in the mesh"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one walk over both modules found."""

    wanted: list[Value]
    found: list[Value]
    stages: Stages
    unsupported: tuple[Diagnostic, ...]
    names_loops: bool
    """Whether some loop of the logical module is one of names."""
    has_short_loops: bool
    """Whether some loop is written out in the reading that does so."""


def prove_at_once(
    logical: Module,
    partitioned: Module,
    *,
    progress: Progress | None = None,
    session: Session | None = None,
    most: float = math.inf,
) -> Report:
    """Prove what one walk shows to be equal by construction. Anything else is UNKNOWN, without a reason. What it took
    is on the session's account.

    Raises `InputError` where the modules are no pair, `TimeUpError` where the session's time is up, and `EnoughError`
    where the walk makes more terms than `most`.
    """
    with (session or Session()).on() as session, session.at_most(most, made):
        try:
            report, _ = at_once(logical, partitioned, progress, session)
        finally:
            session.meter.charge_terms(made())
        return unless_effects_differ(report, logical, partitioned)


def at_once(
    logical: Module, partitioned: Module, progress: Progress | None, session: Session
) -> tuple[Report, Outcome | None]:
    """What is equal by construction, and what a walk over all operations found, if it took one: none of a large module
    that has a layer which is not as it should be."""
    layered = by_layers(logical, partitioned, session)
    if layered is not None and (layered.report.verdict is Verdict.PROVED or _is_large_and_lost(layered, partitioned)):
        return layered.report, None
    return by_walking(logical, partitioned, progress, session)


def _is_large_and_lost(layered: Layered, partitioned: Module) -> bool:
    return layered.lost is not None and len(partitioned.main.ops) > LARGE


def by_layers(logical: Module, partitioned: Module, session: Session) -> Layered | None:
    """What is equal by construction where a module's layers are derived once each; None of one that has none. Devices
    are numbered by their places in the mesh first: what is said of what is not proved is said of their own numbers."""
    session.phase = "results were compared by construction"
    started = time.perf_counter()
    devices = device_count(logical, partitioned)
    placed = result_placements(logical, partitioned, devices)
    with session.interruptible():
        other = by_place(logical, partitioned, devices)
        if other is not None:
            found = in_layers(*other, devices, result_placements(*other, devices), session)
            if found is not None and found.report.verdict is Verdict.PROVED:
                told = (*found.report.assumptions, BY_PLACE)
                seconds = time.perf_counter() - started
                return replace(found, report=replace(found.report, assumptions=told, seconds=seconds))
        found = in_layers(logical, partitioned, devices, placed, session)
    session.layered_terms = math.inf if found is None else found.terms
    if found is None:
        return None
    return replace(found, report=replace(found.report, seconds=time.perf_counter() - started))


def by_walking(
    logical: Module, partitioned: Module, progress: Progress | None, session: Session
) -> tuple[Report, Outcome | None]:
    """What is equal by construction, operation by operation; what the walk found, where that is not all."""
    session.phase = "results were compared by construction"
    started = time.perf_counter()
    devices = device_count(logical, partitioned)
    placed = result_placements(logical, partitioned, devices)
    with session.interruptible():
        found = _prove_by_place(logical, partitioned, devices, progress, session)
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
    outcome = walk(*other, False, progress, session=session)
    placed = result_placements(*other, devices)
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
        assumptions(outcome.unsupported),
        devices,
        time.perf_counter() - started,
        stages=_stages(outcome.stages),
        unsupported=outcome.unsupported,
        laws=laws(),
    )


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


def walk(
    logical: Module,
    partitioned: Module,
    decide: bool,
    progress: Progress | None,
    *,
    known_wrong: bool = False,
    session: Session | None = None,
    reading: Reading = Reading.NAMED,
    guesses: Guesses | None = None,
    answered: Callable[[bool], object] = bool,
) -> Outcome:
    total = len(logical.main.ops) + len(partitioned.main.ops)
    both = begin(logical, partitioned, run, session, reading)
    stages = both.watched(decide, (lambda done: progress(min(done, total), total)) if progress else None, guesses)
    stages.known_wrong, stages.answered = known_wrong, answered
    both.plain.worked_out = both.local.worked_out = WorkedOut()
    wanted = run(logical.main, both.wholes, both.plain)
    found = run(partitioned.main, both.shards, both.local)
    book = book_of(both.plain)
    return Outcome(wanted, found, stages, both.unsupported, bool(book.loops), book.has_short)


def walk_deciding(
    logical: Module,
    partitioned: Module,
    first: Outcome | None,
    progress: Progress | None,
    known_wrong: bool = False,
    session: Session | None = None,
    guesses: Guesses | None = None,
) -> Outcome:
    """What a walk finds in which values are compared case by case too, and with what they are guessed to be; that is
    what the `first` walk, which did not, found where no value comes out as another for that."""
    guesses = outside_of_loops(guesses or {}, logical, partitioned)
    if first is not None:
        first.stages.known_wrong = known_wrong
        if not first.stages.recognises_more(guesses):
            return first
    return walk(logical, partitioned, True, progress, known_wrong=known_wrong, session=session, guesses=guesses)


def read_otherwise(logical: Module, partitioned: Module) -> tuple[Reading, ...]:
    """The other readings of loops with which a result may be proved that is not where loops are named."""
    ops = chain(operations(logical.main), operations(partitioned.main))
    return (Reading.SUMMED, Reading.WRITTEN_OUT) if any(op.name == "while" for op in ops) else ()


@dataclass(slots=True, eq=False)
class OtherReadings:
    """The same question where loops are read in other ways: each takes a walk, which is taken only if somebody asks.

    A compiler's loops are those of the logical module, and rings that are closed as they are named. So other readings
    of them have nothing of what is lent to ways of proving, and what a person distributed has. Where the logical
    module has no loops, none is summed up, and none has views: what that walk would find is what the `first` found.
    """

    logical: Module
    partitioned: Module
    placed: list[Sharding]
    session: Session
    terms: int = 0
    """How many terms the walk made that was in vain: another takes about as many, or half of them at the least."""
    first: Outcome | None = None
    """What that walk found."""
    _outcomes: dict[Reading, Outcome | None] = field(default_factory=dict)
    _is_by_hand: bool = field(init=False)

    def __post_init__(self) -> None:
        self._is_by_hand = any(map(has_loops_by_hand, (self.logical, self.partitioned)))

    def prove(self, n: int, decide: bool = True) -> bool:
        """Whether the n-th result is proved in some reading, with `decide` case by case too. Raises `TimeUpError`."""
        before, self.session.phase = self.session.phase, "loops were read in another way"
        with self.session.meter.nothing_lent(not self._is_by_hand):
            proved = any(self._proves(reading, n, decide) for reading in read_otherwise(self.logical, self.partitioned))
        self.session.phase = before
        return proved

    def _proves(self, reading: Reading, n: int, decide: bool) -> bool:
        summed = self._outcomes.get(Reading.SUMMED)
        if reading is Reading.WRITTEN_OUT and summed is not None and not summed.has_short_loops:
            return False  # the same walk, which did not prove it
        if reading not in self._outcomes:
            if not self.session.affords(TERM * self.terms / 2):
                return False
            self._outcomes[reading] = self._walked(reading)
        outcome = self._outcomes[reading]
        if outcome is None or may_hang(outcome.unsupported) is not None:
            return False
        name, placed = self.logical.result_names[n], self.placed[n]
        if decide:
            return not open_obligations(n, name, outcome, placed, decide=True)
        values = outcome.wanted[n], outcome.found[n]
        asked = obligations(name, *values, placed, outcome.stages.device)
        return all(each[0] is each[1] or outcome.stages.is_piped(*each) for each in asked)

    def _walked(self, reading: Reading) -> Outcome | None:
        """What a walk finds in that reading; None where it takes more than there is."""
        session, before = self.session, made()
        try:
            with session.at_most(before + session.meter.left / TERM, made):
                if reading is Reading.SUMMED and self.first is not None and not self.first.names_loops:
                    outcome = replace(self.first, stages=self.first.stages.afresh())
                else:
                    outcome = walk(self.logical, self.partitioned, False, None, session=session, reading=reading)
        except EnoughError:
            session.reached("wrong_work")
            return None
        finally:
            session.meter.charge_terms(made() - before)
        outcome.stages.effort.left = min(outcome.stages.effort.left, session.limits.reading_steps)
        outcome.stages.network.left = min(outcome.stages.network.left, session.limits.reading_network_steps)
        return outcome


def _stages(stages: Stages) -> tuple[Stage, ...]:
    """The cut points of the partitioned module, in order, as a report shows them."""
    notation = Notation(stages.logical)
    return tuple(
        Stage(op.name, str(op.location), notation.lineage(read), again) for op, read, again in stages.cut_points()
    )


def open_obligations(
    n: int, name: str, outcome: Outcome, sharding: Sharding, *, decide: bool, briefly: bool = False
) -> list[Open]:
    """The terms of one result that are not seen to be equal, as pairs of found and expected. With `decide`, two terms
    that are not equal by construction are compared case by case; `briefly`, in a few steps."""
    stages, values = outcome.stages, (outcome.wanted[n], outcome.found[n])

    def is_shown(term: Poly, expected: Poly, where: Poly) -> bool:
        if term is expected or are_one_integer(values[0].type.dtype, term, expected):
            return True
        return decide and stages.is_result(term, expected, where, briefly=briefly)

    def is_shown_in_parts(term: Poly, expected: Poly, where: Poly) -> bool:
        parts = in_parts(term, expected) if is_complex(values[0].type.dtype) else []
        return bool(parts) and all(is_shown(*each, where) for each in parts)

    return [
        (term, expected)
        for term, expected, where in obligations(name, *values, sharding, stages.device)
        if not (is_shown(term, expected, where) or is_shown_in_parts(term, expected, where))
    ]


def are_one_integer(dtype: str, term: Poly, expected: Poly) -> bool:
    """Whether two terms of an integer type differ by multiples of the number of its values alone."""
    return is_integer(dtype) and are_congruent(term, expected, *INTEGER_RANGES[dtype])


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
