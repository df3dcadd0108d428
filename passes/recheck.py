"""Check a proof a second time, step by step, with an engine that shares no rules with the prover.

The prover recognises values by their normal forms: comparing these again would check nothing. What is checked is every
step: the term that the prover gives to an operation's result has to be what the operation means (`meanings`, written a
second time) of the terms of its operands. Both are written out plainly, made small (`reduce`), expanded at elements of
the small instance, and Z3 is asked for values for which they differ. By induction over the operations, the terms of
the results are what the modules compute; that they are equal, shard by shard, is the last step and checked likewise.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod

from hlo_verify.index import expr
from hlo_verify.index.expr import Opaque, Var
from hlo_verify.ir import Function, Module, Op
from hlo_verify.ops.induction import LoopBook
from hlo_verify.ops.values import Context, Value, position_var
from hlo_verify.passes import exchanges, meanings
from hlo_verify.passes.instances import Finding, Outcome, Task, answer
from hlo_verify.passes.interpret import interpret
from hlo_verify.passes.lineage import obligations, placements
from hlo_verify.passes.meanings import Meaning, Site, UnwrittenError
from hlo_verify.passes.pair import arguments_of, device_count, is_global, partitioned_arguments, result_placements
from hlo_verify.passes.prove import _one_at_a_time
from hlo_verify.passes.stages import Stages, reads
from hlo_verify.report import Disagreement, Recheck
from hlo_verify.sharding import Sharding
from hlo_verify.solver.plain import (
    TRANSPARENT,
    Affine,
    BudgetError,
    Expr,
    Gate,
    Names,
    Opening,
    digit,
    sum_of,
    table,
    tensors_of,
    times,
    whole,
)
from hlo_verify.solver.workers import Lost, Pool
from hlo_verify.terms import algebra
from hlo_verify.terms.memory import forget, without_collector
from hlo_verify.terms.term import Apply, Poly, Read, Tensor

MEANINGS = {**meanings.MEANINGS, **exchanges.MEANINGS}


Side = Callable[[Opening], Expr]


@dataclass(frozen=True, slots=True)
class Claim:
    """That two terms are equal at every element: what the prover says, and what it should be."""

    what: str
    location: str
    meaning: Side
    claimed: Side
    constants: bool = False
    may_wrap: bool = False
    """Whether it is about integers that may lie outside of their type's range: what wraps is not looked at here."""


@dataclass(slots=True)
class Recorder:
    """Interprets a module as the prover does, and notes a claim for every result of an operation."""

    claims: list[Claim] = field(default_factory=list)
    unwritten: Counter[str] = field(default_factory=Counter)
    """Results of operations whose meaning is not written down a second time."""

    def run(self, function: Function, arguments: Sequence[Value], context: Context) -> list[Value]:
        """As `interpret.run`."""
        environment = context.environment
        environment.update(zip(function.arguments, arguments, strict=True))
        for op in function.ops:
            operands = [environment[v] for v in op.operands]
            values = interpret(op, operands, context)
            if context.observe is not None:
                self.note(op, operands, values, context)
                others = context.observe(op, values)
                for value, other in zip(values, others, strict=True):
                    if other is not value:
                        self.claims.append(
                            Claim(f"{op.name} as a shard", str(op.location), _term(value.term), _term(other.term))
                        )
                values = others
            environment.update(zip(op.results, values, strict=True))
        return [environment[v] for v in function.results]

    def note(self, op: Op, operands: list[Value], values: list[Value], context: Context) -> None:
        """The claims about the results of one operation."""
        if op.name == "sdy.manual_computation":
            self.note_region(op, operands, values, context)
            return
        meaning = MEANINGS.get(op.name)
        if meaning is None:
            self.unwritten[op.name] += len(values)
            return
        if any(value.type.dtype.startswith("complex") for value in (*operands, *values)):
            self.unwritten[f"{op.name} of complex numbers"] += len(values)
            return
        for n, value in enumerate(values):
            atom = value.term.atom
            if isinstance(atom, Read) and atom.tensor.kind == "opaque" and atom.tensor.location is op.location:
                continue  # the prover did not understand it, and claims nothing
            if 0 not in value.shape:
                known = meaning
                if isinstance(atom, Apply) and atom.function.startswith(f"{op.name}:"):
                    known = meanings.free_function  # the prover claims no more than that
                build = partial(_meaning_of, known, op, n, operands, context)
                wraps = any(map(_may_wrap, operands))
                self.claims.append(
                    Claim(op.name, str(op.location), build, _term(value.term), op.name == "constant", wraps)
                )

    def note_region(self, op: Op, operands: list[Value], values: list[Value], context: Context) -> None:
        """The claims about what a manual region is handed, and what it gives back."""
        device, body = context.mesh, op.regions[0]
        within = [context.environment[v] for v in body.arguments]
        given = [context.environment[v] for v in body.results]
        place = str(op.location)
        for value, local, sharding in zip(operands, within, op.attributes["in_shardings"], strict=True):
            if device is None or sharding is None or not _is_plain(sharding):
                self.unwritten[op.name] += 1
            else:
                self.claims.append(Claim(f"{op.name} enters", place, shard(value, sharding, device), _term(local.term)))
        for value, local, sharding in zip(values, given, op.attributes["out_shardings"], strict=True):
            if device is None or sharding is None or not _is_plain(sharding):
                self.unwritten[op.name] += 1
            else:
                side = assembled(local, value.shape, sharding, device)
                self.claims.append(Claim(f"{op.name} leaves", place, side, _term(value.term)))


