"""Edits of a module: operations in place of one, or after a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hlo_verify.program.ir import Fresh, Function, Module, Name, Op, TensorType, beyond, operations, value_types

Insert = Callable[[Fresh, Name], tuple[list[Op], Name]]
"""Operations after a value, and what then stands in its place."""

Edit = Callable[[Fresh], tuple[list[Op], dict[Name, Name]]]
"""What stands in place of an operation, and which values in place of others after it."""


@dataclass(frozen=True, slots=True, eq=False)
class Editable:
    """A module to be edited, and what is known of its values, those of its regions too."""

    module: Module
    ops: Mapping[Name, Op]
    """The operation that computes each value; arguments have none."""
    types: Mapping[Name, TensorType]
    free: Name
    """No value has this number or a larger one."""

    def after(self, name: Name, insert: Insert) -> Module:
        """The module with more operations after a value, and another value in place of it from there on."""
        op = self.ops[name]

        def edit(fresh: Fresh) -> tuple[list[Op], dict[Name, Name]]:
            more, new = insert(fresh, name)
            return [op, *more], {name: new}

        return self.instead(op, edit)

    def instead(self, op: Op, edit: Edit) -> Module:
        """The module with something else in place of an operation."""
        return replace(self.module, main=_function(self.module.main, op, edit, Fresh(self.free), {}))


def editable(module: Module) -> Editable:
    """The module, looked through."""
    ops = {name: op for op in operations(module.main) for name in op.results}
    types = value_types(module.main)
    return Editable(module, ops, types, beyond(types).next)


def _function(function: Function, op: Op, edit: Edit, fresh: Fresh, names: dict[Name, Name]) -> Function:
    names = dict(names)
    ops: list[Op] = []
    for each in function.ops:
        if each is op:
            new, renamed = edit(fresh)
            ops += new
            names.update(renamed)
            continue
        operands = tuple(names.get(name, name) for name in each.operands)
        regions = tuple(_function(region, op, edit, fresh, names) for region in each.regions)
        changed = operands != each.operands or any(a is not b for a, b in zip(regions, each.regions, strict=True))
        ops.append(replace(each, operands=operands, regions=regions) if changed else each)
    results = tuple(names.get(name, name) for name in function.results)
    same = results == function.results and len(ops) == len(function.ops)
    if same and all(a is b for a, b in zip(ops, function.ops, strict=True)):
        return function
    return replace(function, ops=tuple(ops), results=results)
