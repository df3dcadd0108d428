"""One question of the re-check, from two plain terms to an answer: made small, expanded at elements, posed to Z3."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from random import Random

from hlo_verify.equality import backend
from hlo_verify.equality.backend import Different, Equal
from hlo_verify.index.expr import Var
from hlo_verify.limits import Limits, allows, in_force, limit_of
from hlo_verify.passes.recheck.extended import Extended, Pairs, Value
from hlo_verify.passes.recheck.float_probe import Guess
from hlo_verify.passes.recheck.formulas import Graph
from hlo_verify.passes.recheck.graph import Node
from hlo_verify.passes.recheck.instantiate import Expansion
from hlo_verify.passes.recheck.normal_form import NormalForm
from hlo_verify.passes.recheck.plain import BudgetError, Expr, tensors_of
from hlo_verify.passes.recheck.question import Formulas
from hlo_verify.passes.recheck.shape_reduction import Instance, reduce
from hlo_verify.passes.recheck.transcribe import BEST
from hlo_verify.passes.recheck.z3_formulas import Z3
from hlo_verify.passes.recheck.z3_terms import operands
from hlo_verify.terms.functions import LOG, SQRT, real
from hlo_verify.terms.padding import KIND as PADDING

FEWEST = 4
"""So many elements are looked at however long they are to write out."""


def elements(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Every element of a box, or if there are many: its corner, a step along every dimension, its end, and others."""
    most = limit_of("recheck_elements")
    if allows("recheck_elements", prod(sizes)):
        return list(product(*map(range, sizes)))
    generator = Random(len(sizes))
    found = {tuple(0 for _ in sizes): None, tuple(n - 1 for n in sizes): None}
    for k, n in enumerate(sizes):
        found[tuple(min(1, n - 1) if i == k else 0 for i in range(len(sizes)))] = None
        found[tuple(n - 1 if i == k else 0 for i in range(len(sizes)))] = None
    while len(found) < most:
        found[tuple(generator.randrange(n) for n in sizes)] = None
    return list(found)[: max(most, 2 * len(sizes) + 2)]


@dataclass(frozen=True, slots=True)
class Posed:
    """A question at a small instance: both sides at the elements where they are not the same formula."""

    formulas: Formulas
    where: tuple[str, ...]
    """The element of every pair."""
    defined: int
    """How many pairs ask what the two are; the others, whether they are numbers or infinite alike."""
    kept: tuple[int, ...]
    is_whole: bool
    """Whether every element was looked at."""


def pose(sides: tuple[Expr, Expr], *, briefly: bool = False) -> Posed:
    """The question whether two terms are equal at a small instance; `briefly`, up to an element where they plainly
    differ.

    Raises `BudgetError` where it would grow too large.
    """
    instance, graph = reduce(sides), Graph()
    box, guess = _Box.of(sides, instance, graph), Guess(graph)
    seen = []
    for each in box.seen():
        seen.append(each)
        if briefly and any(guess.differ(*pair) for pair in each[0][0]):
            break
    defined = [(pair, where) for (pairs, _), where in seen for pair in pairs]
    unlike = [*defined, *((pair, where) for (_, pairs), where in seen for pair in pairs)]
    formulas = Formulas(graph, tuple(pair for pair, _ in unlike))
    where = tuple(where for _, where in unlike)
    return Posed(formulas, where, len(defined), instance.kept, len(seen) == box.count)


def differs_at_full_size(sides: tuple[Expr, Expr]) -> bool | None:
    """Whether some elements without reduction plainly differ; None where the terms are too long for that."""
    graph = Graph()
    guesses = [Guess(graph, seed) for seed in range(limit_of("recheck_draws"))]
    try:
        found = _Box.of(sides, reduce(sides, shrink=False), graph).seen()
        return any(guess.differ(*pair) for (pairs, _), _ in found for pair in pairs for guess in guesses)
    except BudgetError:
        return None


@dataclass(frozen=True, slots=True)
class _Box:
    """The elements of an instance of two terms."""

    sides: tuple[Expr, Expr]
    expansion: Expansion
    sizes: dict[Var, int]

    @classmethod
    def of(cls, sides: tuple[Expr, Expr], instance: Instance, graph: Graph) -> _Box:
        """The box over every variable that is free in either side."""
        expansion = Expansion(instance, graph)
        variables = dict.fromkeys([*expansion.free(sides[0]), *expansion.free(sides[1])])
        return cls(sides, expansion, {v: instance.size(v) for v in variables})

    @property
    def count(self) -> int:
        """How many elements there are."""
        return prod(self.sizes.values())

    def seen(self) -> Iterator[tuple[Pairs, str]]:
        """What has to be equal at the elements that are looked at, and which element it is."""
        expansion, graph = self.expansion, self.expansion.graph
        fresh = {t for t in tensors_of([self.sides[1]]) - tensors_of([self.sides[0]]) if t.kind == PADDING}
        for n, values in enumerate(elements(list(self.sizes.values()))):
            if n >= FEWEST and not allows("recheck_element_steps", expansion.steps):
                return
            env = dict(zip(self.sizes, values, strict=True))
            a, b = (expansion.term(side, env) for side in self.sides)
            is_same = a == b or bool(fresh and _mentions(graph, b, {expansion.tensors.get(t, "") for t in fresh}))
            pairs: Pairs = ([], []) if is_same else expansion.arithmetic.pairs(a, b)
            yield pairs, ", ".join(f"{v}={n}" for v, n in env.items())


