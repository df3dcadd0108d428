"""Which comparisons and roundings are of tensors some of whose elements hang on no argument, and how these were made.

    floor(stack([x, arange(64) / 41])[1] * 41)

The elements that are picked hang on no argument, though the tensor does: floats decide of them as they do where they
are a tensor of their own (`float_jumps`). They are not evaluated, so that each such jump is one of numbers that were
made so. Where what is of arguments meets them, as in a sum with `x`, every element hangs on one; so does what is looked
up in a table at an argument's place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hlo_verify.passes.load.made_by import PUTS_TOGETHER, Made, is_function, short, text
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import Function, Name, Op
from hlo_verify.program.op_families import RUNS_REGIONS


@dataclass(slots=True)
class PartlyMade:
    """What is known of the values that hang on arguments in some of their elements, as they come."""

    made: Made
    ways: dict[Name, str] = field(default_factory=dict)
    """By which operations that round the elements that hang on none were made, of values in which there are any."""
    jumps: dict[tuple[Name, ...], str] = field(default_factory=dict)
    """The results of comparisons and roundings of those, and how what they are of was made."""

    def read(self, function: Function) -> None:
        for op in function.ops:
            if op.name in RUNS_REGIONS and op.regions:
                self._read_regions(op)
            elif not all(v in self.made.ways for v in op.operands) and is_function(op):
                self._add(op)

    def _read_regions(self, op: Op) -> None:
        """Branches, what a loop carries, and regions that are handed the operands."""
        for _ in range(1 + (op.name == "while")):  # what a turn gives is handed to the next one
            for region in op.regions:
                if len(region.arguments) == len(op.operands):
                    self._hand(region.arguments, op.operands)
                self.read(region)
            for region in op.regions[op.name == "while" :]:
                self._hand(op.results, region.results)
                if op.name == "while":
                    self._hand(region.arguments, region.results)

    def _hand(self, to: Iterable[Name], values: Iterable[Name]) -> None:
        for new, old in zip(to, values, strict=True):
            if new not in self.made.ways and (way := self._way(old)):
                self.ways[new] = way if self.ways.get(new, way) == way else short("either", self.ways[new], way)

    def _way(self, value: Name) -> str:
        """What is one number, as it is written down and converted, is as exact as that: masks are made so."""
        is_one = self.made.number(value) is not None
        return self.ways.get(value) or ("" if is_one else self.made.ways.get(value, ""))

    def _add(self, op: Op) -> None:
        """An operation that is handed what hangs on arguments."""
        floats = [v for v in op.operands if is_float(self.made.types[v].dtype)]
        if not any(map(self._way, floats)):
            return
        is_each = any(v in self.ways for v in floats) and all(v in self.ways or v in self.made.ways for v in floats)
        if is_each and self.made.compares_or_rounds(op):
            self.jumps[op.results] = short(*sorted(self._told(v) for v in op.operands))
        if is_each or _puts_together(op):
            way = self._way_of(op, floats)
            self.ways |= {v: way for v in op.results if is_float(self.made.types[v].dtype)}

    def _way_of(self, op: Op, floats: list[Name]) -> str:
        if self.made.rounds(op) and not _puts_together(op):
            return short(op.name, op.types[0].dtype, *map(self._told, op.operands))
        found = {self._way(v) for v in floats} - {""}
        return found.pop() if len(found) == 1 else text(op, {v: self._told(v) for v in op.operands})

    def _told(self, value: Name) -> str:
        number = self.made.number(value)
        return self._way(value) or (self.made.structure(value) if number is None else str(number))


def _puts_together(op: Op) -> bool:
    """Whether elements are of one operand or of another one, a scatter's that overwrites among them."""
    return op.name in PUTS_TOGETHER or (op.name == "scatter" and not op.regions[0].ops)
