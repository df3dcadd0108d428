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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from math import prod
from random import Random

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.ir import Function, Module, Op
from hlo_verify.ops.control import LoopBook
from hlo_verify.ops.values import Context, Value, position_var
from hlo_verify.passes import exchanges, meanings
from hlo_verify.passes.interpret import interpret
from hlo_verify.passes.lineage import obligations, placements
from hlo_verify.passes.meanings import Site, UnwrittenError
from hlo_verify.passes.pair import arguments_of, device_count, is_global, partitioned_arguments, result_placements
from hlo_verify.passes.reduce import reduce
from hlo_verify.passes.stages import Stages, reads
from hlo_verify.solver.backend import Different, Equal, Query, decide
from hlo_verify.solver.expand import Expansion
from hlo_verify.solver.formulas import Graph
from hlo_verify.solver.guess import Guess
from hlo_verify.solver.plain import TRANSPARENT, Affine, BudgetError, Expr, Names, Opening, tensors_of, whole
from hlo_verify.solver.z3_terms import script
from hlo_verify.terms.memory import forget, without_collector
from hlo_verify.terms.padding import KIND as PADDING
from hlo_verify.terms.term import Poly, Tensor

MEANINGS = {**meanings.MEANINGS, **exchanges.MEANINGS}


@dataclass(frozen=True, slots=True)
class Claim:
    """That two terms are equal at every element: one that the prover made, and what it should be."""

    what: str
    location: str
    claimed: Poly
    meaning: Callable[[Opening], Expr]
    constants: bool = False


@dataclass(slots=True)
class Recorder:
    """Interprets a module as the prover does, and notes a claim for every result of an operation."""

    stages: Stages | None = None
    claims: list[Claim] = field(default_factory=list)
    unwritten: Counter[str] = field(default_factory=Counter)

    def run(self, function: Function, arguments: Sequence[Value], context: Context) -> list[Value]:
        """As `interpret.run`."""
        environment = context.environment
        environment.update(zip(function.arguments, arguments, strict=True))
        for op in function.ops:
            operands = [environment[v] for v in op.operands]
            values = interpret(op, operands, context)
            if context.observe is not None:
                self.note(op, operands, values, context)
                values = context.observe(op, values)
            environment.update(zip(op.results, values, strict=True))
        return [environment[v] for v in function.results]

    def note(self, op: Op, operands: list[Value], values: list[Value], context: Context) -> None:
        """The claims about the results of one operation."""
        meaning = MEANINGS.get(op.name)
        if meaning is None:
            self.unwritten[op.name] += len(values)
            return
        for n, value in enumerate(values):
            if 0 in value.shape:
                continue
            build = partial(_meaning_of, meaning, op, n, operands, context.device, context.partitions, context.replicas)
            self.claims.append(Claim(op.name, str(op.location), value.term, build, op.name == "constant"))


def _meaning_of(
    meaning: meanings.Meaning,
    op: Op,
    n: int,
    operands: list[Value],
    device: Var | None,
    partitions: int,
    replicas: int,
    opening: Opening,
) -> Expr:
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
    return meaning(Site(op, n, where, types, read, here, partitions, replicas))


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
        """What to take apart so that two sides become about the same definitions: what only one of them reads, or if the
        other one has it inside of something, the newest thing that it is a part of."""
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


def question(claim: Claim, nesting: Nesting, extra: int = 0) -> tuple[Expr, Expr]:
    """Both sides of a claim, about the same tensors: what only one side reads is taken apart, unless the other side has
    it inside of what is yet to be taken apart there.

    `extra` times, the newest definition that both sides read is taken apart too.
    """
    opened: frozenset[Tensor] = frozenset()
    for _ in range(ROUNDS):
        opening = Opening(opened, claim.constants)
        sides = claim.meaning(opening), opening.term(claim.claimed, {})
        first, second = (_definitions([side]) for side in sides)
        unlike = first ^ second
        if unlike:
            opened |= nesting.to_open(first, second)
        elif extra and first:
            extra -= 1
            opened |= {max(first, key=lambda t: t.uid)}
        else:
            break
    return sides


