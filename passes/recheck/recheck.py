"""Check a proof a second time, step by step, with an engine that shares no rules with the prover.

The prover recognises values by their normal forms: comparing these again would check nothing. What is checked is every
step: the term that the prover gives to an operation's result has to be what the operation means (`meanings`, written a
second time) of the terms of its operands. Both are written out plainly, made small (`shape_reduction`), expanded at
elements of the small instance, and Z3 is asked for values for which they differ. By induction over the operations, the
terms of the results are what the modules compute; that they are equal, shard by shard, is the last step and checked
likewise.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from hlo_verify.limits import Limits, allows
from hlo_verify.ops.induction import Reading
from hlo_verify.passes.guess.guessed import guessed
from hlo_verify.passes.prove.by_rolling import in_loops, is_long
from hlo_verify.passes.prove.cut_points import outside_of_loops
from hlo_verify.passes.prove.device_order import by_place
from hlo_verify.passes.prove.lineage import obligations
from hlo_verify.passes.prove.prove import are_one_integer, read_otherwise
from hlo_verify.passes.prove.start import begin
from hlo_verify.passes.prove.written_out import is_written_out
from hlo_verify.passes.recheck.answer import Finding, Outcome, Task, answer
from hlo_verify.passes.recheck.claims import Claim, Recorder, Side, prover_term, shard
from hlo_verify.passes.recheck.fingerprint import Names
from hlo_verify.passes.recheck.meanings import UnwrittenError
from hlo_verify.passes.recheck.plain import ZERO, BudgetError, Choose
from hlo_verify.passes.recheck.questions import Nesting, question
from hlo_verify.program.ir import Module
from hlo_verify.program.pair import argument_shardings, device_count, is_global, result_placements
from hlo_verify.report import Disagreement, Recheck
from hlo_verify.session import Session, TimeUpError
from hlo_verify.terms.term import Poly
from hlo_verify.workers import Lost, Pool

BY_TURN = "result: what pipelines make turn by turn has no second transcription"
BY_DEVICE = "result: proved on each device by itself, which is not done a second time"


@dataclass(frozen=True, slots=True)
class _Way:
    """How a walk goes: whether values are compared case by case, or results are, and how loops are read."""

    reading: Reading
    decide: bool = False
    compare: bool = False


NAMED = _Way(Reading.NAMED)


def record(logical: Module, partitioned: Module, session: Session, by_device: Collection[int] = ()) -> Recorder:
    """Interpret both modules as the prover does and note every claim, those about arguments and results too; but for
    the results that are proved `by_device`, each by itself.

    As in `examine`, where the first walk does not prove everything, loops are read in other ways, then values are
    decided case by case. If no walk proves everything, the claims are those of the one that proves most.
    """
    other = by_place(logical, partitioned, device_count(logical, partitioned))
    if other is not None:
        recorder, open_ = _walk(*other, NAMED, session, by_device)
        if not open_:
            return recorder
        session.memory.start_anew()
    is_first = is_long(partitioned, session) or is_long(logical, session)
    loops = _in_loops(logical, partitioned, session, by_device) if is_first else None
    if loops is not None:
        return loops
    least: tuple[int, _Way] | None = None
    for n, way in enumerate(_ways(logical, partitioned)):
        if n == 1 and not is_first:
            session.memory.start_anew()
            loops = _in_loops(logical, partitioned, session, by_device)
            if loops is not None:
                return loops
        if n:
            session.memory.start_anew()
        recorder, open_ = _walk(logical, partitioned, way, session, by_device)
        if not open_:
            return recorder
        if way.compare and (least is None or open_ < least[0]):
            least = open_, way
    assert least is not None
    if least[1] == way:
        return recorder
    session.memory.start_anew()
    return _walk(logical, partitioned, least[1], session, by_device)[0]


def _ways(logical: Module, partitioned: Module) -> list[_Way]:
    others = read_otherwise(logical, partitioned)
    ways = [NAMED, *map(_Way, others), _Way(Reading.NAMED, decide=True, compare=True)]
    return ways + [_Way(reading, compare=True) for reading in others]


def _in_loops(logical: Module, partitioned: Module, session: Session, by_device: Collection[int]) -> Recorder | None:
    """The claims about the loops that a person wrote out turn by turn, where they are proved as such; that they are
    what was written out is shown here once more."""
    pair = in_loops(logical, partitioned)
    if pair is None:
        return None
    for way in _ways(*pair):
        if way.decide:
            way = _Way(Reading.NAMED, compare=True)
        recorder, open_ = _walk(*pair, way, session, by_device)
        if not open_:
            for loops, written in zip(pair, (logical, partitioned), strict=True):
                if loops is not written:
                    recorder.turns.append(is_written_out(loops.main, written.main))
            return recorder
        session.memory.start_anew()
    return None


def _walk(
    logical: Module, partitioned: Module, way: _Way, session: Session, by_device: Collection[int]
) -> tuple[Recorder, int]:
    """The claims of a walk, and how many parts of results it leaves open."""
    recorder = Recorder()
    both = begin(logical, partitioned, recorder.run, session, way.reading)
    device = both.device
    placed = result_placements(logical, partitioned, device.size)
    guesses = guessed(logical, partitioned, session) if way.decide else {}
    stages = both.watched(way.decide, guesses=outside_of_loops(guesses, logical, partitioned))
    recorder.opened = stages.stand_ins.opened
    wanted = recorder.run(logical.main, both.wholes, both.plain)
    if not is_global(partitioned):
        shardings = argument_shardings(logical, partitioned)
        for argument, value, sharding in zip(both.arguments, both.shards, shardings, strict=True):
            if sharding.is_plain:
                whole_side = shard(argument.whole, sharding, device)
                recorder.claims.append(Claim(f"argument {argument.name}", "", whole_side, prover_term(value.term)))
    found = recorder.run(partitioned.main, both.shards, both.local)
    open_ = 0
    for n, name in enumerate(logical.result_names):
        if n in by_device:
            recorder.unchecked[BY_DEVICE] += 1
            continue
        for term, expected, inside in obligations(name, wanted[n], found[n], placed[n], device):
            if way.compare and term is not expected and stages.is_piped(term, expected, inside):
                recorder.unchecked[BY_TURN] += 1
                continue
            wraps = term is not expected and are_one_integer(wanted[n].type.dtype, term, expected)
            if term is not expected and not wraps:
                open_ += not (way.compare and stages.is_result(term, expected, inside))
            term, whole = stages.stand_ins.opened(term), stages.stand_ins.opened(expected)
            if placed[n].is_plain and device not in wanted[n].term.free and whole is expected:
                side: Side = shard(wanted[n], placed[n], device)
            else:
                side = _within(inside, whole)
            recorder.claims.append(Claim(f"result {name}", "", side, _within(inside, term), may_wrap=wraps))
    return recorder, open_


def _within(inside: Poly, p: Poly) -> Side:
    """A term where a condition holds, and 0 elsewhere."""
    return lambda opening: Choose(opening.term(inside, {}), opening.term(p, {}), ZERO)


Answers = Callable[[Sequence[Task]], Iterable[tuple[int, "Finding | Lost"]]]
"""Gives every task's number and answer, in any order."""


