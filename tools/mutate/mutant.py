"""One mutation of a module: which operator, where, and which source lines a report may name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo_verify.jaxlib_api import ir, make_context, parse_module
from hlo_verify.passes.canonicalize.locations import Locations
from tools.mutate import mlir
from tools.mutate.cases import Case, bytecode
from tools.mutate.mlir import NotHereError, Operation
from tools.mutate.operators import OPERATORS, Operator
from tools.mutate.site import Site

_TRIES = 8
"""Places at which an operator is tried before another operator is."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mutated module. `own` are the source lines of the edited operation, `near` those next to it (see `lines`)."""

    module: bytes
    operator: str
    what: str
    operation: str
    own: tuple[str, ...]
    near: tuple[str, ...]

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.module).hexdigest()[:16]


def mutate(case: Case, seed: Sequence[int], operators: Sequence[Operator] = OPERATORS) -> Mutant | None:
    """A mutation of the partitioned module, the same for the same seed; None where no operator fits anywhere.

    Operators are equally likely where they fit at all, and so are the places of each.
    """
    rng = np.random.default_rng(list(seed))
    module = parse_module(case.partitioned, make_context())  # its operations are valid only while it lives
    everything = mlir.program(module)
    places = {operator: _places(operator, everything) for operator in operators}
    fitting = [operator for operator in operators if places[operator]]
    for k in rng.permutation(len(fitting)).tolist():
        for _ in range(_TRIES):
            place = places[fitting[k]][int(rng.integers(len(places[fitting[k]])))]
            mutant = _try(case, fitting[k], place, rng)
            if mutant is not None:
                return mutant
    return None


def _places(operator: Operator, everything: Sequence[Operation]) -> list[int]:
    """The numbers of the operations that it applies to and whose results are used."""
    return [n for n, op in enumerate(everything) if operator.applies(op) and any(len(list(r.uses)) for r in op.results)]


def _try(case: Case, operator: Operator, place: int, rng: np.random.Generator) -> Mutant | None:
    module = parse_module(case.partitioned, make_context())
    with module.context:
        op = mlir.program(module)[place]
        shown = op.get_asm(enable_debug_info=False, large_elements_limit=8).split("\n")[0][:300]
        own, near = lines(op)
        last = _end_of_loop(op)
        handed_on = () if last is None else tuple(last.operands)
        try:
            with op.location:
                what = operator.edit(op, Site(case.mesh, rng))
            module.operation.verify()
        except (NotHereError, ir.MLIRError):
            return None
        if last is not None:
            near = tuple(sorted({*near, *_makers(handed_on, tuple(last.operands))} - {*own}))
        changed = bytecode(module)
    if changed == case.partitioned:
        return None
    return Mutant(changed, operator.name, what, shown, own, near)


# Source lines


def lines(op: Operation) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The source line of an operation, and those of the operations next to it; what is inside of it does not count.

    Next to it are those that compute its operands and those that use its results; where one of them has no source line
    (XLA's partitioner gives some operations none), the next ones in the same direction count instead. A value that
    comes from outside of a region, or leaves it, ends the search.
    """
    line = _Lines()
    found: set[str] = set()
    for step in (_before, _after):
        seen: list[Any] = []
        waiting = list(step(op))
        while waiting:
            other = waiting.pop()
            if other in seen:
                continue
            seen.append(other)
            where = line(other)
            if where is None:
                waiting += step(other)
            else:
                found.add(where)
    own = line(op)
    return (() if own is None else (own,)), tuple(sorted(found - {own}))


class _Lines:
    """The source lines of operations."""

    def __init__(self) -> None:
        self._locations = Locations()

    def __call__(self, op: Operation) -> str | None:
        frames = self._locations.of(op.location).frames
        return f"{frames[0][0]}:{frames[0][1]}" if frames else None


def _end_of_loop(op: Operation) -> Operation | None:
    """What hands on the values of an iteration to the next one, if the operation is a loop."""
    return list(op.regions[1].blocks[0].operations)[-1].operation if mlir.name(op) == "while" else None


def _makers(before: Sequence[Any], after: Sequence[Any]) -> Iterator[str]:
    """The source lines of what computes the values in whose place an edit puts others, and of what computes those."""
    line = _Lines()
    for pair in zip(before, after, strict=True):
        if pair[0] != pair[1]:
            where = (line(value.owner) for value in pair if not isinstance(value.owner, ir.Block))
            yield from (each for each in where if each is not None)


def _before(op: Operation) -> Iterator[Operation]:
    for operand in op.operands:
        if not isinstance(operand.owner, ir.Block):
            yield operand.owner


def _after(op: Operation) -> Iterator[Operation]:
    for result in op.results:
        for use in result.uses:
            yield use.owner.operation
