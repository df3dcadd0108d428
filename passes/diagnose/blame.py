"""Which operation is at fault when the meaning of a value is lost.

Going back from a result through lost values (`lost_values`), the operations whose operands have a meaning, and whose
own value has none, are where something goes wrong. Some things are no fault by themselves and are looked past:

    a partial sum            what is wrong is the collective that follows, or that none does
    a wrong offset           what is wrong is where it was computed, not what it moved
    another operand          what is wrong is the logical operation that was left out before
    an operation without     it was put in by the partitioner and has the line of the value it moves
    a source line
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from hlo_verify.diagnostics import Mismatch
from hlo_verify.passes.diagnose.fault import Fault
from hlo_verify.passes.diagnose.loop_faults import LoopFaults
from hlo_verify.passes.diagnose.lost_values import Values
from hlo_verify.passes.diagnose.omissions import FAR, Omissions
from hlo_verify.passes.diagnose.shard_match import Match
from hlo_verify.passes.diagnose.wrong_operands import Operands
from hlo_verify.passes.prove.stages import Step
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.program.ir import Location, Name
from hlo_verify.program.op_families import FILLS, PARTS, REDUCTIONS, RESHAPES


@dataclass(slots=True)
class Blame:
    """Finds faults; each value is looked at once."""

    values: Values
    operands: Operands = field(init=False)
    omissions: Omissions = field(init=False)
    loops: LoopFaults = field(init=False)
    _faults: dict[Name, Fault] = field(default_factory=dict)
    _idle: set[Location] | None = None

    def __post_init__(self) -> None:
        self.operands = Operands(self.values)
        self.omissions = Omissions(self.values)
        self.loops = LoopFaults(self.values, self.omissions)

    def fault(self, lost: list[Name]) -> Fault:
        """The fault among lost values, in order, of which the last is a result's."""
        for name in lost:
            found = self.loops.other_count(name)
            if found is not None:
                return found
        vanished = self.vanished(lost)
        if vanished is not None:
            return vanished
        inside = set(lost)
        first = [name for name in lost if inside.isdisjoint(self.values.flow.sources(name))] or lost[:1]
        name = min(first, key=self._rank)
        if name not in self._faults:
            self._faults[name] = self._fault(name, lost)
        return self._faults[name]

    def _fault(self, name: Name, lost: list[Name]) -> Fault:
        """The fault at a lost value whose operands all have a meaning. The first rule that knows one decides:

            1. what a loop hands on     nothing is lost in its iterations, but they hand on another value
            2. a wrong offset           the value lies where no shard begins
            3. a part of a sum          it is right so far: a collective is still to come, or is missing
            4. seems left out           the logical operation before it is there after all: that one is wrong
            5. left out                 no operation computes what the logical one before it does
            6. the operation itself     or an operand of it that is another logical value than was meant

        A rule relies on those before it: a part of a sum, and what lies elsewhere, are made from other operands than
        the logical value too, and would seem to have an operation left out.
        """
        found = self.loops.handed_on(name) or self._displaced(name) or self._partial(name, lost)
        if found is not None:
            return found
        left_out = self.omissions.left_out(name)
        if left_out is None:
            return self._itself(name, lost, None)
        missing = left_out[0]
        there = self.omissions.computed(*left_out)
        if there is not None:
            return self._there(there, missing)
        if any(self.operands.computes(value.term) for value in missing.values):
            return self._itself(name, lost, None)
        if self.omissions.has_line(missing):
            return Fault(name, missing.op.location, missing=missing, meant=self.omissions.counterpart(name))
        return self._itself(name, lost, missing)

    def _displaced(self, name: Name) -> Fault | None:
        """A value that is read at an offset at which no shard begins."""
        offset = self.values.shards.odd_offset(self.values.flow.value(name).term)
        return None if offset is None else Fault(name, self.values.flow.line(name), offset=offset)

    def _partial(self, name: Name, lost: list[Name]) -> Fault | None:
        """A sum over a part of what it is to be over."""
        partial = self.values.shards.open_sum(self.values.flow.value(name))
        return None if partial is None else self._unfinished(name, partial, lost)

    def _there(self, name: Name, meant: Step) -> Fault:
        """What the operation computes that only seems left out; or what is lost before it."""
        before = [at for source in self.values.flow.sources(name) for at in self.values.lost_before(source)]
        return self.fault(before) if before else Fault(name, self.values.flow.line(name), meant=meant)

    def _itself(self, name: Name, lost: list[Name], missing: Step | None) -> Fault:
        """The operation that computes the value. Where that is a piece of what the logical operation of its line
        computes, the last piece."""
        location = self.values.flow.line(name)
        while next(self.values.candidates(name, self.values.flow.value(name)), None) is None:
            users = [user for user in lost if name in self.values.flow.sources(user)]
            if not users or self.values.flow.op(users[0]).location.frames not in ((), location.frames):
                break
            name = users[0]
        masked = self._masked(name, lost)
        if masked is not None:
            name, location = masked, self.values.flow.line(masked)
        return self._operand(Fault(name, location, missing=missing, meant=self.omissions.counterpart(name)))

    def _masked(self, name: Name, lost: list[Name]) -> Name | None:
        """What masks a value that only says where elements are: XLA takes more than it needs, and drops the rest."""
        flow = self.values.flow
        if self.values.by_hand or flow.op(name).name not in PARTS:
            return None
        users = [user for user in lost if name in flow.sources(user)]
        return users[0] if len(users) == 1 and flow.op(users[0]).name == "select" else None

    def vanished(self, lost: list[Name]) -> Fault | None:
        """The first constant among those that a result's value, the last of these, is made from that no logical
        operation of the same kind and origin computes: what it was to be made from is gone.

        A sum of which one summand is gone is no lost value if the rest is something that the logical module computes.
        """
        flow, counterparts = self.values.flow, self.values.stages.counterparts
        inside = set(lost)

        def goes_on(at: Name) -> bool:
            return at in inside or self._is_of_another(at) or not counterparts(flow.op(at))

        before = [at for at in flow.back(lost[-1], goes_on) if at not in inside and self._is_of_another(at)]
        computed = [at for at in before if flow.op(at).name not in RESHAPES | FILLS]
        numbers = [at for at in computed if flow.value(at).term.constant is not None]
        if not numbers:
            return None
        found = min(numbers, key=flow.order)
        counterpart = counterparts(flow.op(found))[0]
        gone = self._gone(found, counterpart)
        op = self.loops.maker(counterpart, flow.result(found))
        line = op.location if flow.op(found).name == "while" else flow.line(found)
        why = f"a constant where {op.name} ({op.location}) is expected"
        if gone is not None and gone.frames != line.frames:
            line, why = gone, f"{why}: what is computed at {gone} is lost"
        return Fault(found, line, mismatch=Mismatch.WRONG_VALUE, why=why)

    def _gone(self, name: Name, meant: Step) -> Location | None:
        """Where what a constant is meant to be made from is lost; None if it is not known to be lost before.

        That is where something of it is computed that nobody uses, or would be used if it is all of it; else the
        logical operation that nothing computes, though what it is made from is there.
        """
        flow, logical = self.values.flow, self.values.logical

        def varies(at: Name) -> bool:
            return logical.value(at).term.constant is None

        def is_gone(at: Name) -> bool:
            return varies(at) and not self.operands.computes(logical.value(at).term)

        for mine, theirs in zip(map(flow.origin, flow.op(name).operands), meant.op.operands, strict=False):
            theirs = logical.origin(theirs)
            if mine not in flow or theirs not in logical or flow.value(mine).term.constant is None:
                continue
            seen: list[Name] = []
            for at in islice(logical.back(theirs, varies), FAR):
                if varies(at) and logical.op(at).location in self._unused():
                    users = [] if is_gone(at) else [user for user in seen if at in logical.sources(user)]
                    return logical.op(users[0] if users else at).location
                seen.append(at)
            back = filter(is_gone, islice(logical.back(theirs, is_gone), FAR))
            first = (logical.step(at) for at in back if not any(map(is_gone, logical.sources(at))))
            gone = next((step for step in first if self.omissions.has_line(step)), None)
            if gone is not None:
                return gone.op.location
        return None

    def _unused(self) -> set[Location]:
        """Where values are computed that are no constants, and that no operation of the partitioned module uses."""
        if self._idle is None:
            flow, steps = self.values.flow, self.values.stages.partitioned
            ends = [name for step in steps for name in step.op.results[:1] if name in flow]
            used = {source for name in ends for source in flow.sources(name)}
            idle = (name for name in ends if name not in used and flow.value(name).term.constant is None)
            self._idle = {flow.op(name).location for name in idle if flow.op(name).location.frames}
        return self._idle

    def _is_of_another(self, name: Name) -> bool:
        """Whether a value is not lost, but a shard of none of the logical values of the same kind and origin."""
        value, op, k = self.values.flow.value(name), self.values.flow.op(name), self.values.flow.result(name)
        others = self.values.stages.counterparts(op) if op.location.frames or op.name == "while" else []
        if not others or value.type.dtype in INTEGER_RANGES:
            return False
        match = self.values.shards.match(value)
        whole = value.term if value.term.constant is not None or match is None else match.whole.term
        return all(len(other.values) <= k or whole is not other.values[k].term for other in others)

    def _operand(self, fault: Fault) -> Fault:
        """The fault, or the operation that has computed a logical value for another one that its value is made from."""
        values = self.values
        meant = fault.meant
        if meant is None and values.by_hand:
            best = values.nearest(
                values.candidates(fault.name, values.flow.value(fault.name)), values.flow.value(fault.name)
            )
            meant = best[1] if best is not None else None
        if meant is None or fault.missing is not None:
            return fault
        name = self.operands.at_fault(fault.name, meant)
        return fault if name == fault.name else Fault(name, values.flow.line(name), mismatch=Mismatch.WRONG_VALUE)

    def _rank(self, name: Name) -> tuple[int, int]:
        """Wrong offsets first, then what is computed nowhere else, then what is only somewhere else.

        XLA sends edges of shards to neighbours: they lie where no shard begins, and are right as a rule.
        """
        value = self.values.flow.value(name)
        order = self.values.flow.order(name)
        if self.values.shards.odd_offset(value.term) is not None:
            return 0, order
        if self.values.flow.op(name).name == "collective_permute" and not self.values.by_hand:
            return 2, order
        return 1 if self.values.shards.match(value) or not self.values.stages.known(value) else 2, order

    def _unfinished(self, name: Name, partial: Match, lost: list[Name]) -> Fault:
        """A partial sum: the collective that should have completed it, or the sum where there is none."""
        at, still = name, partial
        users = self._users(at, lost)
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
            users = self._users(at, lost)
        return Fault(at, self.values.flow.line(at), still)

    def _users(self, name: Name, lost: list[Name]) -> list[Name]:
        """The lost values that follow from a value, within the region that it is in."""
        flow = self.values.flow
        users = (user for user in lost if name in flow.sources(user))
        return [user for user in users if flow.op(user).name != "sdy.manual_computation"]

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