@dataclass(slots=True)
class _State:
    """A question that was found, the claims that it decides, and what is known of it."""

    claims: list[Claim]
    final: bool = False
    finding: Finding | None = None


def recheck(
    logical: Module,
    partitioned: Module,
    *,
    jobs: int = 1,
    seconds: float = 20.0,
    memory: int = 2 << 30,
    limits: Limits | None = None,
    deadline: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    by_device: Collection[int] = (),
) -> Recheck:
    """Check every step of the proof of a pair of modules with an engine that shares no rules with the prover.

    `jobs` worker processes have `seconds` and `memory` (bytes) for each question; a question that needs more counts as
    not checked. The result does not depend on `jobs`. An interrupt, and the `deadline` (as `time.monotonic` counts),
    end the workers and give what is known so far. Results that are proved `by_device` count as not checked.
    """
    with Pool(answer, jobs=jobs, seconds=seconds, memory=memory) as pool:
        session = Session(limits or Limits(), deadline)
        return recheck_with(pool.answers, logical, partitioned, int(seconds * 250), progress, session, by_device)


def recheck_with(
    answers: Answers,
    logical: Module,
    partitioned: Module,
    milliseconds: int,
    progress: Callable[[int, int], None] | None = None,
    session: Session | None = None,
    by_device: Collection[int] = (),
) -> Recheck:
    """As `recheck`, with something else than worker processes to answer questions.

    Z3 has so many milliseconds for each.
    """
    with (session or Session()).on() as session:
        return _recheck(answers, logical, partitioned, milliseconds, progress, session, by_device)


