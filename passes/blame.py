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

from hlo_verify.diagnostics import Mismatch
from hlo_verify.index.expr import Index
from hlo_verify.ir import Location, Op
from hlo_verify.ir import Value as Name
from hlo_verify.ops.values import Value
from hlo_verify.passes.contents import tensors
from hlo_verify.passes.differences import difference
from hlo_verify.passes.flow import Flow
from hlo_verify.passes.lost import NEAREST, Values
from hlo_verify.passes.operands import Operands
from hlo_verify.passes.shards import Match
from hlo_verify.passes.stages import Step
from hlo_verify.terms.algebra import INTEGER_RANGES
from hlo_verify.terms.term import Poly

REDUCTIONS = frozenset({"all_reduce", "reduce_scatter"})
"""Collectives that complete a partial value."""

MOVES = frozenset({"reshape", "broadcast_in_dim", "transpose", "convert"})
"""Operations that the partitioner puts in between."""

FILLS = frozenset({"constant", "iota", "pad"})
"""Operations that the partitioner makes numbers with."""

DEEP = 8
"""How many operations back the operands of two of one origin are compared."""

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
    meant: Step | None = None
    """The logical operation that the value is most likely meant to be."""
    kind: Mismatch | None = None
    """What is wrong, where the terms alone do not say it; `why` says it in words."""
    why: str = ""


