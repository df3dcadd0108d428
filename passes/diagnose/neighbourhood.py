"""The operations around one value of a module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from hlo_verify.program.ir import Function, Module, Name, Op, TensorType, operations, used, value_types
from hlo_verify.program.op_families import REGION
from hlo_verify.program.sharding import Sharding
from hlo_verify.scene import Around, Part

BEFORE = 12
"""Operations and arguments that a value is made from, the nearest."""

BEHIND = 3
"""Operations that use it."""


class Ops:
    """Which operation makes each value of a function and its regions, and which use it."""

    def __init__(self, main: Function) -> None:
        self.main = main
        self.types: dict[Name, TensorType] = value_types(main)
        self.made: dict[Name, Op] = {}
        self.passed: dict[Name, Name] = {}
        """What is handed to a program of devices, by the argument that it has there."""
        self.placed: dict[Name, Sharding] = {}
        """How that is placed."""
        for op in operations(main):
            self.made.update(dict.fromkeys(op.results, op))
            if op.name == REGION and op.regions:
                self.passed.update(zip(op.regions[0].arguments, op.operands, strict=False))
                self.placed.update(zip(op.operands, op.attributes.get("in_shardings") or (), strict=False))

    @cached_property
    def users(self) -> Mapping[Name, list[Op]]:
        found: dict[Name, list[Op]] = {}
        for op in operations(self.main):
            for name in op.operands:
                found.setdefault(name, []).append(op)
        return found


def around(ops: Ops, fault: Name | None, module: Module, stages: Mapping[tuple[str, str], str]) -> Around:
    """What a value is made from and used by. `stages` has the lineage of cut points by operation and source line; one
    that several operations near share tells them apart no more, and is said of none."""
    if fault is None or fault not in ops.made:
        return Around()
    first = ops.made[fault].results[0]
    names, left = _before(ops, first)
    behind = [op for op in ops.users.get(fault, []) if op.results]
    names += [op.results[0] for op in behind[:BEHIND] if op.results[0] not in names]
    arguments = dict(zip(module.main.arguments, module.argument_names, strict=False))
    keys = Counter(_key(ops.made[name]) for name in names if name in ops.made)
    parts = [
        _part(name, ops, arguments, stages if name in ops.made and keys[_key(ops.made[name])] == 1 else {}, first)
        for name in names
    ]
    known = set(names)
    edges = dict.fromkeys(
        (str(_first(ops, operand)), str(name))
        for name in names
        if name in ops.made
        for operand in sorted(used(ops.made[name]))
        if _first(ops, operand) in known
    )
    return Around(tuple(parts), tuple(edges), left + max(len(behind) - BEHIND, 0))


def matched(
    logical: Around, partitioned: Around, arguments: tuple[Sequence[Name], Sequence[Name]]
) -> tuple[tuple[str, str], ...]:
    """Pairs of names: arguments by their position, and cut points with the logical operation that their lineage names,
    where it is the only one near."""
    near = {part.name for part in logical.parts}, {part.name for part in partitioned.parts}
    found = [(str(one), str(other)) for one, other in zip(*arguments, strict=False)]
    found = [pair for pair in found if pair[0] in near[0] and pair[1] in near[1]]
    called: dict[str, list[str]] = {}
    for part in logical.parts:
        called.setdefault(f"{part.operation}@{part.location.rpartition('/')[2]}", []).append(part.name)
    for part in partitioned.parts:
        ones = called.get(part.lineage.partition("[")[0], []) if part.lineage and not part.at_fault else []
        found += [(ones[0], part.name)] if len(ones) == 1 else []
    return tuple(found)


def _before(ops: Ops, first: Name) -> tuple[list[Name], int]:
    """A value and what it is made from, breadth first; and how many more there are one step further."""
    names, left = [first], 0
    for name in names:
        if name not in ops.made:
            continue
        for operand in sorted(used(ops.made[name])):
            source = _first(ops, operand)
            if source in names or (source in ops.made and ops.made[source].name == "constant"):
                continue
            if len(names) > BEFORE:
                left += 1
            else:
                names.append(source)
    return names, left


def _first(ops: Ops, name: Name) -> Name:
    """The first result of the operation that makes a value, which stands for all of them; of an argument of a program
    of devices, what is handed to it."""
    while name in ops.passed:
        name = ops.passed[name]
    return ops.made[name].results[0] if name in ops.made else name


def _key(op: Op) -> tuple[str, str]:
    return op.name, str(op.location)


def _part(
    name: Name, ops: Ops, arguments: Mapping[Name, str], stages: Mapping[tuple[str, str], str], fault: Name
) -> Part:
    type_ = str(ops.types[name]) if name in ops.types else ""
    op = ops.made.get(name)
    if op is None:
        called = arguments.get(name, "")
        return Part(str(name), called or "argument of a region", type_)
    lineage = "" if name == fault else stages.get(_key(op), "")
    return Part(str(name), op.name, type_, str(op.location), lineage, name == fault)
