"""What a proof claims, step by step: every operation's result, and the shards that values enter and leave by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod

from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.ops.bits import JOINS
from hlo_verify.ops.values import Context, Value, position_var
from hlo_verify.passes.prove.interpret import interpret
from hlo_verify.passes.recheck.loop_claims import induction
from hlo_verify.passes.recheck.meanings import MEANINGS, Meaning, Site, UnwrittenError, free_function
from hlo_verify.passes.recheck.plain import Affine, Choose, Expr, Gate, as_affine, digit, sum_of, table, times, whole
from hlo_verify.passes.recheck.transcribe import Opening
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.program.ir import AS_FLOATS, IN_FLOATS, Function, Op
from hlo_verify.program.sharding import Sharding
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import MAXIMUM, MINIMUM, MULTIPLY
from hlo_verify.terms.machine import least_multiples
from hlo_verify.terms.term import Apply, Poly, Read, value_of

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


def _as_it_is(p: Poly) -> Poly:
    return p


@dataclass(slots=True)
class Recorder:
    """Interprets a module as the prover does, and notes a claim for every result of an operation."""

    opened: Callable[[Poly], Poly] = _as_it_is
    """A term with values in place of what stands for them."""
    claims: list[Claim] = field(default_factory=list)
    unwritten: Counter[str] = field(default_factory=Counter)
    """Results of operations whose meaning is not written down a second time."""
    unchecked: Counter[str] = field(default_factory=Counter)
    """What else is not checked, and why."""
    turns: list[bool] = field(default_factory=list)
    """Of each module with loops for what is written out turn by turn: whether it is, written out again."""

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
                    before, after = self.opened(value.term), self.opened(other.term)
                    if before is not after:
                        self.claims.append(
                            Claim(
                                f"{op.name} as a shard",
                                str(op.location),
                                prover_term(before),
                                prover_term(after),
                            )
                        )
                values = others
            if context.loops is not None and context.side == "partitioned":
                named = context.loops.by_name(values)
                if any(value.term is not other.term for value, other in zip(values, named, strict=True)):
                    self.unwritten[f"{op.name}: what a turn of a logical loop leaves"] += 1
                values = named
            if context.instead is not None:
                values = context.instead(op, values)
            environment.update(zip(op.results, values, strict=True))
        return [environment[v] for v in function.results]

    def note(self, op: Op, operands: list[Value], values: list[Value], context: Context) -> None:
        """The claims about the results of one operation."""
        if all(0 in value.shape for value in values):
            return  # nothing is claimed, nor were regions walked through
        walked = WALKED.get(op.name)
        if walked is not None:
            walked(self, op, operands, values, context)
            return
        meaning = MEANINGS.get(op.name)
        if meaning is None:
            self.unwritten[op.name] += len(values)
            return
        if AS_FLOATS in op.attributes or op.attributes.get(IN_FLOATS):
            self.unwritten[f"{op.name} as floats have it"] += len(values)
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
                if isinstance(atom, Apply) and _is_by_name(atom, op, operands):
                    known = free_function  # the prover claims no more than that
                build = partial(_meaning_of, known, op, n, operands, context)
                wraps = any(map(_may_wrap, operands))
                self.claims.append(
                    Claim(op.name, str(op.location), build, prover_term(value.term), op.name == "constant", wraps)
                )

    def note_branches(self, op: Op, operands: list[Value], values: list[Value], context: Context) -> None:
        """The claims about what a choice between regions gives."""
        branches = [[context.environment[v] for v in region.results] for region in op.regions]
        for value, *outcomes in zip(values, *branches, strict=True):
            chosen = _branch(operands[0], outcomes)
            self.claims.append(Claim(op.name, str(op.location), chosen, prover_term(value.term)))

    def note_loop(self, op: Op, operands: list[Value], values: list[Value], context: Context) -> None:
        """The claims about what a loop carries."""
        try:
            found = induction(op, operands, values, context)
            claims = list(found.condition())
        except UnwrittenError as error:
            self.unwritten[f"{op.name}: {error}"] += len(values)
            return
        for k in range(len(values)):
            try:
                claims += found.component(k)
            except UnwrittenError as error:
                self.unwritten[f"{op.name}: {error}"] += 1
        for what, meant, claimed in claims:
            self.claims.append(Claim(f"{op.name} {what}", str(op.location), meant, claimed))

    def note_region(self, op: Op, operands: list[Value], values: list[Value], context: Context) -> None:
        """The claims about what a manual region is handed, and what it gives back."""
        device, body = context.mesh, op.regions[0]
        within = [context.environment[v] for v in body.arguments]
        given = [context.environment[v] for v in body.results]
        place = str(op.location)
        for value, local, sharding in zip(operands, within, op.attributes["in_shardings"], strict=True):
            if device is None or sharding is None or not sharding.is_plain:
                self.unwritten[op.name] += 1
            else:
                self.claims.append(
                    Claim(f"{op.name} enters", place, shard(value, sharding, device), prover_term(local.term))
                )
        for value, local, sharding in zip(values, given, op.attributes["out_shardings"], strict=True):
            if device is None or sharding is None or not sharding.is_plain:
                self.unwritten[op.name] += 1
            else:
                side = assembled(local, value.shape, sharding, device)
                self.claims.append(Claim(f"{op.name} leaves", place, side, prover_term(value.term)))


WALKED: dict[str, Callable[[Recorder, Op, list[Value], list[Value], Context], None]] = {
    "sdy.manual_computation": Recorder.note_region,
    "while": Recorder.note_loop,
    "case": Recorder.note_branches,
    "if": Recorder.note_branches,
}
"""Operations with regions that the prover has walked through, by what is claimed of them."""


def _branch(index: Value, outcomes: Sequence[Value]) -> Side:
    """The outcome of the branch with an index, of the last one if there is none with it; of `if` the first is true."""

    def chosen(opening: Opening) -> Expr:
        which = opening.term(index.term, {})
        *others, result = (opening.term(outcome.term, {}) for outcome in outcomes)
        for n, outcome in reversed(list(enumerate(others))):
            test = which if index.type.dtype == "i1" else Gate(as_affine(which), n, n)
            result = Choose(test, outcome, result)
        return result

    return chosen


def _is_by_name(atom: Apply, op: Op, operands: Sequence[Value]) -> bool:
    """Whether a result is a function of the operands of which nothing is known but its name. A product that is not
    multiplied out is a product, and integers whose bits are joined may be others than the operands."""
    if op.name in JOINS and {*atom.args} != {value.term for value in operands}:
        return False
    return atom.function.name == op.name and not atom.function.is_name and atom.function != MULTIPLY


OF_ONE_TYPE = (MAXIMUM, MINIMUM)
"""Functions of integers whose operands are of the type of the result."""


def _may_wrap(value: Value) -> bool:
    """Whether an integer's term may take values that its type does not have."""
    if value.type.dtype not in INTEGER_RANGES or value.type.dtype == "i1":
        return False
    lo, hi = INTEGER_RANGES[value.type.dtype]
    constant = value.term.constant
    if constant is not None:
        return not lo <= constant <= hi
    todo: list[Poly | Index] = [value.term]
    seen = set()
    while todo:
        e = todo.pop()
        if isinstance(e, Poly):
            if least_multiples(e, lo, hi) is not e:
                return True  # another one lies in the range, which differs by multiples that wrap
            e = algebra.as_index(e, lo, hi)
        for part, _ in e.items:
            if not isinstance(part, Opaque) or part in seen:
                continue
            seen.add(part)
            todo.extend(part.exprs)
            if part.operator == "value":
                atom = value_of(part).atom
                if atom is None:
                    return True
                if isinstance(atom, Apply) and atom.function in OF_ONE_TYPE:
                    todo.extend(atom.args)
    return False


def prover_term(p: Poly) -> Side:
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