@dataclass(slots=True)
class Blame:
    """Finds faults; each value is looked at once."""

    values: Values
    operands: Operands = field(init=False)
    _faults: dict[Name, Fault] = field(default_factory=dict)
    _by_origin: dict[tuple[str, Location], list[Value]] = field(default_factory=dict)
    _lines: set[tuple[tuple[str, int], ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.operands = Operands(self.values)

    def fault(self, lost: list[Name]) -> Fault:
        """The fault among lost values, in order, of which the last is a result's."""
        for name in lost:
            found = self._other_count(name)
            if found is not None:
                return found
        vanished = self._vanished(lost)
        if vanished is not None:
            return vanished
        inside = set(lost)
        first = [name for name in lost if inside.isdisjoint(self.values.flow.sources(name))] or lost[:1]
        name = min(first, key=self._rank)
        if name not in self._faults:
            self._faults[name] = self._fault(name, lost)
        return self._faults[name]

    def _fault(self, name: Name, lost: list[Name]) -> Fault:
        handed_on = self._handed_on(name)
        if handed_on is not None:
            return handed_on
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
                return (
                    self.fault(before) if before else Fault(instead, self.values.flow.line(instead), meant=left_out[0])
                )
        if missing is not None and any(self.operands.computes(value.term) for value in missing.values):
            missing = None
        if missing is not None and self._has_line(missing):
            return Fault(name, missing.op.location, missing=missing, meant=self._counterpart(name))
        location = self.values.flow.line(name)
        while next(self.values.candidates(name, self.values.flow.value(name)), None) is None:
            users = [user for user in lost if name in self.values.flow.sources(user)]
            if not users or self.values.flow.op(users[0]).location.frames not in ((), location.frames):
                break
            name = users[0]  # a piece of what the logical operation of that line computes
        return self._operand(Fault(name, location, missing=missing, meant=self._counterpart(name)))

    def _other_count(self, name: Name) -> Fault | None:
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
        return Fault(name, flow.line(name), kind=Mismatch.WRONG_VALUE, why=why)

    def _vanished(self, lost: list[Name]) -> Fault | None:
        """The first constant among those that lost values are made from that no logical operation of the same kind and
        origin computes: what it was to be made from is gone.

        A sum of which one summand is gone is no lost value if the rest is something that the logical module computes.
        """
        flow, counterparts = self.values.flow, self.values.stages.counterparts
        inside = set(lost)

        def goes_on(at: Name) -> bool:
            return at in inside or self._is_of_another(at) or not counterparts(flow.op(at))

        before = [at for at in flow.back(lost[-1], goes_on) if at not in inside and self._is_of_another(at)]
        computed = [at for at in before if flow.op(at).name not in MOVES | FILLS]
        numbers = [at for at in computed if flow.value(at).term.constant is not None]
        if not numbers:
            return None
        found = min(numbers, key=flow.order)
        op = self._inside(counterparts(flow.op(found))[0], flow.result(found))
        line = op.location if flow.op(found).name == "while" else flow.line(found)
        why = f"a constant where {op.name} ({op.location}) is expected"
        return Fault(found, line, kind=Mismatch.WRONG_VALUE, why=why)

    def _inside(self, step: Step, k: int) -> Op:
        """What computes a result of a logical operation: for a loop's, the operation of its body."""
        logical = self.values.logical
        while step.op.name == "while" and logical.origin(step.op.regions[1].results[k]) in logical:
            step = logical.step(logical.origin(step.op.regions[1].results[k]))
        return step.op

    def _is_of_another(self, name: Name) -> bool:
        """Whether a value is not lost, but a shard of none of the logical values of the same kind and origin."""
        value, op, k = self.values.flow.value(name), self.values.flow.op(name), self.values.flow.result(name)
        others = self.values.stages.counterparts(op) if op.location.frames or op.name == "while" else []
        if not others or value.type.dtype in INTEGER_RANGES:
            return False
        match = self.values.shards.match(value)
        whole = value.term if value.term.constant is not None or match is None else match.whole.term
        return all(len(other.values) <= k or whole is not other.values[k].term for other in others)

    def _handed_on(self, name: Name) -> Fault | None:
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
                missing = self.between(match, theirs)
                if missing is not None and self._has_line(missing):
                    return Fault(own, missing.op.location, missing=missing)
                return Fault(own, flow.line(own), meant=logical.step(theirs), kind=Mismatch.WRONG_VALUE)
        return None

    def _has_line(self, step: Step) -> bool:
        """Whether a logical operation has a source line that the partitioned module has too."""
        if not self._lines:
            self._lines.update(mine.op.location.frames[:1] for mine in self.values.stages.partitioned)
        frames = step.op.location.frames
        return bool(frames) and (not self.values.by_hand or frames[:1] in self._lines)

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
        return fault if name == fault.name else Fault(name, values.flow.line(name), kind=Mismatch.WRONG_VALUE)

    def _computed(self, step: Step, name: Name) -> Name | None:
        """The value of the operation that seems left out before a value, where it is there after all."""
        flow = self.values.flow
        moved = self._moved(flow, name) if name in flow else []
        there = (at for at in moved if (flow.op(at).name, flow.op(at).location) == (step.op.name, step.op.location))
        return next(there, None)

    def _left_out(self, name: Name) -> tuple[Step, Name] | None:
        """The logical operation between what a lost value is made from and what its counterpart is made from.

        Also the operand that should have been its.
        """
        values = self.values
        op, value = values.flow.op(name), values.flow.value(name)
        other = self._counterpart(name)
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

    def _counterpart(self, name: Name) -> Step | None:
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
        for a in self._moved(values.flow, mine):
            for b in self._moved(values.logical, theirs):
                one, other = values.flow.op(a), values.logical.op(b)
                if (one.name, one.location) == (other.name, other.location):
                    return a, b
        return None

    def _moved(self, flow: Flow, name: Name) -> list[Name]:
        """The value, and those that it is only another shape or order of."""
        found = [name]
        while flow.op(found[-1]).name in MOVES and flow.sources(found[-1]) and len(found) < DEEP:
            found.append(flow.sources(found[-1])[0])
        return found

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


def _counts(flow: Flow, loop: Step) -> list[int]:
    """How far the integers get that a loop counts from one known number to another; one for each iteration."""
    found = []
    for at, value in zip(map(flow.origin, loop.op.operands), loop.values, strict=True):
        start, end = flow.value(at).term.constant if at in flow else None, value.term.constant
        if value.shape == () and value.type.dtype in INTEGER_RANGES and isinstance(start, int) and isinstance(end, int):
            found.append(abs(end - start))
    return found
