"""Collectives of the backward pass against those of the forward pass, and gradients of what is replicated.

The backward pass of a program exchanges what the forward pass asks for: behind an all-gather a reduce-scatter, behind a
sum over devices (whose result is the same on all, and so is its cotangent) nothing, and for what is used on several
devices a sum. `jax.grad` does so by itself; `custom_vjp`, and `shard_map` with `check_vma=False`, need not. What
belongs to which pass is known from the names that JAX gives operations: `jvp(…)`, and `transpose(jvp(…))`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from hlo_verify.diagnostics import Code, Placement, Severity
from hlo_verify.hlo.groups import Groups, kind
from hlo_verify.hlo.module import Instruction
from hlo_verify.hlo.shapes import leaves
from hlo_verify.linter.finding import Finding, at
from hlo_verify.linter.placement.communication import REDUCES
from hlo_verify.linter.placement.devices import Devices
from hlo_verify.linter.placement.elementwise import Place
from hlo_verify.linter.placement.values import Partial, Stage, Tree, Value
from hlo_verify.linter.reducers import reducer_of

MANUAL = "shard_map"
"""In names of the source program: code that each device runs for itself."""
BACKWARD = "transpose("


def is_forward(called: str) -> bool:
    """Whether an operation of this name is differentiated."""
    return "jvp(" in called and BACKWARD not in called


@dataclass
class Gradients:
    """What is seen of both passes: `gathered` and `summed` are collectives of the forward pass, `scattered` the groups
    that the backward pass reduces over, `again` its sums of what is equal already, and `updates` where an addend of a
    gradient is added to what devices hold the same of."""

    devices: Devices
    gathered: dict[tuple[str, Groups], Instruction] = field(default_factory=dict)
    summed: dict[tuple[str, Groups], Instruction] = field(default_factory=dict)
    scattered: set[Groups] = field(default_factory=set)
    again: dict[tuple[str, Groups], Instruction] = field(default_factory=dict)
    updates: list[tuple[Partial, Place]] = field(default_factory=list)
    has_backward: bool = False

    def exchanged(self, i: Instruction, given: Sequence[Tree], among: Groups | None) -> None:
        """Look at a collective."""
        if among is None or MANUAL not in i.op_name or max(map(len, among)) == 1:
            return
        what, where = kind(i), (i.location, among)
        if BACKWARD not in i.op_name:
            if is_forward(i.op_name) and what == "all-gather" and _is_of_floats(i):
                self.gathered.setdefault(where, i)
            elif is_forward(i.op_name) and what == "all-reduce":
                self.summed.setdefault(where, i)
            return
        if what in REDUCES or what == "all-to-all":
            self.scattered.add(among)
        if what == "all-reduce" and reducer_of(i) == "add" and all(self._is_equal(one, among) for one in given):
            self.again.setdefault(where, i)

    def _is_equal(self, value: Tree, among: Groups) -> bool:
        """Whether the devices of each group surely have the same, and it is no part of a mean."""
        if not isinstance(value, Value) or value.sums:
            return False
        if value.number is not None and len(among[0]) * value.number[0] in (0, 1):
            return False
        return self.devices.covers(value.alike, self.devices.in_groups(among))

    def added(self, i: Instruction, given: Sequence[Tree], place: Place) -> None:
        """Look at a sum of two, or a difference, outside of what is differentiated."""
        self.has_backward = self.has_backward or BACKWARD in i.op_name
        if i.opcode not in ("add", "subtract") or "jvp(" in i.op_name or len(given) != 2:
            return
        one, other = given
        if isinstance(one, Value) and isinstance(other, Value):
            for value, addend in ((one, other), (other, one)):
                for partial in addend.partials:
                    if self._is_of_replicated(value, partial):
                        self.updates.append((partial, place))

    def _is_of_replicated(self, value: Value, one: Partial) -> bool:
        """Whether an addend is of a gradient, and a value the same on devices that have other addends."""
        is_gradient = BACKWARD in one.called and MANUAL in one.called
        if not is_gradient or one.stage is not Stage.LINEAR or one.doubted or one.wrong or not value.some:
            return False
        if value.hidden or any(other.label == one.label for other in value.partials):
            return False
        first: dict[int, int] = {}
        alike, label = self.devices.table(value.alike), self.devices.table(one.label)
        return any(label[first.setdefault(mark, device)] != label[device] for device, mark in enumerate(alike))

    def findings(self, completed: set[tuple[str, int]], named: dict[str, Instruction]) -> Iterator[Finding]:
        """What is said: warnings all. `completed` are the addends that are added up later."""
        for where, i in self.again.items():
            forward = self.summed.get(where)
            if forward is not None:
                times = len(where[1][0])
                message = (
                    f"{i} is the backward of the sum {forward}, and adds up cotangents that are the same on all "
                    f"{times} devices: gradients come out {times} times too large, unless a factor makes up for it"
                )
                yield _warning(i, Placement.BACKWARD_NOT_DUAL, message, forward.name)
        for (_, among), i in self.gathered.items():
            if self.has_backward and not any(_joins(groups, among) for groups in self.scattered):
                message = (
                    f"{i} gathers what is differentiated, and the backward pass adds up nothing over its devices: each "
                    "keeps its own addend of the gradient"
                )
                yield _warning(i, Placement.BACKWARD_NOT_DUAL, message)
        for one, place in self.updates:
            origin = named.get(one.origin)
            if (one.origin, one.label) not in completed and origin is not None:
                table = self.devices.table(one.label)
                message = (
                    f"{one.origin} gives each of devices 0 and {table.index(1)} its own addend of a gradient, and "
                    f"{place.name} adds it to what both hold the same of"
                )
                yield _warning(origin, Placement.UNREDUCED_GRADIENT, message, place.name)


def _warning(i: Instruction, code: Code, message: str, *related: str) -> Finding:
    return replace(at(i, code, message, *related), severity=Severity.WARNING)


def _is_of_floats(i: Instruction) -> bool:
    return any(shape.dtype.startswith(("f", "bf")) for _, shape in leaves(i.shape))


def _joins(groups: Groups, among: Groups) -> bool:
    """Whether some groups bring together the devices of each of other groups."""
    return all(any(set(one) <= set(group) for group in groups) for one in among)
