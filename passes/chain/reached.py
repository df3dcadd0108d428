"""What some values of a function reach, through all of its regions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from hlo_verify.passes.chain.closed_values import REGION
from hlo_verify.passes.chain.constant_values import Computed
from hlo_verify.program.attributes import elements_once
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import Function, Name, Op, operations, used
from hlo_verify.program.op_families import BRANCHES, is_new

BOUNDED = frozenset({"sine", "cosine", "tanh", "logistic", "sign", "log", "log_plus_one", "rsqrt"})
"""Functions that are small, or as good as, of large numbers."""


def depending(function: Function) -> frozenset[Name]:
    """The values of a function and of all regions in it that may depend on an argument, or are new each time."""
    new = (v for op in operations(function) if is_new(op) for v in op.results)
    return reached(function, (*function.arguments, *new), lambda op: used(op))


def large_values(function: Function, numbers: Mapping[Name, Computed], most: float, far: float) -> frozenset[Name]:
    """The values of floats in which a number is larger than `most`, or infinite, because a constant is. Negative ones
    from `far` down are none: they mask, and are followed as what does."""
    constants = {op.results[0] for op in operations(function) if op.name == "constant" and _is_large(op, most, far)}
    computed = {name for name, number in numbers.items() if abs(number.exact) > most and number.exact > far}
    return reached(function, constants | computed, _carrying)


def _is_large(op: Op, most: float, far: float) -> bool:
    values = np.asarray(elements_once(op.attributes["value"]))
    if values.dtype.kind == "c":
        return True
    numbers = values.astype(float)
    return bool(((np.abs(numbers) > most) & (numbers > far)).any())


def _carrying(op: Op) -> Iterable[Name]:
    """Those of an operation's operands of which a large one may give a large result."""
    if op.name in BOUNDED or not any(is_float(type_.dtype) for type_ in op.types):
        return ()
    return op.operands[:1] if op.name == "divide" else op.operands[1:] if op.name == "select" else used(op)


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
