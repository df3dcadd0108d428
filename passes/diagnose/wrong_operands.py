"""Where an operand was computed that has a meaning, but another one than it should have.

A value is lost where an operation combines logical values that the logical module does not combine; each of them may
be right. Where the value that one operand should have is computed nowhere, what was to compute it has computed this
operand instead, and is at fault. Where it is computed, the operation has been given another operand, or in another
order: then it is at fault itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_verify.index import expr
from hlo_verify.ops.values import Value
from hlo_verify.passes.diagnose.fault import moved
from hlo_verify.passes.diagnose.lost_values import Values
from hlo_verify.passes.diagnose.term_contents import form
from hlo_verify.passes.prove.stages import Step
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.program.ir import Name
from hlo_verify.program.op_families import INDEXED, RESHAPES
from hlo_verify.terms import algebra
from hlo_verify.terms.term import Poly

DEEP = 8
"""How many operations back operands are compared."""


@dataclass(slots=True)
class Operands:
    """Compares operations of the partitioned module with those of the logical one that they are meant to be."""

    values: Values
    _computed: dict[int, set[Poly]] = field(default_factory=dict)

    def at_fault(self, name: Name, meant: Step, depth: int = DEEP) -> Name:
        """The value that first is another logical one than it should be, going back from a lost one; else `name`.

        `meant` is the logical operation that the lost value is meant to be.
        """
        flow, logical = self.values.flow, self.values.logical
        if flow.op(name).name != meant.op.name or depth < 0:
            return name
        for mine, theirs in zip(map(flow.origin, flow.op(name).operands), meant.op.operands, strict=False):
            theirs = logical.origin(theirs)
            if mine not in flow or theirs not in logical or not self._is_another(mine, logical.value(theirs)):
                continue
            if flow.op(name).name in INDEXED:
                return name  # where a device looks is its own affair
            makers = self._makers(mine, theirs)
            if makers is not None and self._is_meant(makers[0], makers[1]):
                return self._where_taken(mine, theirs) or name
            if makers is not None:
                return self.at_fault(makers[0], logical.step(makers[1]), depth - 1)
        return name

    def _is_meant(self, mine: Name, theirs: Name) -> bool:
        """Whether a value is what an operation of its own origin computes, and that is not the other's."""
        values = self.values
        if values.flow.op(mine).location == values.logical.op(theirs).location:
            return False
        match = values.shards.match(values.flow.value(mine))
        meant = values.stages.counterparts(values.flow.op(mine))
        return match is not None and any(match.whole.term is value.term for step in meant for value in step.values)

    def _where_taken(self, mine: Name, theirs: Name) -> Name | None:
        """Where one value is given the shape or order that another should have been given."""
        values, taken = self.values, None
        for a, b in zip(moved(values.flow, mine), moved(values.logical, theirs), strict=False):
            one, other = values.flow.op(a), values.logical.op(b)
            if (one.name, one.location) != (other.name, other.location):
                break
            taken = a
        return taken

    def _is_another(self, mine: Name, wanted: Value) -> bool:
        """Whether a value is a shard of a logical value, but not of the one that is wanted, which nothing computes."""
        value = self.values.flow.value(mine)
        if wanted.term.constant is not None or self.values.is_lost(mine):
            return False
        if value.type.dtype in INTEGER_RANGES:
            return value.term.constant is None and self._is_elsewhere(value, wanted)
        match = self.values.shards.match(value)
        if match is None or match.factor != 1 or match.whole.term is wanted.term:
            return False
        return not self.computes(wanted.term)

    def _is_elsewhere(self, value: Value, wanted: Value) -> bool:
        """Whether integers or a mask are not those of the wanted ones' shards, not even on the first device.

        A device may add its offset later.
        """
        first = {self.values.stages.device: expr.constant(0)}
        shards = [algebra.substitute(term, first) for term in self.values.shards.shards(wanted, value.shape)]
        return bool(shards) and algebra.substitute(value.term, first) not in shards

    def computes(self, whole: Poly) -> bool:
        """Whether the partitioned module has a shard of a logical value."""
        return whole in self._those_computed(form(whole))

    def _those_computed(self, key: int) -> set[Poly]:
        """The logical values of one form that the partitioned module has shards of."""
        if key not in self._computed:
            shards = self.values.shards
            alike = (v for step in self.values.stages.partitioned for v in step.values if form(v.term) == key)
            matches = (shards.match(value) for value in alike)
            self._computed[key] = {m.whole.term for m in matches if m is not None and m.factor == 1}
        return self._computed[key]

    def _makers(self, mine: Name, theirs: Name) -> tuple[Name, Name] | None:
        """The operations of one kind that compute two values, but for their shape and order."""
        for a in moved(self.values.flow, mine):
            for b in moved(self.values.logical, theirs):
                if self.values.flow.op(a).name == self.values.logical.op(b).name not in RESHAPES:
                    return a, b
        return None
