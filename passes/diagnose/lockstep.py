"""Results that both modules compute alike but for one operation, found by going back from both at once."""

from __future__ import annotations

from dataclasses import dataclass

from hlo_verify.diagnostics import Mismatch
from hlo_verify.passes.diagnose.dataflow import Flow
from hlo_verify.passes.diagnose.fault import Fault
from hlo_verify.passes.diagnose.lost_values import Values
from hlo_verify.program.ir import Name
from hlo_verify.program.op_families import COLLECTIVES, RESHAPES

DEEP = 12
"""How many operations back two values are compared."""

EXCHANGED = "the operands are those of the logical operation, in another order"


@dataclass(slots=True)
class Alike:
    """Compares a result of a program that was written for each device with the logical one."""

    values: Values

    def exchanged(self, fault: Fault, lost: list[Name], logical: Name) -> Fault | None:
        """An operation of two operands that has the right ones in another order, going back from both results alike."""
        flow, whole = self.values.flow, self.values.logical
        if fault.partial is not None or fault.offset is not None:
            return None
        mine, theirs = self._computed(lost[-1]), self.bare(whole, logical)
        for _ in range(DEEP):
            if mine not in flow or theirs not in whole or flow.op(mine).name != whole.op(theirs).name:
                return None
            own = list(map(flow.origin, flow.op(mine).operands))
            others = list(map(whole.origin, whole.op(theirs).operands))
            apart = [(x, y) for x, y in zip(own, others, strict=False) if not self._agree(x, y)]
            if len(apart) == len(own) == len(others) == 2 and all(map(self._agree, own, reversed(others))):
                return Fault(mine, flow.line(mine), mismatch=Mismatch.WRONG_VALUE, why=EXCHANGED)
            if len(apart) != 1:
                return None
            mine, theirs = self._computed(apart[0][0]), self.bare(whole, apart[0][1])
        return None

    def constant_instead(self, lost: list[Name], logical: Name) -> Fault | None:
        """A constant where the logical module computes something, both results being computed alike but for it."""
        flow, whole = self.values.flow, self.values.logical
        mine, theirs = self.bare(flow, lost[-1]), self.bare(whole, logical)
        for _ in range(DEEP):
            if mine not in flow or theirs not in whole or flow.op(mine).name != whole.op(theirs).name:
                return None
            pairs = list(zip(flow.op(mine).operands, whole.op(theirs).operands, strict=False))
            bare = [(self.bare(flow, x), self.bare(whole, y)) for x, y in pairs]
            apart = [(x, y) for x, y in bare if not self._agree(x, y)]
            if len(apart) != 1:
                return None
            ((mine, theirs),) = apart
            constant = mine in flow and flow.value(mine).term.constant
            if constant is not None and constant is not False and theirs in whole:
                if whole.value(theirs).term.constant is not None:
                    return None
                outer = next(x for (x, _), (y, _) in zip(pairs, bare, strict=True) if y == mine)
                why = f"a constant where {whole.op(theirs).name} ({whole.op(theirs).location}) is expected"
                return Fault(flow.origin(outer), flow.line(flow.origin(outer)), mismatch=Mismatch.WRONG_VALUE, why=why)
        return None

    def _computed(self, name: Name) -> Name:
        """The value, but for shape, order, the region that it comes from, and communication."""
        flow = self.values.flow
        name = self.bare(flow, name)
        while name in flow and flow.op(name).name in COLLECTIVES and flow.sources(name):
            name = self.bare(flow, flow.sources(name)[0])
        return name

    def bare(self, flow: Flow, name: Name) -> Name:
        """The value, but for shape and order, and the region that it comes from."""
        name = flow.origin(name)
        while name in flow and flow.op(name).name in RESHAPES | {"sdy.manual_computation"} and flow.sources(name):
            name = flow.sources(name)[0]
        return name

    def _agree(self, mine: Name, theirs: Name) -> bool:
        """Whether a value is a shard of a logical one."""
        flow, whole = self.values.flow, self.values.logical
        if mine not in flow or theirs not in whole:
            return mine == theirs  # arguments have the first numbers of a module, in order
        term, value = whole.value(theirs).term, flow.value(mine)
        if term.constant is not None or value.term.constant is not None:
            return term is value.term
        match = self.values.shards.match(value)
        return match is not None and match.factor == 1 and match.whole.term is term
