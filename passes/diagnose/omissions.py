"""Which logical operation was left out before a value.

A lost value and the logical one that it is most likely meant to be (its counterpart) are made from other things; on
the way from what the lost one is made from to what the counterpart is made from lies what was left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from hlo_verify.ops.values import Value
from hlo_verify.passes.diagnose.differences import difference
from hlo_verify.passes.diagnose.fault import moved
from hlo_verify.passes.diagnose.lost_values import NEAREST, Values
from hlo_verify.passes.diagnose.shard_match import Match
from hlo_verify.passes.diagnose.term_contents import tensors
from hlo_verify.passes.prove.stages import Step
from hlo_verify.program.ir import Location, Name
from hlo_verify.terms.term import Poly

DEEP = 8
"""How many operations back the operands of two of one origin are compared."""

FAR = 200
"""The most values on the way from one to another that are looked at."""


@dataclass(slots=True)
class Omissions:
    """Finds logical operations that the partitioned module leaves out."""

    values: Values
    _by_origin: dict[tuple[str, Location], list[Value]] = field(default_factory=dict)
    _lines: set[tuple[tuple[str, int], ...]] = field(default_factory=set)

    def left_out(self, name: Name) -> tuple[Step, Name] | None:
        """The logical operation between what a lost value is made from and what its counterpart is made from.

        Also the operand that should have been its.
        """
        values = self.values
        op, value = values.flow.op(name), values.flow.value(name)
        other = self.counterpart(name)
        if other is None:
            return None
        used = {values.logical.value(operand).term for operand in other.op.operands if operand in values.logical}
        direct = [] if len(used) < len(set(other.op.operands)) else self._arguments(value)
        for mine, theirs in zip(map(values.flow.origin, op.operands), other.op.operands, strict=False):
            if mine in values.flow:
                found = self._parted(mine, theirs, used, DEEP)
                if found is not None:
                    return found
            elif theirs in values.logical:
                for match in direct:
                    step = self.between(match, theirs) if match.whole.term not in used else None
                    if step is not None:
                        return step, mine
        return None

    def counterpart(self, name: Name) -> Step | None:
        """The logical operation of the same kind and origin that a lost value is most likely meant to be.

        Its value is not computed by another operation; its operands agree, and its value nearly does.
        """
        values = self.values
        op, value = values.flow.op(name), values.flow.value(name)
        operands = {match.whole.term for mine in values.flow.sources(name) for match in self._kept(mine)}
        near = []
        for n, (other, term) in enumerate(islice(values.counterparts(op, value), NEAREST)):
            if other is not None and other.op.name == op.name:
                theirs = {values.logical.value(operand).term for operand in values.logical.inputs(other)}
                said = difference(value.term, term, values.notation)
                near.append((self._is_kept(other), -len(operands & theirs), said.size, n, other))
        return min(near, key=lambda item: item[:4])[4] if near else None

    def _is_kept(self, step: Step) -> bool:
        """Whether an operation of the same kind and origin computes what a logical operation does."""
        key = step.op.name, step.op.location
        if not self._by_origin:
            for mine in self.values.stages.partitioned:
                self._by_origin.setdefault((mine.op.name, mine.op.location), []).extend(mine.values)
        matches = (self.values.shards.match(value) for value in self._by_origin.get(key, []))
        return any(match is not None and match.whole.term is step.values[0].term for match in matches)

    def _parted(self, mine: Name, theirs: Name, used: set[Poly], depth: int) -> tuple[Step, Name] | None:
        """Where a value parts from the logical one that it should be a shard of: what is left out before it.

        Where both are computed by operations of one origin, their operands may part already.
        """
        values = self.values
        if theirs not in values.logical or mine not in values.flow or values.is_lost(mine):
            return None
        wanted = values.logical.value(theirs).term
        kept = self._kept(mine)
        if any(match.whole.term is wanted or match.whole.term in used for match in kept):
            return None
        origins = self._of_one_origin(mine, theirs) if depth else None
        if origins is not None:
            one, other = values.flow.op(origins[0]), values.logical.op(origins[1])
            pairs = zip(map(values.flow.origin, one.operands), other.operands, strict=False)
            inputs = {
                values.logical.value(name).term for name in values.logical.inputs(values.logical.step(origins[1]))
            }
            parted = (self._parted(x, y, inputs, depth - 1) for x, y in pairs)
            earlier = next((found for found in parted if found is not None), None)
            if earlier is not None:
                return earlier
        steps = (self.between(match, theirs) for match in kept)
        return next(((step, mine) for step in steps if step is not None), None)

    def _of_one_origin(self, mine: Name, theirs: Name) -> tuple[Name, Name] | None:
        """The operations that compute two values, but for their shape and order, if they are of one origin."""
        values = self.values
        for a in moved(values.flow, mine):
            for b in moved(values.logical, theirs):
                one, other = values.flow.op(a), values.logical.op(b)
                if (one.name, one.location) == (other.name, other.location):
                    return a, b
        return None

    def _arguments(self, value: Value) -> list[Match]:
        """The arguments that a value may be made from directly."""
        return [Match(None, a, a.term) for a in self.values.arguments_in(value)]

    def _kept(self, name: Name) -> list[Match]:
        """The logical value that a value is a shard of; where it is a piece of one, the one that it is made from."""

        def is_piece(at: Name) -> bool:
            value = self.values.flow.value(at)
            whole = self.values.shards.is_shard(value) or value.term.uid in self.values.stages.cuts
            return not whole and not self.values.is_lost(at)

        for at in islice(self.values.flow.back(name, is_piece), FAR):
            match = self.values.shards.match(self.values.flow.value(at))
            if match is not None and match.factor == 1 and match.term.constant is None:
                return [match]
        return []

    def between(self, match: Match, theirs: Name) -> Step | None:
        """The first logical operation on the way from the logical value that was matched to the one called `theirs`."""
        flow, term = self.values.logical, match.whole.term

        def differs(at: Name) -> bool:
            return flow.value(at).term is not term

        for at in islice(flow.back(theirs, differs), FAR):
            if not differs(at):
                continue
            if any(not differs(source) for source in flow.sources(at)):
                return flow.step(at)
            from_argument = match.step is None and any(operand not in flow for operand in flow.op(at).operands)
            if from_argument and tensors(term) & tensors(flow.value(at).term):
                return flow.step(at)
        return None

    def computed(self, step: Step, name: Name) -> Name | None:
        """The value of the operation that seems left out before a value, where it is there after all."""
        flow = self.values.flow
        bare = moved(flow, name) if name in flow else []
        there = (at for at in bare if (flow.op(at).name, flow.op(at).location) == (step.op.name, step.op.location))
        return next(there, None)

    def has_line(self, step: Step) -> bool:
        """Whether a logical operation has a source line that the partitioned module has too."""
        if not self._lines:
            self._lines.update(mine.op.location.frames[:1] for mine in self.values.stages.partitioned)
        frames = step.op.location.frames
        return bool(frames) and (not self.values.by_hand or frames[:1] in self._lines)