def _definitions(terms: Sequence[Expr]) -> set[Tensor]:
    return {t for t in tensors_of(terms) if t.bodies and t.kind in TRANSPARENT}


ELEMENTS = 24
"""The most elements of a small instance that are looked at."""


def elements(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Every element of a box, or if there are many: its corner, a step along every dimension, its end and some others."""
    if prod(sizes) <= ELEMENTS:
        return list(product(*map(range, sizes)))
    generator = Random(len(sizes))
    found = {tuple(0 for _ in sizes): None, tuple(n - 1 for n in sizes): None}
    for k, n in enumerate(sizes):
        found[tuple(min(1, n - 1) if i == k else 0 for i in range(len(sizes)))] = None
        found[tuple(n - 1 if i == k else 0 for i in range(len(sizes)))] = None
    while len(found) < ELEMENTS:
        found[tuple(generator.randrange(n) for n in sizes)] = None
    return list(found)[: max(ELEMENTS, 2 * len(sizes) + 2)]


@dataclass(frozen=True, slots=True)
class Posed:
    """A question at a small instance. Without a query both sides are the same formulas at every element."""

    query: Query | None
    where: tuple[str, ...]
    """The element of every pair of the query."""
    differs: bool
    """Whether a quick look says that they differ."""


def pose(sides: tuple[Expr, Expr], *, shrink: bool = True, least: int = 2) -> Posed:
    """The question whether two terms are equal at a small instance.

    Raises `BudgetError` where it would grow too large.
    """
    instance = reduce(sides, shrink=shrink, least=least)
    graph = Graph()
    expansion = Expansion(instance, graph)
    variables = list(dict.fromkeys([*expansion.free(sides[0]), *expansion.free(sides[1])]))
    fresh = {t for t in tensors_of([sides[1]]) - tensors_of([sides[0]]) if t.kind == PADDING}
    pairs, where = [], []
    for values in elements([instance.size(v) for v in variables]):
        env = dict(zip(variables, values, strict=True))
        a, b = (expansion.term(side, env) for side in sides)
        if a != b and not (fresh and _mentions(graph, b, {expansion.tensors.get(t, "") for t in fresh})):
            pairs.append((a, b))
            where.append(", ".join(f"{v}={n}" for v, n in env.items()))
    if not pairs:
        return Posed(None, (), False)
    guess = Guess(graph)
    differs = any(guess.differ(a, b) for a, b in pairs)
    text = script(graph, pairs)
    return Posed(Query(text, text.count("(assert ") - len(pairs), len(pairs)), tuple(where), differs)


def _mentions(graph: Graph, n: int, names: set[str]) -> bool:
    from hlo_verify.solver.z3_terms import operands

    todo, seen = [n], set()
    while todo:
        m = todo.pop()
        if m not in seen:
            seen.add(m)
            if graph.nodes[m][0] == "read" and graph.nodes[m][1] in names:
                return True
            todo.extend(operands(graph, m))
    return False


def record(logical: Module, partitioned: Module, decide_cases: bool = False) -> Recorder:
    """Interpret both modules and collect every claim, those about arguments and results last."""
    devices = device_count(logical, partitioned)
    device = expr.var("d", "", devices)
    arguments = arguments_of(logical, partitioned, devices)
    shards = partitioned_arguments(logical, partitioned, arguments, device)
    loops = LoopBook(placements(device))
    recorder = Recorder()
    observe = lambda op, values: values  # noqa: E731
    plain = Context(None, 1, 1, recorder.run, loops=loops, mesh=device, observe=observe)
    wanted = recorder.run(logical.main, [a.whole for a in arguments], plain)
    replicas = partitioned.replicas
    local = Context(
        device, devices // replicas, replicas, recorder.run, side="partitioned", loops=loops, observe=observe
    )
    if is_global(partitioned):
        local = replace(local, device=None, mesh=device)
    found = recorder.run(partitioned.main, shards, local)
    placed = result_placements(logical, partitioned, devices)
    for n, name in enumerate(logical.result_names):
        for term, expected, inside in obligations(name, wanted[n], found[n], placed[n], device):
            recorder.claims.append(Claim(f"result {name}", "", term, lambda o, e=expected: o.term(e, {})))
    return recorder