def _may_wrap(value: Value) -> bool:
    """Whether an integer's term may take values that its type does not have."""
    if value.type.dtype not in algebra.INTEGER_RANGES or value.type.dtype == "i1":
        return False
    lo, hi = algebra.INTEGER_RANGES[value.type.dtype]
    constant = value.term.constant
    if constant is not None:
        return not lo <= constant <= hi
    e = algebra.as_index(value.term, lo, hi)
    return any(isinstance(part, Opaque) and part.kind == "value" and part.term.atom is None for part, _ in e.items)


def _term(p: Poly) -> Side:
    return lambda opening: opening.term(p, {})


def _meaning_of(meaning: Meaning, op: Op, n: int, operands: list[Value], context: Context, opening: Opening) -> Expr:
    device = context.device

    def read(k: int, where: Sequence[Affine], elsewhere: Affine | None) -> Expr:
        value = operands[k]
        env = {position_var(i, size): e for i, (size, e) in enumerate(zip(value.shape, where, strict=True)) if size > 1}
        if elsewhere is not None:
            assert device is not None
            env[device] = elsewhere
        return opening.term(value.term, env)

    where = tuple(whole(position_var(k, size)) for k, size in enumerate(op.types[n].shape))
    here = None if device is None else whole(device)
    types = tuple(value.type for value in operands)
    return meaning(Site(op, n, where, types, read, here, context.partitions, context.replicas))


