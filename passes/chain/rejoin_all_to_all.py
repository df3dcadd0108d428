"""All-to-alls of a tuple read as the one of a tensor that XLA took apart.

The CPU's `all_to_all_decomposer` slices a tensor along a dimension, exchanges the slices as a tuple and joins what
comes back along the same dimension. Operand r of the tuple goes to member r of a group, and result n comes from member
n, so that what is joined is the all-to-all of the whole tensor, split and joined along that dimension. Slices may have
become another floating-point type on the way, and become what they were again: such conversions are the identity here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import Fresh, Function, Module, Name, Op, TensorType, beyond, operations, value_types


def rejoined(module: Module) -> Module:
    """The module with such exchanges of whole tensors; itself where it has none."""
    if not any(op.name == "mhlo.all_to_all" for op in operations(module.main)):
        return module
    types = value_types(module.main)
    main = _rejoined(module.main, types, beyond(types))
    return module if main is module.main else replace(module, main=main)


def _rejoined(function: Function, types: Mapping[Name, TensorType], fresh: Fresh) -> Function:
    makers = {value: op for op in function.ops for value in op.results}
    ops: list[Op] = []
    changed = False
    for op in function.ops:
        regions = tuple(_rejoined(region, types, fresh) for region in op.regions)
        if any(new is not old for new, old in zip(regions, op.regions, strict=True)):
            op, changed = replace(op, regions=regions), True
        whole = _whole(op, makers, types)
        if whole is None:
            ops.append(op)
        else:
            ops += _with_conversion(whole, types[whole.operands[0]], fresh)
            changed = True
    return replace(function, ops=tuple(ops)) if changed else function


def _whole(op: Op, makers: Mapping[Name, Op], types: Mapping[Name, TensorType]) -> Op | None:
    """The all-to-all that a concatenation is the last step of, but for the type of its elements.

    It joins all results of one exchange, in order, whose operands are all slices of one tensor, in order, all along
    one dimension.
    """
    if op.name != "concatenate":
        return None

    def before(value: Name) -> Name:
        """A value as it was before it was converted from a floating-point type to another."""
        while (made := makers.get(value)) is not None and made.name == "convert":
            if not all(is_float(types[v].dtype) for v in (value, made.operands[0])):
                break
            value = made.operands[0]
        return value

    parts = tuple(map(before, op.operands))
    exchange = makers.get(parts[0])
    if exchange is None or exchange.name != "mhlo.all_to_all" or exchange.results != parts:
        return None
    dimension, count = op.attributes["dimension"], len(parts)
    slices = [made for v in exchange.operands if (made := makers.get(before(v))) is not None and made.name == "slice"]
    sources = {before(made.operands[0]) for made in slices}
    if len(slices) != count or len(sources) != 1 or not _follow_each_other(slices, dimension):
        return None
    source = sources.pop()
    if types[source].shape != op.types[0].shape:
        return None
    how = {"split_dimension": dimension, "concat_dimension": dimension, "split_count": count}
    return replace(op, name="all_to_all", operands=(source,), attributes={**exchange.attributes, **how})


def _with_conversion(op: Op, operand: TensorType, fresh: Fresh) -> Iterator[Op]:
    """The operation with a result of its operand's type, and a conversion behind it where another is wanted."""
    if op.types == (operand,):
        yield op
        return
    between = fresh.one()
    yield replace(op, results=(between,), types=(operand,))
    yield Op("convert", (between,), op.results, op.types, location=op.location, source=op.source)


def _follow_each_other(slices: Sequence[Op], dimension: int) -> bool:
    """Whether slices of one tensor are of one size along a dimension, one behind the other from its start."""
    for n, op in enumerate(slices):
        if op.types != slices[0].types:
            return False
        starts = [0] * op.types[0].rank
        starts[dimension] = n * op.types[0].shape[dimension]
        if list(op.attributes["start_indices"]) != starts or any(stride != 1 for stride in op.attributes["strides"]):
            return False
    return True
