"""All-to-alls of a tuple read as the one of a tensor that XLA took apart.

The CPU's `all_to_all_decomposer` slices a tensor along a dimension, exchanges the slices as a tuple and joins what
comes back along the same dimension. Operand r of the tuple goes to member r of a group, and result n comes from member
n, so that what is joined is the all-to-all of the whole tensor, split and joined along that dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hlo_verify.ir import Function, Module, Op, TensorType, Value


def rejoined(module: Module) -> Module:
    """The module with such exchanges of whole tensors; itself where it has none."""
    main = _rejoined(module.main)
    return module if main is module.main else replace(module, main=main)


def _rejoined(function: Function) -> Function:
    makers = {value: op for op in function.ops for value in op.results}
    types = dict(zip(function.arguments, function.argument_types, strict=True))
    types |= {value: kind for op in function.ops for value, kind in zip(op.results, op.types, strict=True)}
    ops: list[Op] = []
    for op in function.ops:
        regions = tuple(map(_rejoined, op.regions))
        changed = any(new is not old for new, old in zip(regions, op.regions, strict=True))
        ops.append(_whole(op, makers, types) or (replace(op, regions=regions) if changed else op))
    same = all(new is old for new, old in zip(ops, function.ops, strict=True))
    return function if same else replace(function, ops=tuple(ops))


def _whole(op: Op, makers: Mapping[Value, Op], types: Mapping[Value, TensorType]) -> Op | None:
    """The all-to-all that a concatenation is the last step of."""
    exchange = makers.get(op.operands[0]) if op.name == "concatenate" else None
    if exchange is None or exchange.name != "mhlo.all_to_all" or exchange.results != op.operands:
        return None
    dimension, count = op.attributes["dimension"], len(op.operands)
    source = _sliced([makers.get(v) for v in exchange.operands], dimension)
    if source is None or types.get(source) != op.types[0]:
        return None
    how = {"split_dimension": dimension, "concat_dimension": dimension, "split_count": count}
    return replace(op, name="all_to_all", operands=(source,), attributes={**exchange.attributes, **how})


def _sliced(slices: Sequence[Op | None], dimension: int) -> Value | None:
    """The tensor of which these are slices of one size along a dimension, one behind the other from its start."""
    found = [op for op in slices if op is not None and op.name == "slice"]
    if len(found) != len(slices) or len({op.operands for op in found}) != 1:
        return None
    size = found[0].types[0].shape[dimension]
    for n, op in enumerate(found):
        starts = [0] * op.types[0].rank
        starts[dimension] = n * size
        if op.types != found[0].types or list(op.attributes["start_indices"]) != starts:
            return None
        if any(stride != 1 for stride in op.attributes["strides"]):
            return None
    return found[0].operands[0]