def shard(value: Value, sharding: Sharding, device: Var) -> Side:
    """A device's shard of a logical value, by the sharding's own table of tiles; 0 past the end."""
    tiles = sharding.spread(device.size)
    where, tests = [], []
    for k, size in enumerate(value.shape):
        local = -(-size // tiles.tiles[k])
        tile = table([int(n) for n in tiles.coordinates[:, k]], whole(device))
        e = sum_of((tile, local), (whole(position_var(k, local)), 1))
        if local * tiles.tiles[k] > size:
            tests.append(Gate(e, 0, size - 1))
        where.append(e)
    env = {position_var(k, size): e for k, (size, e) in enumerate(zip(value.shape, where, strict=True)) if size > 1}
    return lambda opening: times(*tests, opening.term(value.term, env))


def assembled(local: Value, shape: Sequence[int], sharding: Sharding, device: Var) -> Side:
    """The whole tensor made of every device's block: each from the device that owns it, of those the one that has
    everything else in common with this one."""
    spread = sharding.spread(device.size)
    counts = list(spread.tiles)
    count = prod(counts)
    owners = [0] * (device.size * count)
    block_of = {}
    for d in range(device.size):
        block = 0
        for k, n in enumerate(counts):
            block = block * n + int(spread.coordinates[d, k])
        block_of[int(spread.others[d]), block] = d
    for d in range(device.size):
        for block in range(count):
            owners[d * count + block] = block_of[int(spread.others[d]), block]
    wanted = Affine(0)
    env: dict[Var, Affine] = {}
    for k, (n, size) in enumerate(zip(counts, local.shape, strict=True)):
        e = whole(position_var(k, shape[k]))
        wanted = sum_of((wanted, n), (digit(e, size), 1))
        if size > 1:
            env[position_var(k, size)] = digit(e, 1, size)
    env[device] = table(owners, sum_of((whole(device), count), (wanted, 1)))
    return lambda opening: opening.term(local.term, env)


ROUNDS = 60
"""How often definitions are taken apart until both sides are about the same ones."""


class Nesting:
    """Which definitions are inside which, as sets of bits."""

    def __init__(self) -> None:
        self._inside: dict[Tensor, int] = {}
        self._parts: dict[Tensor, set[Tensor]] = {}

    def inside(self, t: Tensor) -> int:
        """The definition and all that it is made of."""
        pending = [t]
        while pending:
            top = pending[-1]
            parts = self.parts(top)
            missing = [part for part in parts if part not in self._inside]
            if missing:
                pending.extend(missing)
            else:
                pending.pop()
                if top not in self._inside:
                    self._inside[top] = 1 << len(self._inside) | self.of(parts)
        return self._inside[t]

    def parts(self, t: Tensor) -> set[Tensor]:
        """What a definition reads."""
        found = self._parts.get(t)
        if found is None:
            found = self._parts[t] = {read.tensor for body in t.bodies for read in reads(body)}
        return found

    def holds(self, outer: int, t: Tensor) -> bool:
        """Whether a set that `of` gave holds a definition."""
        return outer | self.inside(t) == outer

    def to_open(self, first: set[Tensor], second: set[Tensor]) -> set[Tensor]:
        """What to take apart so that two sides become about the same definitions: what only one of them reads, or if
        the other one has it inside of something, the newest thing that it is a part of."""
        here, there = self.of(first), self.of(second)
        unlike = first ^ second
        apart = {t for t in unlike if not self.holds(there if t in first else here, t)}
        if apart:
            return apart
        around = {t for t in first | second if not unlike.isdisjoint(self.parts(t))}
        return {max(around - unlike or around or unlike, key=lambda t: t.uid)}

    def of(self, tensors: set[Tensor]) -> int:
        """Everything inside some definitions."""
        found = 0
        for t in tensors:
            found |= self.inside(t)
        return found


@dataclass(frozen=True, slots=True)
class Question:
    """Both sides of a claim. `final` says that there is nothing left in them to take apart."""

    sides: tuple[Expr, Expr]
    final: bool


def question(claim: Claim, nesting: Nesting, levels: int = 0) -> Question:
    """Both sides of a claim, about the same tensors: what only one side reads is taken apart, unless the other side has
    it inside of what is yet to be taken apart there.

    So many `levels` of the definitions that both sides read are taken apart too.
    """
    opened: frozenset[Tensor] = frozenset()
    for _ in range(ROUNDS):
        opening = Opening(opened, claim.constants)
        sides = claim.meaning(opening), claim.claimed(opening)
        first, second = (_definitions(opening, side) for side in sides)
        if first != second:
            opened |= nesting.to_open(first, second)
        elif levels and first:
            levels -= 1
            opened |= first
        else:
            return Question(sides, not first)
    raise BudgetError(f"definitions to take apart more than {ROUNDS} times")


def _definitions(opening: Opening, side: Expr) -> set[Tensor]:
    read = tensors_of([side])
    return {t for t, symbol in opening.symbols.items() if symbol in read and t.bodies and t.kind in TRANSPARENT}


def record(logical: Module, partitioned: Module) -> Recorder:
    """Interpret both modules as the prover does and note every claim, those about arguments and results too.

    As in `prove`, a second walk also decides values case by case where the first does not prove everything.
    """
    for decide in (False, True):
        recorder, open_ = _walk(logical, partitioned, decide)
        if not open_:
            break
        if not decide:
            forget()
    return recorder


def _walk(logical: Module, partitioned: Module, decide: bool) -> tuple[Recorder, bool]:
    devices = device_count(logical, partitioned)
    device = expr.var("d", "", devices)
    arguments = arguments_of(logical, partitioned, devices)
    shards = partitioned_arguments(logical, partitioned, arguments, device)
    placed = result_placements(logical, partitioned, devices)
    loops = LoopBook(placements(device))
    stages = Stages(device, decide)
    stages.arguments = [argument.whole for argument in arguments]
    mentioned = (logical.argument_shardings, partitioned.argument_shardings, logical.result_shardings)
    stages.placements = [sharding for each in mentioned for sharding in each if sharding is not None]
    recorder = Recorder()
    plain = Context(None, 1, 1, recorder.run, loops=loops, mesh=device, observe=stages.record_logical)
    wanted = recorder.run(logical.main, stages.arguments, plain)
    replicas = partitioned.replicas
    local = Context(
        device,
        devices // replicas,
        replicas,
        recorder.run,
        side="partitioned",
        loops=loops,
        observe=stages.record_partitioned,
    )
    if is_global(partitioned):
        local = replace(local, device=None, mesh=device)
    else:
        for argument, value, sharding in zip(arguments, shards, _shardings(logical, partitioned), strict=True):
            if argument.addends is None and sharding is not None and _is_plain(sharding):
                whole_side = shard(argument.whole, sharding, device)
                recorder.claims.append(Claim(f"argument {argument.name}", "", whole_side, _term(value.term)))
    found = recorder.run(partitioned.main, shards, local)
    open_ = False
    for n, name in enumerate(logical.result_names):
        for term, expected, inside in obligations(name, wanted[n], found[n], placed[n], device):
            if _is_plain(placed[n]) and device not in wanted[n].term.free:
                side: Side = shard(wanted[n], placed[n], device)
            else:
                side = _within(inside, expected)
            recorder.claims.append(Claim(f"result {name}", "", side, _within(inside, term)))
            open_ = open_ or term is not expected
    return recorder, open_


def _within(inside: Poly, p: Poly) -> Side:
    """A term where a condition holds, and 0 elsewhere."""
    return lambda opening: times(opening.term(inside, {}), opening.term(p, {}))


def _shardings(logical: Module, partitioned: Module) -> list[Sharding | None]:
    pairs = zip(logical.argument_shardings, partitioned.argument_shardings, strict=True)
    return [whole or part for whole, part in pairs]


def _is_plain(sharding: Sharding) -> bool:
    return sharding.addends is None and sharding.only is None


LEVELS = 6
"""How many levels of definitions that both sides read are taken apart before a difference is one."""


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
    progress: Callable[[int, int], None] | None = None,
) -> Recheck:
    """Check every step of the proof of a pair of modules with an engine that shares no rules with the prover.

    `jobs` worker processes have `seconds` and `memory` (bytes) for each question; a question that needs more counts as
    not checked. The result does not depend on `jobs`. An interrupt ends the workers and gives what is known so far.
    """
    with Pool(answer, jobs=jobs, seconds=seconds, memory=memory) as pool:
        return recheck_with(pool.answers, logical, partitioned, int(seconds * 250), progress)


