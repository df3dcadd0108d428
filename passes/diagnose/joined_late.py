"""Means of what is no mean: parts of a value that devices join after an operation that is not linear.

The mean over devices of `total / count` is not the mean over all where they count differently, that of squares never.
Nothing is left unreduced there, the reduction comes too late.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hlo_verify.diagnostics import Mismatch
from hlo_verify.passes.diagnose.fault import Fault
from hlo_verify.passes.diagnose.lost_values import Values
from hlo_verify.program.ir import Name, Op
from hlo_verify.program.op_families import COLLECTIVES, CONTROL, REDUCTIONS, SCALES


def joined_late(values: Values, fault: Fault, lost: list[Name]) -> Fault | None:
    """The same fault, of a part of a sum, where devices take the mean of what was made of it and of other such parts.

    What is made of a part and of a shard that the device has for itself is something else on each device, and of such
    things no mean over devices is the value that was meant.
    """
    flow, device = values.flow, values.stages.device
    if fault.partial is None or fault.elsewhere or flow.op(fault.name).name in REDUCTIONS:
        return None
    numbers = np.arange(device.size)
    own = np.zeros_like(numbers)
    for digit in fault.partial.summed:
        own += numbers // digit.low % digit.radix * digit.low
    made = {fault.name}
    for name in lost:
        sources = flow.sources(name)
        if made.isdisjoint(sources):
            continue
        op = flow.op(name)
        if op.name in REDUCTIONS:
            if not _joins(op, numbers - own) or not _is_mean(values, name, lost):
                return None
            why = f"the mean over devices at {flow.line(name)} is of what was made of parts by an operation that is not"
            return replace(fault, mismatch=Mismatch.JOINED_LATE, why=f"{why} linear: reduce the parts before it")
        if op.name not in COLLECTIVES | CONTROL and not any(_is_split(values, at) for at in op.operands):
            made.add(name)
    return None


def _is_split(values: Values, name: Name) -> bool:
    """Whether a value is an argument, or a shard that is another one on each device."""
    name = values.flow.origin(name)
    if name not in values.flow:
        return True
    value = values.flow.value(name)
    return values.stages.device in value.term.free and values.shards.is_shard(value)


def _joins(op: Op, together: npt.NDArray[np.int64]) -> bool:
    """Whether a sum is over the groups of devices that have equal numbers."""
    groups = op.attributes.get("replica_groups")
    if [inner.name for inner in op.regions[0].ops] != ["add"] or groups is None:
        return False
    wanted = {frozenset(np.flatnonzero(together == number).tolist()) for number in together}
    return {frozenset(row) - {-1} for row in np.asarray(groups).tolist()} == wanted


def _is_mean(values: Values, name: Name, lost: list[Name]) -> bool:
    """Whether a sum over devices is divided by how many they are."""
    flow = values.flow
    devices = np.asarray(flow.op(name).attributes["replica_groups"]).shape[1]
    for user in lost:
        op = flow.op(user)
        if name not in flow.sources(user) or op.name not in SCALES:
            continue
        numbers = (flow.value(at).term.constant for at in map(flow.origin, op.operands) if at in flow)
        by = next((number for number in numbers if number is not None), None)
        if by is not None and (by == devices if op.name == "divide" else by * devices == 1):
            return True
    return False
