"""Repairs that put a mean over devices in the place of a sum, or a sum in the place of a mean.

They say what an author writes, `pmean` or `psum`, where a product with a number would do as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from hlo_verify.diagnostics import Mismatch
from hlo_verify.passes.refute.edits import Edit, Editable, Insert, editable
from hlo_verify.passes.refute.mesh_axes import Groups
from hlo_verify.program.attributes import elements_once
from hlo_verify.program.ir import Fresh, Module, Name, Op, TensorType
from hlo_verify.program.op_families import REDUCTIONS, SCALES

Change = tuple[str, Mismatch, Module]
"""What a repaired module has, in words, the code of what is wrong without it, and the module."""


def exchanged(
    partitioned: Editable,
    groups: Groups,
    name: Name,
    factor: Fraction,
    times: Callable[[Fraction, TensorType], Insert],
) -> Iterator[Change]:
    """Sums over devices that follow from a value with a mean in their place, or means with a sum, where the value is
    off by so many devices, or by one over so many. `times` multiplies by a number.
    """
    for op, what in _sums_after(partitioned, name):
        size = _size(op)
        where = f"at {op.location}"
        if size > 1 and factor == Fraction(1, size):
            text = f"the mean (pmean) over {_axes(op, groups)} in place of the sum (psum) {where}"
            yield text, Mismatch.WRONG_FACTOR, partitioned.after(what, times(factor, partitioned.types[what]))
        if size > 1 and factor == size:
            for scale, sum_ in _scales_by(partitioned, what, size):
                text = f"the sum (psum) over {_axes(op, groups)} in place of the mean (pmean) {where}"
                yield text, Mismatch.WRONG_FACTOR, partitioned.instead(scale, _left_out(scale, sum_))


def joined(partitioned: Editable, names: Sequence[Name], insert: Sequence[Insert]) -> Module:
    """The module with operations after each of some values."""
    module = partitioned.module
    for name, each in zip(names, insert, strict=True):
        module = editable(module).after(name, each)
    return module


def returned(partitioned: Editable, results: Sequence[int]) -> list[Name]:
    """The values that are returned as those results, within the regions that compute them; none of an argument."""
    found: dict[Name, None] = {}
    for n in results:
        name = partitioned.module.main.results[n]
        while (op := partitioned.ops.get(name)) is not None and op.name == "sdy.manual_computation":
            name = op.regions[0].results[op.results.index(name)]
        if op is None:
            return []
        found[name] = None
    return list(found)


def both(first: Insert, second: Insert) -> Insert:
    """One thing after another."""

    def insert(fresh: Fresh, value: Name) -> tuple[list[Op], Name]:
        before, between = first(fresh, value)
        after, result = second(fresh, between)
        return [*before, *after], result

    return insert


def _sums_after(partitioned: Editable, name: Name) -> Iterator[tuple[Op, Name]]:
    """The sums over devices that a value is or is made from, or that follow from it, with their results."""
    own = partitioned.ops.get(name)
    after = {name, *(own.operands if own is not None else ())}
    seen: set[int] = set()
    for op in partitioned.ops.values():
        if id(op) in seen:
            continue
        seen.add(id(op))
        if after.isdisjoint((*op.operands, *op.results)):
            continue
        after.update(op.results)
        if op.name in REDUCTIONS and len(op.results) == 1 and _is_sum(op):
            yield op, op.results[0]


def _is_sum(op: Op) -> bool:
    return [inner.name for inner in op.regions[0].ops] == ["add"]


def _size(op: Op) -> int:
    return int(np.asarray(op.attributes["replica_groups"]).shape[1])


def _axes(op: Op, groups: Groups) -> str:
    own = {frozenset(row) for row in np.asarray(op.attributes["replica_groups"]).tolist()}
    said = (axes for axes, members in groups if {frozenset(row) for row in members.tolist()} == own)
    return next(said, f"its groups of {_size(op)} devices")


def _scales_by(partitioned: Editable, name: Name, size: int) -> Iterator[tuple[Op, Name]]:
    """The operations that divide a value by a number of devices."""
    seen: set[int] = set()
    for op in partitioned.ops.values():
        if op.name in SCALES and name in op.operands and len(op.operands) == 2 and id(op) not in seen:
            seen.add(id(op))
            first, second = op.operands
            number = _number(partitioned, second if first == name else first)
            by = size if op.name == "divide" and first == name else 1 / size if op.name == "multiply" else None
            if by is not None and number is not None and abs(number - by) <= 1e-6 * by:
                yield op, name


def _number(partitioned: Editable, name: Name) -> float | None:
    """The one number that a value consists of, if it is such a constant."""
    op = partitioned.ops.get(name)
    while op is not None and op.name in ("broadcast_in_dim", "reshape", "convert"):
        op = partitioned.ops.get(op.operands[0])
    if op is None or op.name != "constant":
        return None
    values = np.unique(elements_once(op.attributes["value"]))
    return float(values[0]) if len(values) == 1 and np.isrealobj(values) else None


def _left_out(op: Op, operand: Name) -> Edit:
    return lambda _: ([], {op.results[0]: operand})
