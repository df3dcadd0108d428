"""What some values of a function reach, through all of its regions."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

import numpy as np

from hlo_verify.evaluate.blocks import Blocks, scalar
from hlo_verify.evaluate.interpret import Evaluation, evaluate
from hlo_verify.evaluate.maps import Maps
from hlo_verify.evaluate.numbers import storage
from hlo_verify.evaluate.state import Limits
from hlo_verify.limits import limit_of
from hlo_verify.program.ir import Function, Module, Name, Op, operations, used
from hlo_verify.program.op_families import BRANCHES, LOOKUPS, REGION, is_new

FLOATS = np.dtype(np.float64)


def depending(function: Function) -> frozenset[Name]:
    """The values of a function and of all regions in it that may depend on an argument, or are new each time."""
    new = (v for op in operations(function) if is_new(op) for v in op.results)
    return reached(function, (*function.arguments, *new), used)


def large_values(module: Module, devices: int, most: float, but: Container[Name]) -> frozenset[Name]:
    """The values in which a number may be larger than `most`, or infinite, whatever the arguments are: what depends on
    none and is so, `but` for some values, and what is made of it. What cannot be evaluated may be, too."""
    main, depends = module.main, depending(module.main)
    small = _small(module, devices, most) - depends
    sources = {
        value
        for op in operations(main)
        for value, type_ in zip(op.results, op.types, strict=True)
        if type_.dtype != "i1" and value not in depends and value not in small and value not in but
    }
    return reached(main, sources, lambda op: () if small.issuperset(op.results) else _carrying(op))


def _small(module: Module, devices: int, most: float) -> set[Name]:
    """The values that are no larger where all arguments are 0, whenever they are made."""
    found: dict[Name, bool] = {}

    def seen(name: Name, value: Blocks | None) -> None:
        is_small = value is not None and value.values.dtype.kind in "fiu" and bool((abs(value.values) <= most).all())
        found[name] = is_small and found.get(name, True)

    at_zero(module, devices, observe=seen)
    return {name for name, is_small in found.items() if is_small}


def at_zero(module: Module, devices: int, **how: Any) -> Evaluation:
    """What a module computes where all arguments are 0, on each of so many devices that run it, evaluated as asked."""
    maps = Maps()
    types = module.main.argument_types
    zeros = [scalar(0, type_.shape, storage(type_.dtype, FLOATS), devices, maps) for type_ in types]
    limits = Limits(limit_of("enclosed_elements"), limit_of("glance_work"))
    return evaluate(module, zeros, devices, limits=limits, maps=maps, **how)


def _carrying(op: Op) -> Iterable[Name]:
    """Those of an operation's operands of which a large one may give a large result."""
    if all(type_.dtype == "i1" for type_ in op.types):
        return ()
    if op.name == "divide" or op.name in LOOKUPS:
        return op.operands[:1]
    return op.operands[1:] if op.name == "select" else used(op)


def reached(function: Function, sources: Iterable[Name], carrying: Callable[[Op], Iterable[Name]]) -> frozenset[Name]:
    """What is made of some values, by operations that are `carrying` them on from one of these operands."""
    found = set(sources)
    known = -1
    while known < len(found):  # what a loop carries may be after a turn
        known = len(found)
        _follow(function, found, carrying)
    return frozenset(found)


def _follow(function: Function, found: set[Name], carrying: Callable[[Op], Iterable[Name]]) -> None:
    for op in function.ops:
        for region in op.regions:
            if op.name in (REGION, "while"):
                given = zip(region.arguments, op.operands, strict=True)
                found.update(inner for inner, outer in given if outer in found)
            _follow(region, found, carrying)
        found.update(_results(op, found, carrying))


def _results(op: Op, found: set[Name], carrying: Callable[[Op], Iterable[Name]]) -> set[Name]:
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
    return {*op.results} if not found.isdisjoint(carrying(op)) else set()
