"""Arguments that are several tensors in one: the weights of queries, keys and values, or of gates and their inputs.

A device that holds a shard of each does not hold a contiguous shard of the whole. A module is made to take the tensors
one by one, and to put them together itself: then every argument lies as arguments do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Any

from hlo_verify.ir import Module, TensorType, Value
from hlo_verify.jaxlib_api import ir
from hlo_verify.passes.canonicalize import canonicalize
from hlo_verify.passes.load import Source, build

WHOLE = "main.whole"
"""What the function is called that takes the argument in one."""


def segments(logical: Module, partitioned: Module, n: int, k: int) -> Iterator[tuple[int, ...]]:
    """The sizes of the tensors that dimension `k` of argument `n` may consist of, by how both modules take values of
    its size apart: at the same places, or in as many equal parts."""
    whole, part = (module.main.argument_types[n].shape[k] for module in (logical, partitioned))
    ours, theirs = _breaks(logical, whole), _breaks(partitioned, part)
    for points in sorted(ours):
        scaled = tuple(point * part // whole for point in points)
        if scaled in theirs and all(point * part % whole == 0 for point in points):
            ends = (0, *points, whole)
            yield tuple(b - a for a, b in pairwise(ends))


def _breaks(module: Module, size: int) -> set[tuple[int, ...]]:
    """Where dimensions of that size are cut: by slices that are next to each other, or by a reshape."""
    kinds: dict[Value, TensorType] = dict(zip(module.main.arguments, module.main.argument_types, strict=True))
    sliced: dict[tuple[Value, int], set[int]] = {}
    found: set[tuple[int, ...]] = set()
    for op in module.main.ops:
        kinds.update(zip(op.results, op.types, strict=True))
        if op.name == "slice":
            bounds = zip(op.attributes["start_indices"], op.attributes["limit_indices"], strict=True)
            for k, (start, limit) in enumerate(bounds):
                if kinds[op.operands[0]].shape[k] == size:
                    sliced.setdefault((op.operands[0], k), set()).update({int(start), int(limit)} - {0, size})
        elif op.name == "reshape":
            given, shape = kinds[op.operands[0]].shape, op.types[0].shape
            before = {prod(given[:k]) for k, length in enumerate(given) if length == size}
            for k, (count, length) in enumerate(pairwise(shape)):
                if count > 1 and count * length == size and prod(shape[:k]) in before:
                    found.add(tuple(range(length, size, length)))
    return found | {tuple(sorted(points)) for points in sliced.values() if points}


def taken_apart(module: Module, n: int, k: int, sizes: Sequence[int]) -> Module:
    """The module with argument `n` replaced by arguments that are its parts of those sizes along dimension `k`."""
    mlir = ir.Module.parse(module.bytecode(), module.mlir.context)
    name = module.argument_names[n]
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + size)
    before = ":, " * k
    names = [f"{name}[{before}{a}:{b}]" for a, b in pairwise(ends)]
    _wrap(mlir, n, k, sizes, names)
    made = build(
        Source(mlir, module.partitions, module.replicas, module.notes), canonicalize(mlir, module.path), None, ""
    )
    placed = (*module.argument_shardings[:n], *[None] * len(sizes), *module.argument_shardings[n + 1 :])
    return replace(
        made,
        argument_names=(*module.argument_names[:n], *names, *module.argument_names[n + 1 :]),
        argument_shardings=placed,
        result_names=module.result_names,
        result_shardings=module.result_shardings,
        name=module.name,
        path=module.path,
    )


def _wrap(mlir: Any, n: int, k: int, sizes: Sequence[int], names: Sequence[str]) -> None:
    """Put a function in front of @main that takes the parts of its argument `n` and calls it."""
    with mlir.context, mlir.operation.location:
        (main,) = [f for f in mlir.body.operations if f.attributes["sym_name"].value == "main"]
        number = sum(f.attributes["sym_name"].value.startswith(WHOLE) for f in mlir.body.operations)
        whole = f"{WHOLE}.{number}"
        main.attributes["sym_name"] = ir.StringAttr.get(whole)
        main.attributes["sym_visibility"] = ir.StringAttr.get("private")
        kind = main.attributes["function_type"].value
        arguments = list(main.regions[0].blocks[0].arguments)
        tensor = arguments[n].type
        shape = list(tensor.shape)
        parts = [ir.RankedTensorType.get([*shape[:k], size, *shape[k + 1 :]], tensor.element_type) for size in sizes]
        types = [*[a.type for a in arguments[:n]], *parts, *[a.type for a in arguments[n + 1 :]]]
        places = [a.location for a in arguments]
        places[n : n + 1] = [ir.Location.name(name) for name in names]
        with main.location, ir.InsertionPoint(main):
            attributes = {
                "sym_name": ir.StringAttr.get("main"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, list(kind.results))),
            }
            if "res_attrs" in main.attributes:
                attributes["res_attrs"] = main.attributes["res_attrs"]
            if "arg_attrs" in main.attributes:
                own = list(main.attributes["arg_attrs"])
                own[n : n + 1] = [ir.DictAttr.get({})] * len(sizes)
                attributes["arg_attrs"] = ir.ArrayAttr.get(own)
            wrapper = ir.Operation.create("func.func", [], [], attributes, regions=1)
        block = wrapper.regions[0].blocks.append(*types, arg_locs=places)
        with main.location, ir.InsertionPoint(block):
            given = list(block.arguments)
            dimension = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), k)
            joined = ir.Operation.create(
                "stablehlo.concatenate", [tensor], given[n : n + len(sizes)], {"dimension": dimension}
            )
            operands = [*given[:n], joined.result, *given[n + len(sizes) :]]
            callee = {"callee": ir.FlatSymbolRefAttr.get(whole)}
            call = ir.Operation.create("func.call", list(kind.results), operands, callee)
            ir.Operation.create("func.return", [], list(call.results))
