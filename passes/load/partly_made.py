"""Which comparisons and roundings are of tensors some of whose elements hang on no argument, and how these were made.

    floor(stack([x, arange(64) / 41])[1] * 41)

The elements that are picked hang on no argument, though the tensor does: floats decide of them as they do where they
are a tensor of their own (`float_jumps`). They are not evaluated, so that each such jump is one of numbers that were
made so: of what floats give where no argument takes part, by the operations that have both kinds. Where what is of
arguments meets them, as in a sum with `x`, every element hangs on one; so does what is looked up in a table at an
argument's place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hlo_verify.passes.load.forward import Forward
from hlo_verify.passes.load.made_by import PUTS_TOGETHER, Made, in_order, is_function, short, text
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import Name, Op, TensorType


@dataclass(slots=True)
class PartlyMade(Forward):
    """Told of values that hang on arguments in some of their elements is by which operations that round the others were
    made; comparisons and roundings of these are marked with how what they are of was made."""

    made: Made = field(kw_only=True)
    types: Mapping[Name, TensorType] = field(kw_only=True)
    begins: list[Name] = field(default_factory=list)
    """Rounded values that hang on no argument, and are elements of such tensors, or meet them."""

    def add(self, op: Op) -> None:
        """An operation that is handed what hangs on arguments."""
        floats = [v for v in op.operands if is_float(self.types[v].dtype)]
        is_made = self.made.known.issuperset(op.operands)
        if is_made or not any(map(self.of, floats)) or not is_function(op):
            return
        is_each = any(v in self.told for v in floats) and all(v in self.told or v in self.made.known for v in floats)
        if is_each and self.made.compares_or_rounds(op):
            self.marks[op.results] = short(*in_order(op, map(self._way, op.operands)))
        if is_each or _puts_together(op):
            self.begins += self.made.rounded.intersection(floats)
            way = self._way_of(op, floats)
            self.told |= {v: way for v, type_ in zip(op.results, op.types, strict=True) if is_float(type_.dtype)}

    def of(self, value: Name) -> str:
        """What is one number, as it is written down and converted, is as exact as that: masks are made so."""
        is_rounded = value in self.made.rounded and self.made.number(value) is None
        return self.told.get(value) or ("rounded" if is_rounded else "")

    def hand(self, op: Op, to: Sequence[Name], *given: Sequence[Name]) -> None:
        Forward.hand(self, op, to, *given)
        for new, *values in zip(to, *given, strict=True):
            if new in self.told:
                self.begins += self.made.rounded.intersection(values)

    def one_of(self, op: Op, told: Sequence[str]) -> str:
        return told[0] if len(told) == 1 else self._code(op)

    def _way_of(self, op: Op, floats: Sequence[Name]) -> str:
        if self.made.rounds(op) and not _puts_together(op):
            return short(op.name, op.types[0].dtype, *map(self._way, op.operands))
        found = {self.of(v) for v in floats} - {""}
        return found.pop() if len(found) == 1 else self._code(op)

    def _way(self, value: Name) -> str:
        number = self.made.number(value)
        return self.of(value) or (self.made.structure(value) if number is None else str(number))

    def _code(self, op: Op) -> str:
        return text(op, {v: self._way(v) for v in op.operands})


def _puts_together(op: Op) -> bool:
    """Whether elements are of one operand or of another one, a scatter's that overwrites among them."""
    return op.name in PUTS_TOGETHER or (op.name == "scatter" and not op.regions[0].ops)
