"""What some values of a function reach, through all of its regions."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hlo_verify.evaluate.blocks import Blocks, scalar
from hlo_verify.evaluate.interpret import Evaluation, evaluate
from hlo_verify.evaluate.maps import Maps
from hlo_verify.evaluate.numbers import storage
from hlo_verify.evaluate.state import Limits
from hlo_verify.limits import limit_of
from hlo_verify.program.ir import Function, Module, Name, Op, operations, used, value_types
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
    seen = _Seen(most)
    at_zero(module, devices, observe=seen.observe)
    unknown = depends | _in_other_turns(main, depends)
    small = {name for name, is_small in seen.small.items() if is_small and name not in unknown}
    taken = {name: chosen for name, chosen in seen.taken.items() if name not in unknown}
    sources = {
        value
        for op in operations(main)
        for value, type_ in zip(op.results, op.types, strict=True)
        if type_.dtype != "i1" and value not in depends and value not in small and value not in but
    }
    return reached(main, sources, lambda op: () if small.issuperset(op.results) else _carrying(op, taken))


@dataclass(frozen=True, slots=True)
class _Seen:
    """What values are where all arguments are 0, whenever they are made and on each device."""

    most: float
    small: dict[Name, bool] = field(default_factory=dict)
    """Whether their numbers are no larger than `most`."""
    taken: dict[Name, set[bool]] = field(default_factory=dict)
    """What a condition is."""

    def observe(self, name: Name, value: Blocks | None) -> None:
        numbers = np.array([np.nan]) if value is None else value.values
        is_small = numbers.dtype.kind in "fiu" and bool((abs(numbers) <= self.most).all())
        self.small[name] = is_small and self.small.get(name, True)
        if numbers.dtype.kind == "b":
            self.taken.setdefault(name, set()).update(map(bool, np.unique(numbers)))
        elif value is None:
            self.taken[name] = {True, False}


def _in_other_turns(function: Function, depends: Container[Name]) -> frozenset[Name]:
    """The values that are others in each turn of a loop, where an argument decides how often it goes round, or in which
    turn they are made."""
    all_ops = list(operations(function))
    carried = (v for op in all_ops if op.name == "while" for region in op.regions for v in region.arguments)
    decided = (
        region
        for op in all_ops
        for region in op.regions
        if (op.name in BRANCHES and op.operands[0] in depends)
        or (op.name == "while" and any(v in depends for v in op.regions[0].results))
    )
    inside = {v for region in decided for v in value_types(region)}
    return reached(function, carried, used) & inside


def at_zero(module: Module, devices: int, **how: Any) -> Evaluation:
    """What a module computes where all arguments are 0, on each of so many devices that run it, evaluated as asked."""
    maps = Maps()
    types = module.main.argument_types
    zeros = [scalar(0, type_.shape, storage(type_.dtype, FLOATS), devices, maps) for type_ in types]
    limits = Limits(limit_of("enclosed_elements"), limit_of("glance_work"))
    return evaluate(module, zeros, devices, limits=limits, maps=maps, **how)


def _carrying(op: Op, taken: Mapping[Name, Container[bool]]) -> Iterable[Name]:
    """Those of an operation's operands of which a large one may give a large result, where conditions are known that
    are `taken` in one way alone."""
    if all(type_.dtype == "i1" for type_ in op.types):
        return ()
    if op.name == "divide" or op.name in LOOKUPS:
        return op.operands[:1]
    if op.name == "select":
        condition, *chosen = op.operands
        known = taken.get(condition, (True, False))
        return [value for value, is_chosen_if in zip(chosen, (True, False), strict=True) if is_chosen_if in known]
    return used(op)


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
