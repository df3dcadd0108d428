"""What is wrong with a loop as a whole: how often it runs, and what its iterations hand on."""

from __future__ import annotations

from dataclasses import dataclass

from hlo_verify.diagnostics import Mismatch
from hlo_verify.passes.diagnose.dataflow import Flow
from hlo_verify.passes.diagnose.fault import Fault
from hlo_verify.passes.diagnose.lost_values import Values
from hlo_verify.passes.diagnose.omissions import Omissions
from hlo_verify.passes.prove.stages import Step
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.program.ir import Name, Op


@dataclass(slots=True)
class LoopFaults:
    """Compares loops of the partitioned module with those of the logical one of the same origin."""

    values: Values
    omissions: Omissions

    def other_count(self, name: Name) -> Fault | None:
        """A loop that takes more or fewer iterations than those of its origin in the logical module."""
        flow, logical = self.values.flow, self.values.logical
        op = flow.op(name)
        if op.name != "while":
            return None
        mine = _counts(flow, flow.step(name))
        theirs = next((_counts(logical, loop) for loop in self.values.stages.counterparts(op)), [])
        apart = [pair for pair in zip(mine, theirs, strict=False) if pair[0] != pair[1]]
        if not apart or len(mine) != len(theirs):
            return None
        why = f"{apart[0][0]} iterations where {apart[0][1]} are expected"
        return Fault(name, flow.line(name), mismatch=Mismatch.WRONG_VALUE, why=why)

    def handed_on(self, name: Name) -> Fault | None:
        """A loop in whose iterations nothing is lost: a value that they hand on in place of another."""
        flow, logical = self.values.flow, self.values.logical
        mine = flow.op(name)
        if mine.name != "while":
            return None
        for loop in self.values.stages.counterparts(mine):
            pairs = zip(mine.regions[1].results, loop.op.regions[1].results, strict=False)
            for own, theirs in ((flow.origin(own), logical.origin(theirs)) for own, theirs in pairs):
                if own not in flow or theirs not in logical or self.values.is_lost(own):
                    continue
                match = self.values.shards.match(flow.value(own))
                if match is None or match.factor != 1 or match.whole.term is logical.value(theirs).term:
                    continue
                missing = self.omissions.between(match, theirs)
                if missing is not None and self.omissions.has_line(missing):
                    return Fault(own, missing.op.location, missing=missing)
                return Fault(own, flow.line(own), meant=logical.step(theirs), mismatch=Mismatch.WRONG_VALUE)
        return None

    def maker(self, step: Step, k: int) -> Op:
        """What computes a result of a logical operation: for a loop's, the operation of its body."""
        logical = self.values.logical
        while step.op.name == "while" and k < len(step.op.results):  # else the counterpart is another loop
            value = logical.origin(step.op.regions[1].results[k])
            if value not in logical or value not in logical.step(value).op.results:
                break
            step = logical.step(value)
            k = step.op.results.index(value)
        return step.op


def _counts(flow: Flow, loop: Step) -> list[int]:
    """How far the integers get that a loop counts from one known number to another; one for each iteration."""
    found = []
    for at, value in zip(map(flow.origin, loop.op.operands), loop.values, strict=True):
        start, end = flow.value(at).term.constant if at in flow else None, value.term.constant
        if value.shape == () and value.type.dtype in INTEGER_RANGES and isinstance(start, int) and isinstance(end, int):
            found.append(abs(end - start))
    return found
