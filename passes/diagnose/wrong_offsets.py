"""Where the author of a program for each device chose the wrong elements: offsets and masks that a device computes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hlo_verify.diagnostics import Mismatch
from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.passes.diagnose.fault import Fault
from hlo_verify.passes.diagnose.lost_values import Values
from hlo_verify.passes.diagnose.term_contents import indices, is_computed
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.program.ir import Location, Name
from hlo_verify.program.op_families import COLLECTIVES, LOOKUPS, RESHAPES, SCALES
from hlo_verify.terms import algebra

NUMBERS = "devices have different numbers here"


@dataclass(slots=True)
class Offsets:
    """Rules for faults at what looks elements up, or masks them; each says where the mistake rather is."""

    values: Values

    def chosen(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """A device chooses among values by its number, or elements are chosen by a mask that is computed."""
        flow = self.values.flow
        op = flow.op(fault.name)
        if op.name != "select" or fault.partial is not None or fault.offset is not None:
            return None
        by = flow.origin(op.operands[0])
        if by not in flow or not self.depends(by):
            return None
        if not is_computed(flow.value(fault.name).term):
            users = self._users(fault.name)
            scales = bool(users) and all(flow.op(user).name in SCALES for user in users)
            return replace(fault, mismatch=Mismatch.WRONG_FACTOR if scales else Mismatch.DIFFERS, why=NUMBERS)
        if is_computed(flow.value(by).term):
            return replace(fault, mismatch=Mismatch.WRONG_PLACE)
        free = {v for e in indices(flow.value(by).term) for atom, _ in e.items for v in atom.free}
        explained = next(self.values.candidates(fault.name, flow.value(fault.name)), None) is not None
        return (
            replace(fault, mismatch=Mismatch.WRONG_VALUE) if explained and free == {self.values.stages.device} else None
        )

    def miscounted(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """Elements are looked up or masked by an offset that the device computes, and at which no shard starts."""
        flow = self.values.flow
        if fault.partial is not None or flow.op(fault.name).name not in LOOKUPS | {"select"}:
            return None

        def is_number(at: Name) -> bool:
            return flow.value(at).type.dtype in INTEGER_RANGES

        def is_odd(at: Name) -> bool:
            return flow.value(at).type.dtype != "i1" and self.depends(at) and not self._is_start(at)

        used = {at for at in flow.back(fault.name, lambda at: at == fault.name or is_number(at)) if is_number(at)}
        numbers = [at for at in used if flow.value(at).shape == ()]
        if any(flow.value(at).term.free - {self.values.stages.device} for at in numbers):
            return None  # it takes a turn of a loop too
        users = {fault.name, *used}.difference(numbers)
        offsets = [at for at in numbers if any(at in flow.sources(user) for user in users)]
        first = min(filter(is_odd, offsets), key=flow.order, default=None)
        if first is None:
            return None
        return replace(fault, location=flow.line(first), offset=self._index(first))

    def other_offset(self, fault: Fault, lost: list[Name]) -> Fault:
        """Where an index comes in that is some shards off; else the line that uses what was looked up."""
        flow = self.values.flow
        if flow.op(fault.name).name not in LOOKUPS or fault.partial is not None:
            return fault
        inside = [at for at in flow.back(fault.name) if flow.value(at).type.dtype in INTEGER_RANGES]
        odd = [at for at in inside if _is_shards_off(self.values, at)]
        if odd:
            return replace(fault, location=flow.line(min(odd, key=flow.order)), mismatch=Mismatch.WRONG_PLACE)
        user = next((user for user in lost if fault.name in flow.sources(user)), None)
        if user is None or flow.op(user).name not in COLLECTIVES:
            return fault
        return replace(fault, location=_common(flow.line(fault.name), flow.line(user)), mismatch=Mismatch.WRONG_PLACE)

    def _users(self, name: Name) -> list[Name]:
        """The values that are computed from one, but for other shapes and orders of it."""
        flow = self.values.flow
        found: list[Name] = []
        bare = {name}
        for at in (result for step in self.values.stages.partitioned for result in step.op.results):
            if at in flow and not bare.isdisjoint(flow.sources(at)):
                (bare.add if flow.op(at).name in RESHAPES else found.append)(at)
        return found

    def depends(self, name: Name) -> bool:
        """Whether devices have different values."""
        device = self.values.stages.device
        return any(device in atom.free for e in indices(self.values.flow.value(name).term) for atom, _ in e.items)

    def _index(self, name: Name) -> Index:
        value = self.values.flow.value(name)
        return algebra.as_index(value.term, *INTEGER_RANGES[value.type.dtype])

    def _is_start(self, name: Name) -> bool:
        """Whether a scalar is where each device's shard starts, or as far before."""
        index = self._index(name)
        return any(self.values.shards.is_start(each) for each in (index, expr.scale(index, -1)))


def _common(inner: Location, outer: Location) -> Location:
    """Where the function that `outer` is in calls the one that `inner` is in."""
    frames, others = inner.frames, outer.frames
    shared = 0
    while shared < min(len(frames), len(others)) - 1 and frames[-1 - shared] == others[-1 - shared]:
        shared += 1
    return Location(inner.name, frames[len(frames) - 1 - shared :]) if frames else inner


def _is_shards_off(values: Values, name: Name) -> bool:
    """Whether an index starts some whole shards before or after the device's own."""
    device = values.stages.device
    term = values.flow.value(name).term
    by = next((c for mono, c in term.items if not mono), 0)
    sizes = [abs(c) for e in indices(term) for atom, c in e.items if device in atom.free]
    return bool(by) and any(size > 1 and by % size == 0 for size in sizes)
