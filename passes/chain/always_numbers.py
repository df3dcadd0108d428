"""What is a number in each turn of each loop, on each device, though minus infinity masks scores there."""

from __future__ import annotations

import numpy as np

from hlo_verify.evaluate.blocks import Blocks, scalar
from hlo_verify.evaluate.interpret import evaluate
from hlo_verify.evaluate.maps import Maps
from hlo_verify.evaluate.numbers import storage
from hlo_verify.evaluate.state import Limits
from hlo_verify.limits import limit_of
from hlo_verify.passes.chain.closed_values import REGION
from hlo_verify.program.ir import Function, Module, Name, Op, used
from hlo_verify.program.op_families import BRANCHES, is_new

FLOATS = np.dtype(np.float64)


def always_numbers(module: Module, devices: int) -> frozenset[Name]:
    """The values of floats that are finite where all arguments are 0, whenever they are made. Where minus infinity is
    added and chosen by what depends on no argument, and nothing else is infinite, they are for all arguments."""
    found: dict[Name, bool] = {}

    def seen(name: Name, value: Blocks | None) -> None:
        is_finite = value is not None and value.values.dtype == FLOATS and bool(np.isfinite(value.values).all())
        found[name] = is_finite and found.get(name, True)

    maps = Maps()
    types = module.main.argument_types
    zeros = [scalar(0, type_.shape, storage(type_.dtype, FLOATS), devices, maps) for type_ in types]
    limits = Limits(limit_of("enclosed_elements"), limit_of("glance_work"))
    evaluate(module, zeros, devices, limits=limits, maps=maps, observe=seen)
    return frozenset(name for name, is_finite in found.items() if is_finite)


def depending(function: Function) -> frozenset[Name]:
    """The values of a function and of all regions in it that may depend on an argument."""
    found = set(function.arguments)
    known = -1
    while known < len(found):  # what a loop carries may after a turn
        known = len(found)
        _follow(function, found)
    return frozenset(found)


def _follow(function: Function, found: set[Name]) -> None:
    for op in function.ops:
        for region in op.regions:
            if op.name == REGION or op.name == "while":
                given = zip(region.arguments, op.operands, strict=True)
                found.update(inner for inner, outer in given if outer in found)
            _follow(region, found)
        found.update(_results(op, found))


def _results(op: Op, found: set[Name]) -> set[Name]:
    """The results of an operation that may."""
    if is_new(op):
        return {*op.results}
    if op.name == REGION:
        (region,) = op.regions
        return {outer for outer, inner in zip(op.results, region.results, strict=True) if inner in found}
    if op.name == "while":
        condition, body = op.regions
        if not found.isdisjoint(condition.results):
            return {*op.results}
        after = list(zip(op.results, condition.arguments, body.arguments, body.results, strict=True))
        for _, tested, carried, inner in after:
            if inner in found:
                found.update((tested, carried))
        return {outer for outer, _, carried, inner in after if carried in found or inner in found}
    if op.name in BRANCHES:
        if op.operands[0] in found:
            return {*op.results}
        each = zip(op.results, *(region.results for region in op.regions), strict=True)
        return {outer for outer, *inner in each if not found.isdisjoint(inner)}
    return {*op.results} if not found.isdisjoint(used(op)) else set()
