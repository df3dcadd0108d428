"""Means of what is no mean: parts of a value that devices join after an operation that is not linear.

The mean over devices of `total / count` is not the mean over all where they count differently, that of squares never.
Nothing is left unreduced there, the reduction comes too late.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from hlo_verify.diagnostics import Mismatch
from hlo_verify.passes.diagnose.dataflow import Flow
from hlo_verify.passes.diagnose.fault import Fault
from hlo_verify.program.ir import Name
from hlo_verify.program.op_families import REDUCTIONS, RESHAPES, SCALES
from hlo_verify.program.operations import ROWS


def joined_late(flow: Flow, fault: Fault, lost: list[Name]) -> Fault | None:
    """The same fault, of a part of a sum, where devices take the mean of what was made of it element by element."""
    if fault.partial is None or fault.elsewhere or flow.op(fault.name).name in REDUCTIONS:
        return None
    devices = prod(digit.radix for digit in fault.partial.summed)
    made = {fault.name}
    for name in lost:
        if made.isdisjoint(flow.sources(name)):
            continue
        op = flow.op(name)
        if op.name in REDUCTIONS and [inner.name for inner in op.regions[0].ops] == ["add"]:
            if not _is_mean(flow, name, devices, lost):
                return None
            why = f"the mean over devices at {flow.line(name)} is of what was made of parts by an operation that is not"
            return replace(fault, mismatch=Mismatch.JOINED_LATE, why=f"{why} linear: reduce the parts before it")
        if op.name in RESHAPES or ROWS[op.name].notation == "elementwise":
            made.add(name)
    return None


def _is_mean(flow: Flow, name: Name, devices: int, lost: list[Name]) -> bool:
    """Whether a sum over devices is divided by how many they are."""
    for user in lost:
        op = flow.op(user)
        if name not in flow.sources(user) or op.name not in SCALES:
            continue
        numbers = (flow.value(at).term.constant for at in map(flow.origin, op.operands) if at in flow)
        by = next((number for number in numbers if number is not None), None)
        if by is not None and (by == devices if op.name == "divide" else by * devices == 1):
            return True
    return False
