"""Where the author of a program for each device went wrong, given the operation at which a meaning is lost.

Such a program computes things on its way that are no shard of anything, and its collectives make them one: so what
is lost first is often right, and what should have given it a meaning is not. The line is the innermost one that the
logical module has not run too: what both call is right in one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hlo_verify.diagnostics import Mismatch
from hlo_verify.passes.diagnose.fault import Fault
from hlo_verify.passes.diagnose.joined_late import joined_late
from hlo_verify.passes.diagnose.lockstep import Alike
from hlo_verify.passes.diagnose.lost_values import Values
from hlo_verify.passes.diagnose.term_contents import is_computed
from hlo_verify.passes.diagnose.wrong_offsets import Offsets
from hlo_verify.program.ir import Location, Name, Op
from hlo_verify.program.op_families import COLLECTIVES, LINEAR, REDUCTIONS, RESHAPES, SCALES, SLICES

DEEP = 12
"""How many operations back two values are compared."""


@dataclass(slots=True)
class ByHand:
    """Aims faults in a program that was written for each device."""

    values: Values
    offsets: Offsets = field(init=False)
    alike: Alike = field(init=False)
    _shared: set[tuple[str, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.offsets = Offsets(self.values)
        self.alike = Alike(self.values)
        ops = (step.op for step in self.values.stages.logical)
        self._shared = {frame for op in ops for frame in op.location.frames}
        for step in self.values.stages.partitioned:  # what calls the program is no part of it
            if step.op.name == "sdy.manual_computation":
                self._shared.update(step.op.location.frames)

    def aim(self, fault: Fault, lost: list[Name], logical: Name) -> Fault:
        """The fault to report, for one found among lost values; `logical` is what the last of them should be.

        Each rule knows one mistake, and says where it rather is. Several may know something of one fault: a wrong
        offset also makes what is looked up like no logical value. So they are asked in this order, from a mistake that
        is told by itself to what may have many causes, and the first that knows one decides:

            exchanged           the right operands, in another order
            miscounted, chosen  an offset or a choice that the device computes by its number
            other scale         all is right in the end, but for a factor
            summed after        something complete is added to a part, which is then summed over devices
            joined late         parts are made something of that is not linear, and devices take the mean of that
            scattered           a part that is completed later lies elsewhere then
            left unreduced      of two addends one is summed over devices, and the other is not
            other constant      a value with a meaning is multiplied by a wrong constant
            unexplained         like no logical value, and the next collective does not make it one
            moved               only its shape is other than that of what a collective moved
            constant instead    a constant where the logical module computes something
            other offset        an index that is some shards off; else the fault as it was found
        """
        found = self.alike.exchanged(fault, lost, logical)
        for rule in (
            self.offsets.miscounted,
            self.offsets.chosen,
            self._other_scale,
            self._summed_after,
            self._joined_late,
            self._scattered,
            self._left_unreduced,
            self._other_constant,
            self._unexplained,
            self._moved,
        ):
            found = found or rule(fault, lost)
        found = found or self.alike.constant_instead(lost, logical) or self.offsets.other_offset(fault, lost)
        return self._at_own_line(self._inside(found))

    # Rules: each says of a fault where it rather is

    def _other_scale(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """Only a factor is lost in the end, and another than first: the last constant that scales is wrong.

        The mean over a shard is off by the number of shards, and right if what follows makes up for that.
        """
        factor, first = self._factor(lost[-1]), self._factor(fault.name)
        if factor in (None, 1) or factor == first:
            return None
        for name in reversed(lost):
            if self._factor(name) != factor:
                return None
            op = self.values.flow.op(name)
            if op.name in SCALES and any(self._is_constant(operand) for operand in op.operands):
                return Fault(name, self.values.flow.line(name), mismatch=Mismatch.WRONG_FACTOR)
        return None

    def _scattered(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """A sum that is completed later, and lies elsewhere then: it was scattered in another order."""
        flow = self.values.flow
        if fault.partial is None or flow.op(fault.name).name != "reduce_scatter":
            return None
        for name in lost:
            value = flow.value(name)
            later = name != fault.name and flow.op(name).name in REDUCTIONS
            if later and any(whole.term.skey == value.term.skey for _, whole in self.values.shards.alike(value)):
                return replace(fault, mismatch=Mismatch.WRONG_PLACE, why=ORDER)
        return None

    def _summed_after(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """A partial value that something complete is added to before the collective: that is summed once too often."""
        flow = self.values.flow
        if fault.partial is None or flow.op(fault.name).name in REDUCTIONS:
            return None
        at, mixed = fault.name, False
        while True:
            user = next((user for user in lost if at in flow.sources(user)), None)
            if user is None:
                return None
            op = flow.op(user)
            if op.name in REDUCTIONS:
                return Fault(user, flow.line(user), mismatch=Mismatch.REDUCED_TWICE, why=TWICE) if mixed else None
            if op.name not in LINEAR:
                return None
            mixed = mixed or any(map(self._is_complete, op.operands))
            at = user

    def _joined_late(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """A mean over devices of what is no mean of a part."""
        return joined_late(self.values, fault, lost)

    def _left_unreduced(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """Of a sum that devices are to agree on, an addend that was reduced and one that was not, which is wrong."""
        flow = self.values.flow
        at = self.alike.bare(flow, lost[-1])
        for _ in range(DEEP):
            if at not in flow or flow.op(at).name not in LINEAR | SCALES:
                return None
            own = [x for x in map(flow.origin, flow.op(at).operands) if x in flow and not self._is_constant(x)]
            open_ = [x for x in own if self.offsets.depends(x)]
            if len(open_) != 1:
                return None
            at = open_[0]
            if len(own) == 2:
                other = self.alike.bare(flow, next(x for x in own if x != at))
                if flow.op(other).name == "all_reduce":
                    return Fault(at, flow.line(at), mismatch=Mismatch.NEVER_REDUCED, why=UNREDUCED)
        return None

    def _other_constant(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """A factor is wrong where a value with a meaning is multiplied by a constant: where that was computed."""
        flow = self.values.flow
        op = flow.op(fault.name)
        if op.name not in SCALES or self._factor(fault.name) in (None, 1):
            return None
        constants = [name for name in map(flow.origin, op.operands) if self._is_constant(name)]
        if len(constants) != 1 or len(op.operands) != 2:
            return None
        line = flow.line(constants[0])
        return replace(fault, location=line) if line.frames else None

    def _unexplained(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """What is like no logical value may be on its way to be one: the first collective, if it does not make it one.

        So is a partial value that is gathered or sent.
        """
        flow = self.values.flow
        if fault.offset is not None or fault.missing is not None or flow.op(fault.name).name in COLLECTIVES:
            return None
        if fault.partial is None and flow.op(fault.name).name in ("reduce", "dot_general"):
            return None  # a right one would be a part of a sum
        if fault.partial is None and any(map(self._is_wrong_sum, self.values.lost_before(fault.name))):
            return None
        term = flow.value(fault.name).term
        explained = not is_computed(term) or next(self.values.candidates(fault.name, flow.value(fault.name)), None)
        if fault.partial is None and explained:
            return None
        after, gathered = {fault.name}, False
        for name in lost:
            if after.isdisjoint(flow.sources(name)):
                continue
            after.add(name)
            op = flow.op(name)
            if op.name in COLLECTIVES and op.regions == () and fault.partial is not None:
                return replace(fault, name=name, location=flow.line(name))
            if fault.partial is not None and op.name not in RESHAPES:
                return None
            gathered |= op.name == "all_gather"  # that alone puts nothing in a wrong place
            if op.name in COLLECTIVES and op.name != "all_gather":
                return Fault(name, flow.line(name), mismatch=_mismatch(op))
            if gathered and op.name in SLICES:
                return Fault(name, flow.line(name), mismatch=Mismatch.WRONG_PLACE)
        return None

    def _is_wrong_sum(self, name: Name) -> bool:
        """Whether a value is summed up (or a maximum taken) to no part of a logical one, as a right sum is."""
        op = self.values.flow.op(name)
        is_sum = op.name == "dot_general" or (op.name == "reduce" and len(op.results) == 1)
        return is_sum and self.values.shards.open_sum(self.values.flow.value(name)) is None

    def _moved(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """Only the shape is other than that of what a collective moved: it moved it elsewhere."""
        flow = self.values.flow
        if flow.op(fault.name).name not in RESHAPES or fault.partial is not None:
            return None
        at = fault.name
        while flow.op(at).name in RESHAPES and flow.sources(at):
            at = flow.sources(at)[0]
        op = flow.op(at)
        if op.name in COLLECTIVES - REDUCTIONS:
            return replace(fault, location=flow.line(at), mismatch=_mismatch(op))
        return None

    # Lines

    def _inside(self, fault: Fault) -> Fault:
        """A result of the whole program is at fault: where it was computed."""
        flow, at = self.values.flow, fault.name
        while flow.op(at).name == "sdy.manual_computation" and flow.sources(at):
            at = flow.sources(at)[0]
        return fault if at == fault.name else replace(fault, location=flow.line(at))

    def _at_own_line(self, fault: Fault) -> Fault:
        """The innermost frame that the logical module does not run too, where there is one."""
        frames = fault.location.frames
        own = [n for n, frame in enumerate(frames) if frame not in self._shared]
        if not own or own[0] == 0:
            return fault
        return replace(fault, location=Location(fault.location.name, frames[own[0] :]))

    # Values

    def _factor(self, name: Name) -> object:
        match = self.values.shards.match(self.values.flow.value(name)) if name in self.values.flow else None
        return None if match is None else match.factor

    def _is_constant(self, name: Name) -> bool:
        flow = self.values.flow
        name = flow.origin(name)
        return name in flow and flow.value(name).term.constant is not None

    def _is_complete(self, name: Name) -> bool:
        flow = self.values.flow
        name = flow.origin(name)
        if name not in flow or self._is_constant(name):
            return False
        return not self.values.is_lost(name) or not self.offsets.depends(name)


TWICE = "what is added to a part before it is summed over devices is summed too"

ORDER = "the sum is completed later, and its elements are on other devices then: it is scattered in another order"

UNREDUCED = "it is not summed over devices, and what it is added to is"


def _mismatch(op: Op) -> Mismatch:
    """What is wrong with a collective that gives a value no meaning."""
    if op.name == "collective_permute":
        return Mismatch.WRONG_DEVICES
    return Mismatch.REDUCED_TWICE if op.name in REDUCTIONS else Mismatch.WRONG_PLACE