def _recheck(
    answers: Answers,
    logical: Module,
    partitioned: Module,
    milliseconds: int,
    progress: Callable[[int, int], None] | None,
    session: Session,
    by_device: Collection[int],
) -> Recheck:
    started = time.perf_counter()
    recorder = Recorder()
    states: dict[str, _State] = {}
    lost: Counter[str] = Counter()
    ended = ""
    try:
        recorder = record(logical, partitioned, session, by_device)
        lost.update(recorder.unchecked)
        lost.update({f"{name}: no second transcription": n for name, n in recorder.unwritten.items()})
        _decide(recorder, states, lost, answers, milliseconds, progress, session)
    except KeyboardInterrupt:
        ended = "interrupted"
    except TimeUpError:
        ended = "the time was up"
    found = _summary(recorder, states, lost, time.perf_counter() - started, ended)
    return replace(found, limits=session.spent().limits)


def _decide(
    recorder: Recorder,
    states: dict[str, _State],
    lost: Counter[str],
    answers: Answers,
    milliseconds: int,
    progress: Callable[[int, int], None] | None,
    session: Session,
) -> None:
    """Pose every question, once; those that seem to differ again, a level of definitions deeper."""
    nesting = Nesting()
    tasks: list[Task] = []
    for claim in recorder.claims:
        session.check()
        try:
            asked = question(claim, nesting)
            key = Names().text(asked.sides)
        except (UnwrittenError, BudgetError) as error:
            lost[f"{claim.what.split()[0]}: {error}"] += 1
            continue
        except RecursionError:
            lost[f"{claim.what.split()[0]}: nested too deeply"] += 1
            continue
        if key in states:
            states[key].claims.append(claim)
        else:
            states[key] = _State([claim], asked.final)
            tasks.append(Task(asked.sides, asked.final, milliseconds, session.limits))
    todo, level = list(states.values()), 0
    while tasks:
        for n, found in answers(tasks):
            if isinstance(found, Lost):
                found = Finding(Outcome.UNDECIDED, f"its worker {found.reason}")
            todo[n].finding = found
            for limit in found.limits:
                session.reached(limit)
            session.check()
            if progress is not None:
                progress(sum(state.finding is not None for state in states.values()), len(states))
        todo = [s for s in todo if s.finding and s.finding.outcome is Outcome.DIFFERENT and not s.final]
        tasks, level = [], level + 1
        for state in list(todo):
            try:
                asked = question(state.claims[0], nesting, level)
            except (BudgetError, RecursionError) as error:
                why = error if isinstance(error, BudgetError) else "nested too deeply"
                state.finding = Finding(Outcome.UNDECIDED, f"differs as far as it is taken apart; {why}")
                todo.remove(state)
                continue
            state.final = asked.final or not allows("recheck_levels", level + 1)
            tasks.append(Task(asked.sides, state.final, milliseconds, session.limits))


def _summary(recorder: Recorder, states: dict[str, _State], lost: Counter[str], seconds: float, ended: str) -> Recheck:
    agreed, partly, by_solver, bounded = sum(recorder.turns), 0, 0, 0
    wrong = [Disagreement("turns as a loop", "", "the loop makes something else") for ok in recorder.turns if not ok]
    unchecked = Counter(lost)
    for state in states.values():
        found, count = state.finding, len(state.claims)
        if found is not None and found.agrees and not found.is_whole:
            partly += count
        elif found is not None and found.agrees:
            agreed += count
            by_solver += count * (found.outcome is not Outcome.SAME)
            bounded += count * bool(found.kept)
        elif found is not None and found.outcome is Outcome.DIFFERENT and state.final:
            for claim in state.claims:
                if claim.may_wrap:
                    unchecked[f"{claim.what.split()[0]}: differs where integers may wrap"] += 1
                else:
                    wrong.append(Disagreement(claim.what, claim.location, found.why))
        else:
            why = ended if found is None else found.why or ended
            for claim in state.claims:
                unchecked[f"{claim.what.split()[0]}: {why}"] += 1
    steps = len(recorder.claims) + len(recorder.turns)
    steps += sum(recorder.unwritten.values()) + sum(recorder.unchecked.values())
    unasked = steps - agreed - partly - len(wrong) - sum(unchecked.values())
    if unasked:
        unchecked[ended] += unasked
    return Recheck(
        steps,
        len(states),
        agreed,
        by_solver,
        bounded,
        tuple(sorted(unchecked.items())),
        tuple(wrong),
        seconds,
        ended,
        partly,
    )
