"""Graphs that were made for each rank by itself, as one program.

They are the same operation by operation, but for what depends on the rank: a constant, an offset. Such an operation
becomes a choice by the number of the device between those of all ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jaxlib_api import ir
from hlo_verify.passes.canonicalize.entry import canonicalize
from hlo_verify.passes.load.load import Source, build
from hlo_verify.passes.read.expand import operations as inside
from hlo_verify.program.ir import Module
from hlo_verify.program.op_families import COMMUNICATES, family
from hlo_verify.program.sharding import Sharding, same


def merged(modules: Sequence[Module]) -> Module:
    """One module for as many devices as there are modules. Raises `InputError` where they differ in structure."""
    first, count = modules[0], len(modules)
    for module in modules:
        if module.partitions not in (None, 1, count) or module.replicas not in (1, count):
            raise InputError(
                f"{module.path or module.name} is for {(module.partitions or 1) * module.replicas} devices, and there "
                f"are {count} ranks: pass a graph for each device",
                Input.OTHER_DEVICES,
            )
    of_replicas = any(module.replicas > 1 for module in modules)
    numbers = [((module.partitions or 1) > 1, module.replicas > 1) for module in modules]
    if len(set(numbers)) > 1:
        other = modules[next(n for n, each in enumerate(numbers) if each != numbers[0])]
        raise InputError(
            f"{other.path or other.name} numbers devices otherwise than {first.path or first.name} (as partitions, "
            "replicas, or not at all); say the same in the graphs of all ranks",
            Input.OTHER_DEVICES,
        )
    mlirs = [ir.Module.parse(module.bytecode(), first.mlir.context) for module in modules]
    with mlirs[0].context, mlirs[0].operation.location:
        names = [module.path or f"rank {n}" for n, module in enumerate(modules)]
        merge = _Merge(mlirs, names, "replica_id" if of_replicas else "partition_id")
        merge.placements(modules)
        merge.functions()
    partitions, replicas = (1, count) if of_replicas else (count, 1)
    notes = tuple(dict.fromkeys(note for module in modules for note in module.notes))
    source = Source(mlirs[0], partitions, replicas, notes)
    made = build(source, canonicalize(mlirs[0], first.path), None, first.path)
    return replace(
        made,
        argument_shardings=first.argument_shardings,
        result_shardings=first.result_shardings,
        unplaced=first.unplaced,
        name=first.name,
    )


def _is_same(one: Sharding | None, other: Sharding | None) -> bool:
    return one is other or (one is not None and other is not None and same(one, other))


class _Merge:
    """Changes the first of several MLIR modules so that it does on each device what the one of that number does."""

    def __init__(self, modules: Sequence[Any], names: Sequence[str], number: str) -> None:
        self.modules = modules
        self.names = names
        self.number = number
        """The operation that gives the number of a device."""
        self.tables = [
            {f.attributes["sym_name"].value: f for f in module.body.operations if f.operation.name == "func.func"}
            for module in modules
        ]

    def placements(self, modules: Sequence[Module]) -> None:
        """Refuse graphs that say of the same arguments or results that they lie otherwise."""
        first = modules[0]
        for n, each in enumerate(modules):
            for what, own, wanted in (
                ("arguments", each.argument_shardings, first.argument_shardings),
                ("results", each.result_shardings, first.result_shardings),
            ):
                if len(own) != len(wanted) or not all(map(_is_same, own, wanted)) or each.unplaced != first.unplaced:
                    raise self._other(n, f"its {what} have other shardings than those of rank 0")

    def functions(self) -> None:
        meshes = [[str(op) for op in m.body.operations if op.operation.name != "func.func"] for m in self.modules]
        for n, each in enumerate(meshes):
            if each != meshes[0]:
                raise self._other(n, "it has other meshes")
        for name in self.tables[0]:
            for n, table in enumerate(self.tables):
                if name not in table:
                    raise self._other(n, f"it has no function @{name}")
            self._blocks([table[name].regions[0].blocks[0] for table in self.tables])

    def _blocks(self, blocks: Sequence[Any]) -> None:
        lists = [list(block.operations) for block in blocks]
        numbers: list[dict[Any, int]] = [{} for _ in blocks]
        for values, block in zip(numbers, blocks, strict=True):
            values.update({argument: n for n, argument in enumerate(block.arguments)})
        for n, block in enumerate(blocks):
            if [a.type for a in block.arguments] != [a.type for a in blocks[0].arguments]:
                raise self._other(n, "its arguments have other types")
            if len(lists[n]) != len(lists[0]):
                raise self._other(n, f"it has {len(lists[n])} operations and not {len(lists[0])}")
        own: list[Any] = list(blocks[0].arguments)
        for row in zip(*lists, strict=True):
            operations = [each.operation for each in row]
            self._check(operations, numbers)
            results = list(operations[0].results)
            said = [_said(operation, values) for operation, values in zip(operations, numbers, strict=True)]
            other = next((n for n, each in enumerate(said) if each != said[0]), None)
            if other is not None:
                self._check_alone(other, operations)
                results = self._choice(operations, numbers, own)
            for values, given in zip(numbers, [results, *(each.results for each in operations[1:])], strict=True):
                values.update({result: len(own) + k for k, result in enumerate(given)})
            own += results

    def _check(self, operations: Sequence[Any], numbers: Sequence[dict[Any, int]]) -> None:
        first = operations[0]
        operands = [numbers[0][operand] for operand in first.operands]
        types = [str(result.type) for result in first.results]
        for n, operation in enumerate(operations):
            if operation.name != first.name or [str(r.type) for r in operation.results] != types:
                raise self._other(n, f"it has {_short(operation)} where rank 0 has {_short(first)}")
            if [numbers[n][operand] for operand in operation.operands] != operands:
                raise self._other(n, f"{_short(operation)} has other operands")

    def _check_alone(self, n: int, operations: Sequence[Any]) -> None:
        """Refuse an operation that differs in rank `n` where devices would not do the same at the same time, or where
        its regions use values from outside."""
        for operation, table in zip(operations, self.tables, strict=True):
            within = list(inside(operation))
            if _communicates(operation, table):
                raise self._other(n, f"{_short(operation)} communicates otherwise")
            known = {value for each in within for value in each.results}
            blocks = (block for each in (operation, *within) for region in each.regions for block in region.blocks)
            known.update(argument for block in blocks for argument in block.arguments)
            if any(operand not in known for each in within for operand in each.operands):
                raise self._other(n, f"{_short(operation)} has another region, which uses values from outside")

    def _choice(self, operations: Sequence[Any], numbers: Sequence[dict[Any, int]], own: Sequence[Any]) -> list[Any]:
        """Put a choice by the device in the place of the first of some operations; what it gives."""
        first = operations[0]
        i32, ui32 = ir.IntegerType.get_signless(32), ir.IntegerType.get_unsigned(32)
        with first.location, ir.InsertionPoint(first):
            number = ir.Operation.create(f"stablehlo.{self.number}", [ir.RankedTensorType.get([], ui32)], [])
            signed = ir.Operation.create("stablehlo.convert", [ir.RankedTensorType.get([], i32)], [number.result])
            types = [result.type for result in first.results]
            choice = ir.Operation.create("stablehlo.case", types, [signed.result], regions=len(operations))
        for n, (operation, region) in enumerate(zip(operations, choice.regions, strict=True)):
            block = region.blocks.append()
            with operation.location, ir.InsertionPoint(block):
                copy = operation.clone()
                for k, operand in enumerate(operation.operands):
                    copy.operation.operands[k] = own[numbers[n][operand]]
                ir.Operation.create("stablehlo.return", [], list(copy.operation.results))
        for old, new in zip(first.results, choice.results, strict=True):
            old.replace_all_uses_with(new)
        first.erase()
        return list(choice.results)

    def _other(self, n: int, why: str) -> InputError:
        return InputError(
            f"the graphs of the ranks are not one program: in {self.names[n]}, {why}; graphs may differ in constants "
            "and attributes alone",
            Input.NOT_A_PAIR,
        )


def _communicates(operation: Any, table: Mapping[str, Any]) -> bool:
    """Whether all devices take part in an operation, in one inside of it, or in one of a function that these call: it
    has to be the same for all ranks, with all that is around it.

    Of a call of which nothing is known the choice by the device makes a result that nothing is known of either.
    """
    todo, called = [operation], set[str]()
    while todo:
        outer = todo.pop()
        for each in (outer, *inside(outer)):
            known = family(each.name.removeprefix("stablehlo."), _about(each))
            if known is not None and known & COMMUNICATES:
                return True
            new = [name for name in _called(each) if name in table and name not in called]
            called.update(new)
            todo += [table[name].operation for name in new]
    return False


def _about(operation: Any) -> dict[str, Any]:
    """The attributes of a custom call that say what it is."""
    attributes = {each.name: each.attr for each in _attributes(operation)}
    named = ("call_target_name", "backend_config", "has_side_effect")
    said = {name: attributes[name] for name in named if name in attributes}
    return {name: value.value if hasattr(value, "value") else str(value) for name, value in said.items()}


def _called(operation: Any) -> list[str]:
    """The functions that an operation names."""
    given = [each.attr for each in _attributes(operation)]
    given += [inner for each in given if isinstance(each, ir.ArrayAttr) for inner in each]
    return [each.value for each in given if isinstance(each, ir.FlatSymbolRefAttr)]


def _said(operation: Any, numbers: Mapping[Any, int]) -> Any:
    """What an operation computes: its attributes, and its regions with their operands by number; not where it is."""
    attributes = sorted((each.name, str(each.attr)) for each in _attributes(operation))
    regions = []
    for region in operation.regions:
        inner = dict(numbers)
        for block in region.blocks:
            inner.update({argument: len(inner) + k for k, argument in enumerate(block.arguments)})
            said: list[Any] = [[str(argument.type) for argument in block.arguments]]
            for each in block.operations:
                said.append([each.operation.name, [inner[operand] for operand in each.operands]])
                said.append([_said(each.operation, inner), [str(result.type) for result in each.results]])
                inner.update({result: len(inner) + k for k, result in enumerate(each.results)})
            regions.append(said)
    return attributes, regions


def _attributes(operation: Any) -> list[Any]:
    return [operation.attributes[k] for k in range(len(operation.attributes))]


def _short(operation: Any) -> str:
    return str(operation).split("\n", 1)[0].strip()[:120]
