"""What is told of values goes on with them: to what is computed, into regions and out of them, from turn to turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hlo_verify.program.ir import Function, Name, Op
from hlo_verify.program.op_families import RUNS_REGIONS


@dataclass(slots=True)
class Forward(ABC):
    """Something that is told of some values; regions are read again as long as turns tell more of what they carry."""

    told: dict[Name, str] = field(default_factory=dict)
    marks: dict[tuple[Name, ...], str] = field(default_factory=dict)
    """What there is to say of operations, by their results."""
    known: Container[Name] = ()
    """Values that are told nothing."""

    @abstractmethod
    def add(self, op: Op) -> None:
        """An operation that runs no regions."""

    @abstractmethod
    def of(self, value: Name) -> str:
        """What is told of a value that is handed on, or nothing."""

    @abstractmethod
    def one_of(self, op: Op, told: Sequence[str]) -> str:
        """What is told of a value that an operation hands on, which may be any of those. What is said of several of
        them may not hang on which: else loops would be read without end."""

    def read(self, function: Function) -> None:
        for op in function.ops:
            if op.name in RUNS_REGIONS and op.regions:
                self._read_regions(op)
            else:
                self.add(op)

    def _read_regions(self, op: Op) -> None:
        *_, last = op.regions
        is_loop = op.name == "while"
        while True:
            for region in op.regions:
                if len(region.arguments) == len(op.operands):
                    self.hand(op, region.arguments, op.operands, *([last.results] if is_loop else []))
                self.read(region)
            before = [self.told.get(v) for v in last.arguments]
            if is_loop:
                self.hand(op, last.arguments, last.results)
            if before == [self.told.get(v) for v in last.arguments]:
                break
        given = [op.operands, last.results] if is_loop else [region.results for region in op.regions]
        self.hand(op, op.results, *given)

    def hand(self, op: Op, to: Sequence[Name], *given: Sequence[Name]) -> None:
        for new, *values in zip(to, *given, strict=True):
            found = {told for told in (self.told.get(new, ""), *map(self.of, values)) if told}
            if found and new not in self.known:
                self.told[new] = self.one_of(op, sorted(found))


def with_marks(function: Function, attribute: str, marks: Mapping[tuple[Name, ...], str]) -> Function:
    """The function with an attribute at operations, by their results, in regions too."""
    ops = []
    for op in function.ops:
        regions = tuple(with_marks(region, attribute, marks) for region in op.regions)
        if any(new is not old for new, old in zip(regions, op.regions, strict=True)):
            op = replace(op, regions=regions)
        if op.results in marks:
            op = replace(op, attributes={**op.attributes, attribute: marks[op.results]})
        ops.append(op)
    is_same = all(new is old for new, old in zip(ops, function.ops, strict=True))
    return function if is_same else replace(function, ops=tuple(ops))
