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

import numpy as np

from hlo_verify.passes.load.decisive import decisive
from hlo_verify.passes.load.forward import Forward
from hlo_verify.passes.load.made_by import PUTS_TOGETHER, Made, in_order, is_function, short, text
from hlo_verify.program.element_types import is_inexact
from hlo_verify.program.ir import Name, Op, TensorType, used
from hlo_verify.program.op_families import ADDS, CHOOSES


@dataclass(slots=True)
class PartlyMade(Forward):
    """Told of values that hang on arguments in some of their elements is by which operations that round the others were
    made; comparisons and roundings of these are marked with how what they are of was made."""

    made: Made = field(kw_only=True)
    types: Mapping[Name, TensorType] = field(kw_only=True)
    begins: list[Name] = field(default_factory=list)
    """Rounded values that hang on no argument, and are elements of such tensors, or meet them."""
    beside: set[Name] = field(default_factory=set)
    """Values of which some elements are of arguments, and others exact numbers."""

    def add(self, op: Op) -> None:
        """An operation that is handed what hangs on arguments."""
        floats = [v for v in op.operands if is_inexact(self.types[v].dtype)]
        known = self.made.known
        if known.issuperset(op.operands) or known.issuperset(op.results) or not floats or not is_function(op):
            return
        if self._has_numbers_beside(op, floats):
            self.beside.update(op.results)
        if any(map(self.of, floats)):
            self._tell(op, floats)

    def _tell(self, op: Op, floats: Sequence[Name]) -> None:
        asked = decisive(op) if op.name in CHOOSES else op.operands if self.made.compares_or_rounds(op) else ()
        if self._is_each(asked) and any(map(self.of, asked)):
            self.marks[op.results] = short(*in_order(op, map(self._way, asked)))
        is_kept = op.name == "scatter" and bool(self.of(op.operands[0]))
        if self._is_each(floats) or _puts_together(op) or is_kept:
            self.begins += self.made.rounded.intersection(floats)
            way = self._way_of(op, floats)
            self.told |= {v: way for v, type_ in zip(op.results, op.types, strict=True) if is_inexact(type_.dtype)}

    def _is_each(self, values: Sequence[Name]) -> bool:
        """Whether elements of all those values may hang on no argument, where not all of them do."""
        are_partly = [v in self.told or v in self.beside for v in values]
        return any(are_partly) and all(is_ or v in self.made.known for is_, v in zip(are_partly, values, strict=True))

    def _has_numbers_beside(self, op: Op, floats: Sequence[Name]) -> bool:
        """Whether elements of arguments stand beside exact numbers, or what is made of these: most often zeros, to
        which others are added. A product with exact numbers may be 0 in some elements."""
        if op.name in ADDS:
            return self._is_each(floats)
        known = self.made.known.intersection(floats)
        if op.name == "scatter":
            return op.operands[0] in self.beside or op.operands[0] in known
        is_told = not self.beside.isdisjoint(floats)
        if op.name == "multiply":
            return is_told or not all(map(self._is_not_zero, known))
        return is_told or (_puts_together(op) and bool(known))

    def _is_not_zero(self, value: Name) -> bool:
        """Whether a factor is another number than 0 in all elements, or was rounded, which 0 is not."""
        number = self.made.number(value)
        if number is None:
            return value in self.made.rounded
        return bool(number.real and number.imag) if np.iscomplexobj(number) else bool(number)

    def of(self, value: Name) -> str:
        """What is one number, as it is written down and converted, is as exact as that: masks are made so."""
        is_rounded = value in self.made.rounded and self.made.number(value) is None
        return self.told.get(value) or ("rounded" if is_rounded else "")

    def hand(self, op: Op, to: Sequence[Name], *given: Sequence[Name]) -> None:
        Forward.hand(self, op, to, *given)
        for new, *values in zip(to, *given, strict=True):
            if new in self.told:
                self.begins += self.made.rounded.intersection(values)
            known, others = self.made.known.intersection(values), {*values} - self.made.known
            is_given = op.name == "while" and new in op.results  # what a loop starts from is hardly what it gives
            if not self.beside.isdisjoint(values) or (known and others and not is_given):
                self.beside.add(new)

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
        return text(op, {v: self._way(v) for v in used(op)})


def _puts_together(op: Op) -> bool:
    """Whether elements are of one operand or of another one, a scatter's that overwrites among them."""
    return op.name in PUTS_TOGETHER or (op.name == "scatter" and not op.regions[0].ops)
