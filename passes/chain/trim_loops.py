"""Loops without what they carry for nothing: values that no turn changes, and values that nothing needs."""

from __future__ import annotations

from dataclasses import replace

from hlo_verify.program.ir import Function, Module, Name, Op, operations, used
from hlo_verify.program.op_families import is_identity
from hlo_verify.program.sharding_text import of_what_is_kept


def has_loops(module: Module) -> bool:
    """Whether there is one, be it inside of a manual region or a branch."""
    return any(op.name == "while" for op in operations(module.main))


def slim(module: Module) -> Module:
    """The module with such loops; a value that stays what it was is read where the loop begins."""
    return replace(module, main=_slim(module.main, {}))


def _slim(function: Function, same: dict[Name, Name]) -> Function:
    """The function with values replaced by those that they are the same as."""
    ops: list[Op] = []
    needed = _needed(function)
    for op in function.ops:
        if is_identity(op) and not needed.intersection(op.results):
            continue
        operands = tuple(same.get(v, v) for v in op.operands)
        op = replace(op, operands=operands)
        op = _loop(op, same, needed) if op.name == "while" else op
        ops.append(replace(op, regions=tuple(_slim(region, same) for region in op.regions)))
    return replace(function, ops=tuple(ops), results=tuple(same.get(v, v) for v in function.results))


def _needed(function: Function) -> set[Name]:
    """The values that something needs. An annotation of what nobody needs (JAX writes one on each result of a loop in
    a manual region) is no need."""
    needed = {*function.results}
    for op in reversed(function.ops):
        if not is_identity(op) or needed.intersection(op.results):
            needed.update(used(op))
    return needed


def _loop(op: Op, same: dict[Name, Name], needed: set[Name]) -> Op:
    condition, body = op.regions
    kept = _kept(op, needed)
    for k, initial in enumerate(op.operands):
        if body.results[k] == body.arguments[k]:
            for value in (condition.arguments[k], body.arguments[k], op.results[k]):
                same[value] = initial
    kept = [k for k in kept if body.results[k] != body.arguments[k]]
    given = ((condition, condition.results), (body, tuple(body.results[k] for k in kept)))
    regions = tuple(
        replace(
            region,
            arguments=tuple(region.arguments[k] for k in kept),
            argument_types=tuple(region.argument_types[k] for k in kept),
            ops=_live(region, results),
            results=results,
        )
        for region, results in given
    )
    return replace(
        op,
        operands=tuple(op.operands[k] for k in kept),
        results=tuple(op.results[k] for k in kept),
        types=tuple(op.types[k] for k in kept),
        attributes=of_what_is_kept(op.attributes, len(op.results), kept),
        regions=regions,
    )


def _kept(op: Op, needed: set[Name]) -> list[int]:
    """What a loop carries that a result which is needed depends on, or how often it turns."""
    condition, body = op.regions
    kept = {k for k, result in enumerate(op.results) if result in needed}
    kept |= {k for k, v in enumerate(condition.arguments) if v in _used(condition, condition.results)}
    while True:
        used = _used(body, tuple(body.results[k] for k in kept))
        more = {k for k, v in enumerate(body.arguments) if v in used} - kept
        if not more:
            return sorted(kept)
        kept |= more


def _used(function: Function, results: tuple[Name, ...]) -> set[Name]:
    """The values that some results are made of."""
    found = {*results}
    for op in reversed(function.ops):
        if found.intersection(op.results):
            found.update(used(op))
    return found


def _live(function: Function, results: tuple[Name, ...]) -> tuple[Op, ...]:
    live = _used(function, results)
    return tuple(op for op in function.ops if live.intersection(op.results))