def recheck_with(
    answers: Answers,
    logical: Module,
    partitioned: Module,
    milliseconds: int,
    progress: Callable[[int, int], None] | None = None,
) -> Recheck:
    """As `recheck`, with something else than worker processes to answer questions.

    Z3 has so many milliseconds for each.
    """
    with _one_at_a_time, without_collector():
        return _recheck(answers, logical, partitioned, milliseconds, progress)


def _recheck(
    answers: Answers,
    logical: Module,
    partitioned: Module,
    milliseconds: int,
    progress: Callable[[int, int], None] | None,
) -> Recheck:
    started = time.perf_counter()
    forget()
    recorder = record(logical, partitioned)
    states: dict[str, _State] = {}
    lost: Counter[str] = Counter({f"{name}: no second transcription": n for name, n in recorder.unwritten.items()})
    interrupted = False
    try:
        _decide(recorder, states, lost, answers, milliseconds, progress)
    except KeyboardInterrupt:
        interrupted = True
    return _summary(recorder, states, lost, time.perf_counter() - started, interrupted)


def _decide(
    recorder: Recorder,
    states: dict[str, _State],
    lost: Counter[str],
    answers: Answers,
    milliseconds: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Pose every question, once; those that seem to differ again, a level of definitions deeper."""
    nesting = Nesting()
    tasks: list[Task] = []
    for claim in recorder.claims:
        try:
            asked = question(claim, nesting)
        except (UnwrittenError, BudgetError) as error:
            lost[f"{claim.what.split()[0]}: {error}"] += 1
            continue
        key = Names().text(asked.sides)
        if key in states:
            states[key].claims.append(claim)
        else:
            states[key] = _State([claim], asked.final)
            tasks.append(Task(asked.sides, asked.final, milliseconds))
    todo = list(states.values())
    for level in range(1, LEVELS + 2):
        for n, found in answers(tasks):
            todo[n].finding = (
                Finding(Outcome.UNDECIDED, f"its worker {found.reason}") if isinstance(found, Lost) else found
            )
            if progress is not None:
                progress(sum(state.finding is not None for state in states.values()), len(states))
        todo = [s for s in todo if s.finding and s.finding.outcome is Outcome.DIFFERENT and not s.final]
        tasks = []
        for state in list(todo):
            try:
                asked = question(state.claims[0], nesting, level)
            except BudgetError as error:
                state.finding = Finding(Outcome.UNDECIDED, f"differs as far as it is taken apart; {error}")
                todo.remove(state)
                continue
            state.final = asked.final or level == LEVELS
            tasks.append(Task(asked.sides, state.final, milliseconds))


def _summary(
    recorder: Recorder, states: dict[str, _State], lost: Counter[str], seconds: float, interrupted: bool
) -> Recheck:
    agreed = by_solver = bounded = 0
    wrong = []
    unchecked = Counter(lost)
    for state in states.values():
        found, count = state.finding, len(state.claims)
        if found is not None and found.agrees:
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
            why = "interrupted" if found is None else found.why or "interrupted"
            for claim in state.claims:
                unchecked[f"{claim.what.split()[0]}: {why}"] += 1
    return Recheck(
        len(recorder.claims) + sum(recorder.unwritten.values()),
        len(states),
        agreed,
        by_solver,
        bounded,
        tuple(sorted(unchecked.items())),
        tuple(wrong),
        seconds,
        interrupted,
    )
