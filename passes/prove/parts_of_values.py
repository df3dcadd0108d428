"""Values that devices combine next: what one of them has is a part of what the logical module computes, and no shard.

A compiler splits a sum over devices: each adds up its own elements, and an all_reduce makes the whole of these. The
partial sum is at the same source line as the whole, so that it would be compared with it, case by case and in vain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlo_verify.program.ir import Function, Module, Name, Op, functions, operations
from hlo_verify.program.op_families import REDUCTIONS, RESHAPES


@dataclass(frozen=True, slots=True)
class Parts:
    """The values of both modules that are only combined, as `combined` has them."""

    logical: frozenset[Name] = frozenset()
    partitioned: frozenset[Name] = frozenset()

    def are_apart(self, of_logical: Op, of_partitioned: Op) -> bool:
        """Whether what a device has is a part of what it combines with others', and the logical value is none: a
        program that tells devices what to do has parts itself."""
        return self.partitioned.issuperset(of_partitioned.results) and not self.logical.issuperset(of_logical.results)


def parts_of(logical: Module, partitioned: Module) -> Parts:
    """The parts in both modules of a pair."""
    return Parts(combined(logical.main), combined(partitioned.main))


def combined(function: Function) -> frozenset[Name]:
    """The values all uses of which combine what several devices have, or put it in another shape for that."""
    parts: set[Name] = set()
    others = {name for each in functions(function) for name in each.results}
    for op in reversed(list(operations(function))):  # uses come after what they use
        is_reshaped = op.name in RESHAPES and op.results[0] in parts - others
        (parts if is_reshaped or _combines(op) else others).update(op.operands)
    return frozenset(parts - others)


def _combines(op: Op) -> bool:
    """Whether an operation makes one value of those of several devices: in groups of one, it makes what there was."""
    return op.name in REDUCTIONS and np.shape(op.attributes["replica_groups"])[-1] != 1