def _mentions(graph: Graph, value: Value, names: set[str]) -> bool:
    todo = [value.number, value.plus, value.minus, value.none] if isinstance(value, Extended) else [value]
    seen = set()
    while todo:
        m = todo.pop()
        if m not in seen:
            seen.add(m)
            if graph.nodes[m][0] == "read" and graph.nodes[m][1] in names:
                return True
            todo.extend(operands(graph, m))
    return False


NAMES = dict.fromkeys(BEST, "the index of the best of pairs") | {
    LOG: "a logarithm",
    SQRT: "a root",
    real("power"): "a power",
}
"""Functions that Z3 knows too little of for a difference that it finds, and numbers do not show."""


FOLD = "reduce "
"""What a fold of its elements is called, of which the prover knows no more either."""


def _known_by_name(question: Formulas) -> str | None:
    """What sides are made of that follows laws which are not written down here: elements in order, and the like."""
    todo, seen = [n for pair in question.pairs for n in pair], set[Node]()
    while todo:
        n = todo.pop()
        if n in seen:
            continue
        seen.add(n)
        node = question.graph.nodes[n]
        if node[0] == "call" and isinstance(node[1], str) and node[1] not in BEST and not node[1].startswith(FOLD):
            return node[1].split()[0]
        todo.extend(operands(question.graph, n))
    return None


def _name(graph: Graph) -> str | None:
    """What is no more than a name to Z3."""
    return next((NAMES[node[1]] for node in graph.nodes if node[0] == "call" and node[1] in NAMES), None)


class Outcome(enum.StrEnum):
    """What became of a question."""

    SAME = "same"
    """Both sides are one formula at every element."""
    EQUAL = "equal"
    """Z3 shows that they are equal."""
    EXPANDED = "expanded"
    """They are one polynomial when multiplied out, and Z3 found no answer or was not asked something so long."""
    DIFFERENT = "different"
    """There are values for which they differ."""
    UNDECIDED = "undecided"
    """Neither was found."""


@dataclass(frozen=True, slots=True)
class Task:
    """A question for a worker. `model` asks for values where a quick look says that the sides differ."""

    sides: tuple[Expr, Expr]
    model: bool
    milliseconds: int
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to a question: of a difference, the element and the values; else why there is no answer."""

    outcome: Outcome
    why: str = ""
    kept: tuple[int, ...] = ()
    """Large sizes that the small instance keeps."""
    is_whole: bool = True
    """Whether every element of the small instance was looked at."""
    limits: tuple[str, ...] = ()
    """The limits that were run into."""

    @property
    def agrees(self) -> bool:
        """Whether the two sides were shown to be equal where they were looked at."""
        return self.outcome in (Outcome.SAME, Outcome.EQUAL, Outcome.EXPANDED)


SHORT = 1000
"""Milliseconds for Z3 where the exact normal form has an answer already."""

LONG = 5000
"""The most nodes of a question that Z3 is asked where the exact normal form has an answer already."""


def answer(task: Task) -> Finding:
    """Pose a question and have it decided; what differs is looked at again at full size where that can be afforded."""
    reached: dict[str, None] = {}
    with in_force(task.limits, reached):
        found = _answer(task)
        if found.outcome is Outcome.DIFFERENT and task.model and differs_at_full_size(task.sides) is False:
            found = Finding(Outcome.UNDECIDED, "the small instance differs, and elements at full size do not")
    return replace(found, limits=tuple(reached))


def _answer(task: Task) -> Finding:
    try:
        posed = pose(task.sides, briefly=not task.model)
    except BudgetError as error:
        return Finding(Outcome.UNDECIDED, str(error))
    question = posed.formulas
    if not question.pairs:
        return Finding(Outcome.SAME, kept=posed.kept, is_whole=posed.is_whole)
    guess = Guess(question.graph)
    differs = any(guess.differ(a, b) for a, b in question.pairs[: posed.defined])
    if differs and not task.model:
        return Finding(Outcome.DIFFERENT)
    limits = backend.Limits(task.milliseconds)
    expanded = not differs and isinstance(NormalForm().decide(question, limits), Equal)
    if expanded and len(question.graph.nodes) > LONG:
        return Finding(Outcome.EXPANDED, kept=posed.kept, is_whole=posed.is_whole)
    found = Z3().decide(question, backend.Limits(min(task.milliseconds, SHORT)) if expanded else limits)
    if isinstance(found, Equal):
        return Finding(Outcome.EQUAL, kept=posed.kept, is_whole=posed.is_whole)
    if isinstance(found, Different) and found.pair >= posed.defined and not differs:
        return Finding(Outcome.UNDECIDED, "infinities make no number of one side alone")
    name = _name(question.graph)
    if isinstance(found, Different) and not differs and name is not None:
        return Finding(Outcome.UNDECIDED, f"{name} is no more than a name to Z3")
    made = _known_by_name(question) if differs or isinstance(found, Different) else None
    if made is not None:
        return Finding(Outcome.UNDECIDED, f"{made} of other elements, of which only the name is known")
    if isinstance(found, Different):
        return Finding(Outcome.DIFFERENT, f"at {posed.where[found.pair]}: {found.model}")
    if expanded:
        return Finding(Outcome.EXPANDED, kept=posed.kept, is_whole=posed.is_whole)
    if differs:
        return Finding(Outcome.DIFFERENT, "at pseudo-random values (Z3 gave no model)")
    return Finding(Outcome.UNDECIDED, found.reason)
