"""Small edits of MLIR: what every mutation is made of. All of it works inside a module's context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hlo_verify.jaxlib_api import ir

Operation = Any
Value = Any
Type = Any

_REDUCERS = frozenset(
    f"stablehlo.{name}"
    for name in "all_reduce reduce reduce_scatter reduce_window scatter select_and_scatter sort custom_call".split()
)
"""Operations whose regions say how to combine elements; what is in them is no value of the program."""


class NotHereError(Exception):
    """An edit does not fit the operation it was tried on; nothing was changed."""


def name(operation: Operation) -> str:
    """StableHLO's name, without the dialect."""
    return str(operation.name).removeprefix("stablehlo.")


def shape(value: Value) -> tuple[int, ...]:
    return tuple(ir.RankedTensorType(value.type).shape)


def element(value: Value) -> Type:
    return ir.RankedTensorType(value.type).element_type


def dtype(value: Value) -> str:
    return str(element(value))


def is_float(value: Value) -> bool:
    return dtype(value).startswith(("f", "bf"))


def tensor(sizes: Sequence[int], like: Value) -> Type:
    """A type of those sizes, with the element type of `like`."""
    return ir.RankedTensorType.get(list(sizes), element(like))


def is_tensor(value: Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def program(module: Any) -> list[Operation]:
    """The operations that compute values, in order: of @main, the regions in it and the functions it calls.

    In a global module those in manual regions alone: the rest is what the program asks of XLA.
    """
    functions = {
        op.attributes["sym_name"].value: op.operation for op in module.body if op.operation.name == "func.func"
    }
    seen: set[str] = set()

    def visit(operation: Operation) -> Iterator[Operation]:
        for inner in children(operation):
            if inner.name not in ("stablehlo.return", "func.return", "sdy.return"):
                yield inner
            if inner.name not in _REDUCERS:
                yield from visit(inner)
            if inner.name == "func.call" and (callee := inner.attributes["callee"].value) not in seen:
                seen.add(callee)
                yield from visit(functions[callee])

    everything = list(visit(functions["main"]))
    regions = [op for op in everything if op.name == "sdy.manual_computation"]
    return [op for region in regions for op in visit(region)] if regions else everything


def initial(operation: Operation) -> range:
    """The operands that a reduction starts with; StableHLO leaves open what it gives if they are not the identity."""
    count = len(operation.operands)
    return range(count // 2, count) if name(operation) in ("reduce", "reduce_window") else range(0)


def children(operation: Operation) -> Iterator[Operation]:
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation


def create(
    at: Operation,
    what: str,
    operands: Sequence[Value],
    types: Sequence[Type],
    attributes: Mapping[str, Any] | None = None,
    *,
    after: bool = False,
) -> Operation:
    """A StableHLO operation before, or after, `at`, and with its source location."""
    point = ir.InsertionPoint.after(at) if after else ir.InsertionPoint(at)
    return ir.Operation.create(
        f"stablehlo.{what}",
        results=list(types),
        operands=list(operands),
        attributes=dict(attributes or {}),
        loc=at.location,
        ip=point,
    )


def constant(at: Operation, type_: Type, number: float | bool) -> Value:
    """A splat in front of `at`."""
    kind = ir.RankedTensorType(type_)
    return create(at, "constant", [], [kind], {"value": splat(kind, number)}).results[0]


def splat(type_: Type, number: float | bool) -> Any:
    kind = ir.RankedTensorType(type_)
    floating = str(kind.element_type).startswith(("f", "bf"))
    value = ir.FloatAttr.get(kind.element_type, float(number)) if floating else None
    return ir.DenseElementsAttr.get_splat(kind, value or ir.IntegerAttr.get(kind.element_type, int(number)))


def replace(old: Value, new: Value, keep: Sequence[Operation] = ()) -> None:
    """Let all users of `old` but `keep` use `new`."""
    old.replace_all_uses_except(new, list(keep)) if keep else old.replace_all_uses_with(new)


def replaced(at: Operation, what: str, operands: Sequence[Value], attributes: Mapping[str, Any] | None = None) -> Value:
    """An operation in the place of `at`, with the type of its only result; `at` is erased."""
    new = create(at, what, operands, [at.results[0].type], attributes).results[0]
    replace(at.results[0], new)
    at.erase()
    return new


def reshaped(at: Operation, value: Value, type_: Type) -> Value:
    """The value, in front of `at`, in that type of as many elements."""
    if value.type == type_:
        return value
    if np.prod(shape(value)) != np.prod(ir.RankedTensorType(type_).shape):
        raise NotHereError
    return create(at, "reshape", [value], [type_]).results[0]


def rest_of(operation: Operation, *without: str) -> dict[str, Any]:
    """The attributes of an operation, for another one in its place."""
    return {key: operation.attributes[key] for key in operation.attributes if key not in without}


def longs(values: Sequence[int]) -> Any:
    return ir.DenseI64ArrayAttr.get([int(value) for value in values])


def read_longs(operation: Operation, key: str) -> list[int]:
    return [int(value) for value in operation.attributes[key]]


def long(value: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def matrix(rows: Any) -> Any:
    """A dense attribute of int64, for replica groups and source-target pairs."""
    return ir.DenseElementsAttr.get(np.ascontiguousarray(rows, np.int64))


def read_matrix(operation: Operation, key: str) -> Any:
    return np.array(operation.attributes[key], np.int64)


def splat_of(value: Value) -> float | None:
    """The number that a value is everywhere, where it is a constant, a broadcast of one or a conversion of one."""
    operation = value.owner
    if isinstance(operation, ir.Block):
        return None
    if name(operation) in ("broadcast_in_dim", "reshape", "convert"):
        return splat_of(operation.operands[0])
    if name(operation) != "constant":
        return None
    elements = operation.attributes["value"]
    if not isinstance(elements, ir.DenseElementsAttr) or not elements.is_splat:
        return None
    return float(elements.get_splat_value().value)
