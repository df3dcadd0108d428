"""What some values of a function need: its operations without those that make nothing of them.

A loop makes no more than what is asked of it, and what its condition and its own next turns need of that: where a
scanned model's loss is asked for, the forward loop keeps nothing for the gradients, which are the most of its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeVar

from hlo_verify.program.ir import Function, Module, Name, Op, operations, used
from hlo_verify.program.sharding_text import of_what_is_kept

T = TypeVar("T")


def part(function: Function, needed: Collection[Name]) -> Function:
    """The function with the operations that some values need, and those of its results that are among them."""
    results = tuple(value for value in function.results if value in needed)
    needed, kept = set(needed), []
    for op in reversed(function.ops):
        if not needed.isdisjoint(_made(op)):
            kept.append(_narrowed(op, needed))
            needed |= used(kept[-1])
    return replace(function, ops=tuple(reversed(kept)), results=results)


def only_results(module: Module, results: Collection[int]) -> Module:
    """The module with those of its results alone, in their order, and what these need."""
    if any(kind == "result" for kind, _ in module.unplaced):
        return module
    numbers = sorted(set(results))
    main = part(module.main, {module.main.results[n] for n in numbers})
    return replace(
        module,
        main=replace(main, results=tuple(module.main.results[n] for n in numbers)),
        result_names=tuple(module.result_names[n] for n in numbers),
        result_types=tuple(module.result_types[n] for n in numbers),
        result_shardings=tuple(module.result_shardings[n] for n in numbers),
    )


def elements(function: Function) -> int:
    """How many elements the values of a function have together, those of each region counted once."""
    return sum(prod(type_.shape) for op in operations(function) for type_ in op.types)


@dataclass(frozen=True, slots=True)
class Needs:
    """How much of a function each of some results needs, loops taken as they are."""

    sizes: Mapping[int, float]
    """The size of all operations that the same results need, by the set of these: bit n stands for result n."""

    def of(self, results: Collection[int]) -> float:
        """The size of what those results need together."""
        asked = sum(1 << n for n in set(results))
        return sum(size for some, size in self.sizes.items() if some & asked)


def needs(function: Function, results: Collection[int], size: Callable[[Op], float]) -> Needs:
    """What those results of a function need, by the size of each of its operations."""
    needed_for: dict[Name, int] = {}
    for n in results:
        needed_for[function.results[n]] = needed_for.get(function.results[n], 0) | 1 << n
    sizes: dict[int, float] = {}
    for op in reversed(function.ops):
        some = 0
        for value in op.results:
            some |= needed_for.get(value, 0)
        sizes[some] = sizes.get(some, 0) + size(op)
        for value in used(op):
            needed_for[value] = needed_for.get(value, 0) | some
    return Needs(sizes)


def least(function: Function, results: Collection[int]) -> int:
    """Of those results of a function the one that needs the fewest elements."""
    needed = needs(function, results, lambda op: elements(replace(function, ops=(op,))))
    return min(results, key=lambda n: needed.of([n]))


def _made(op: Op) -> set[Name]:
    """The values that an operation and its regions make."""
    inside = (set(region.arguments).union(*map(_made, region.ops)) for region in op.regions)
    return set(op.results).union(*inside)


def _narrowed(op: Op, needed: set[Name]) -> Op:
    """A loop that carries nothing but what is needed of its results, or within it; any other operation as it is."""
    if op.name != "while" or needed.issuperset(op.results):
        return op
    condition, body = op.regions
    condition = part(condition, {*condition.results, *needed})
    kept = _numbers(op.results, needed) | _numbers(body.arguments, needed)
    kept |= _numbers(condition.arguments, needed | _used_by(condition))
    while True:
        turn = part(body, {body.results[n] for n in kept} | needed)
        more = _numbers(body.arguments, _used_by(turn) | {body.results[n] for n in kept}) - kept
        if not more:
            break
        kept |= more
    return replace(
        op,
        operands=_at(op.operands, kept),
        results=_at(op.results, kept),
        types=_at(op.types, kept),
        attributes=of_what_is_kept(op.attributes, len(op.results), kept),
        regions=tuple(_carrying(region, kept) for region in (condition, replace(turn, results=body.results))),
    )


def _used_by(function: Function) -> set[Name]:
    return set(function.results).union(*map(used, function.ops))


def _numbers(several: Sequence[Name], values: set[Name]) -> set[int]:
    """The numbers of those that are among some values."""
    return {n for n, value in enumerate(several) if value in values}


def _carrying(region: Function, kept: set[int]) -> Function:
    """The condition or body of a loop that carries those values alone."""
    results = region.results if len(region.results) < len(region.arguments) else _at(region.results, kept)
    return Function(_at(region.arguments, kept), _at(region.argument_types, kept), region.ops, results)


def _at(several: Sequence[T], kept: set[int]) -> tuple[T, ...]:
    return tuple(each for n, each in enumerate(several) if n in kept)
