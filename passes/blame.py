"""Which operation is at fault when the meaning of a value is lost.

Going back from a result through lost values (`lost`), the operations whose operands have a meaning, and whose own value
has none, are where something goes wrong. Some things are no fault by themselves and are looked past:

    a partial sum            what is wrong is the collective that follows, or that none does
    a wrong offset           what is wrong is where it was computed, not what it moved
    another operand          what is wrong is the logical operation that was left out before
    an operation without     it was put in by the partitioner and has the line of the value it moves
    a source line
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from hlo_verify.index.expr import Index
from hlo_verify.ir import Location
from hlo_verify.ir import Value as Name
from hlo_verify.ops.values import Value
from hlo_verify.passes.differences import difference
from hlo_verify.passes.lost import NEAREST, Values
from hlo_verify.passes.shards import Match, reads
from hlo_verify.passes.stages import Step

REDUCTIONS = frozenset({"all_reduce", "reduce_scatter"})
"""Collectives that complete a partial value."""

MOVES = frozenset({"reshape", "broadcast_in_dim", "transpose", "convert"})
"""Operations that the partitioner puts in between."""

FAR = 200
"""The most values on the way from one to another that are looked at."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A value at fault, and the source line.

    `partial` is what the value is a part of, `offset` the index that is no start of a shard, `missing` the logical
    operation that was left out before it.
    """

    name: Name
    location: Location
    partial: Match | None = None
    elsewhere: bool = False
    """Whether what is partial was summed, but over other devices."""
    offset: Index | None = None
    missing: Step | None = None


@dataclass(slots=True)
class Blame:
    """Finds faults; each value is looked at once."""

    values: Values
    _faults: dict[Name, Fault] = field(default_factory=dict)

    def fault(self, lost: list[Name]) -> Fault:
        """The fault among lost values, in order, of which the last is a result's."""
        inside = set(lost)
        first = [name for name in lost if inside.isdisjoint(self.values.flow.sources(name))] or lost[:1]
        name = min(first, key=self._rank)
        if name not in self._faults:
            self._faults[name] = self._fault(name, lost)
        return self._faults[name]

    def _fault(self, name: Name, lost: list[Name]) -> Fault:
        offset = self.values.shards.odd_offset(self.values.flow.value(name).term)
        if offset is not None:
            return Fault(name, self.values.flow.line(name), offset=offset)
        partial = self.values.shards.open_sum(self.values.flow.value(name))
        if partial is not None:
            return self._unfinished(name, partial, lost)
        left_out = self._left_out(name)
        missing = left_out[0] if left_out is not None else None
        if left_out is not None:
            instead = self._computed(*left_out)
            if instead is not None:
                before = [at for source in self.values.flow.sources(instead) for at in self.values.lost_before(source)]
                return self.fault(before) if before else Fault(instead, self.values.flow.line(instead))
        if missing is not None and missing.op.location.frames and not self.values.by_hand:
            return Fault(name, missing.op.location, missing=missing)
        location = self.values.flow.line(name)
        while next(self.values.candidates(name, self.values.flow.value(name)), None) is None:
            users = [user for user in lost if name in self.values.flow.sources(user)]
            if not users or self.values.flow.op(users[0]).location.frames not in ((), location.frames):
                break
            name = users[0]  # a piece of what the logical operation of that line computes
        return Fault(name, location, missing=missing)

    def _computed(self, step: Step, name: Name) -> Name | None:
        """The value of the operation that seems left out before a value, where it is there after all."""
        flow = self.values.flow
        if name not in flow:
            return None
        while flow.op(name).name in MOVES and flow.sources(name):
            name = flow.sources(name)[0]
        op = flow.op(name)
        return name if (op.name, op.location) == (step.op.name, step.op.location) else None

    def _left_out(self, name: Name) -> tuple[Step, Name] | None:
        """The logical operation between what a lost value is made from and what its counterpart is made from.

        Also the operand that should have been its.
        """
        values = self.values
        op, value = values.flow.op(name), values.flow.value(name)
        near = [
            (difference(value.term, term, values.notation).size, n, other)
            for n, (other, term) in enumerate(islice(values.counterparts(op, value), NEAREST))
            if other is not None and other.op.name == op.name
        ]
        if not near:
            return None
        other = min(near, key=lambda item: item[:2])[2]
        used = {values.logical.value(operand).term for operand in other.op.operands if operand in values.logical}
        direct = [] if len(used) < len(set(other.op.operands)) else self._arguments(value)
        for mine, theirs in zip(map(values.flow.origin, op.operands), other.op.operands, strict=False):
            if theirs not in values.logical:
                continue
            for match in self._kept(mine) if mine in values.flow else direct:
                found = self.between(match, theirs) if match.whole.term not in used else None
                if found is not None:
                    return found, mine
        return None

    def _arguments(self, value: Value) -> list[Match]:
        """The arguments that a value may be made from directly."""
        read = reads(value.term)
        return [Match(None, a, a.term) for a in self.values.stages.arguments if reads(a.term) <= read]

    def _kept(self, name: Name) -> list[Match]:
        """The logical value that a value is a shard of; where it is a piece of one, the one that it is made from."""

        def is_piece(at: Name) -> bool:
            return not self.values.shards.is_shard(self.values.flow.value(at)) and not self.values.is_lost(at)

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
            if from_argument and reads(term) & reads(flow.value(at).term):
                return flow.step(at)
        return None

    def _rank(self, name: Name) -> tuple[int, int]:
        """Wrong offsets first, then what is computed nowhere else, then what is only somewhere else."""
        value = self.values.flow.value(name)
        if self.values.shards.odd_offset(value.term) is not None:
            return 0, self.values.flow.order(name)
        return 1 if self.values.shards.match(value) or not self.values.stages.known(
            value
        ) else 2, self.values.flow.order(name)

    def _unfinished(self, name: Name, partial: Match, lost: list[Name]) -> Fault:
        """A partial sum: the collective that should have completed it, or the sum where there is none."""
        at, still = name, partial
        users = [user for user in lost if at in self.values.flow.sources(user)]
        while users:
            user = users[0]
            if self.values.flow.op(user).name in REDUCTIONS:
                still_open = self.values.shards.open_sum(self.values.flow.value(user))
                if still_open is None and self.values.shards.match(self.values.flow.value(user)) is None:
                    return Fault(user, self.values.flow.line(user), still, elsewhere=True)
                return Fault(user, self.values.flow.line(user), still_open)
            more = self.values.shards.open_sum(self.values.flow.value(user))
            if more is None:
                return Fault(name, self._call(name, user), partial)
            at, still = user, more
            users = [user for user in lost if at in self.values.flow.sources(user)]
        return Fault(at, self.values.flow.line(at), still)

    def _call(self, name: Name, user: Name) -> Location:
        """Where a value that is never completed is computed.

        In a program that its author wrote for each device, the collective belongs into the function that uses the
        value: the line is the one there. XLA's collectives have the line of the sum that they complete.
        """
        location = self.values.flow.line(name)
        if not self.values.by_hand:
            return location
        frames, others = location.frames, self.values.flow.line(user).frames
        common = 0
        while common < min(len(frames), len(others)) - 1 and frames[-1 - common] == others[-1 - common]:
            common += 1
        return Location(location.name, frames[len(frames) - 1 - common :]) if frames else location
