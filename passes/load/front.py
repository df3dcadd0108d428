"""A function in front of a module's own: it takes other arguments, makes the module's of them, and may change results.

So a module is had for inputs of one kind, or in parts, and nothing that comes after needs to know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hlo_verify.jaxlib_api import ir
from hlo_verify.passes.canonicalize.entry import canonicalize
from hlo_verify.passes.load.load import Source, build
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.ir import Module
from hlo_verify.program.preconditions import assumed
from hlo_verify.program.sharding import Sharding

CHANNEL = 1 << 30
"""The channel of a sum over devices: one that no module uses."""

WHOLE = "main.whole"
"""What the module's own function is called then."""


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """An argument of the new function: of that shape, with the element type of the module's argument `origin`."""

    origin: int
    name: str
    shape: tuple[int, ...]
    sharding: Sharding | None = None


def as_they_are(module: Module) -> list[Taken]:
    """The module's own arguments."""
    each = zip(module.argument_names, module.main.argument_types, module.argument_shardings, strict=True)
    return [Taken(n, name, type_.shape, sharding) for n, (name, type_, sharding) in enumerate(each)]


class Writer:
    """Writes StableHLO operations where the new function is."""

    def __init__(self, number: str, types: Sequence[Any]) -> None:
        self._number = number
        self._types = types

    def zeros(self, n: int) -> Any:
        """Zeros for an argument of the module."""
        type_ = self._types[n]
        if str(type_.element_type) == "i1":
            return self.made("constant", type_.shape, [], type_.element_type, value=f"dense<false> : {type_}")
        return self.constant(0, type_)

    def made(self, name: str, shape: Sequence[int], operands: Sequence[Any], element: Any = None, **given: str) -> Any:
        """The result of an operation; attributes are given as text, elements are those of the first operand."""
        element = operands[0].type.element_type if element is None else element
        attributes = {key: ir.Attribute.parse(text) for key, text in given.items()}
        type_ = ir.RankedTensorType.get(list(shape), element)
        return ir.Operation.create(f"stablehlo.{name}", [type_], list(operands), attributes).result

    def constant(self, value: int, like: Any) -> Any:
        """A tensor of that type and that number everywhere."""
        element = like.element_type
        if str(element).startswith("complex"):  # of which jaxlib 0.10 takes no constant
            part = ir.RankedTensorType.get(list(like.shape), ir.ComplexType(element).element_type)
            return self.made("complex", like.shape, [self.constant(n, part) for n in (value, 0)], element)
        text = f"{value}.0" if str(element).startswith(("f", "bf")) else str(value)
        return self.made("constant", like.shape, [], element, value=f"dense<{text}> : {like}")

    def joined(self, parts: Sequence[Any], k: int, shape: Sequence[int]) -> Any:
        """Tensors one after another along a dimension."""
        return self.made("concatenate", shape, parts, dimension=f"{k} : i64")

    def spread(self, value: Any, shape: Sequence[int]) -> Any:
        """A tensor whose dimensions of one element are repeated."""
        dimensions = ", ".join(map(str, range(len(shape))))
        return self.made("broadcast_in_dim", shape, [value], broadcast_dimensions=_array(dimensions))

    def scaled(self, value: Any, factor: int) -> Any:
        """A tensor times a number."""
        shape = value.type.shape
        return value if factor == 1 else self.made("multiply", shape, [value, self.constant(factor, value.type)])

    def added(self, one: Any, other: Any) -> Any:
        return self.made("add", one.type.shape, [one, other])

    def summed(self, value: Any, devices: int) -> Any:
        """The sum of what all devices hold."""
        element = value.type.element_type
        attributes = {
            "replica_groups": ir.Attribute.parse(f"dense<[{list(range(devices))}]> : tensor<1x{devices}xi64>"),
            "channel_handle": ir.Attribute.parse(f"#stablehlo.channel_handle<handle = {CHANNEL}, type = 1>"),
            "use_global_device_ids": ir.UnitAttr.get(),
        }
        op = ir.Operation.create("stablehlo.all_reduce", [value.type], [value], attributes, regions=1)
        scalar = ir.RankedTensorType.get([], element)
        block = op.regions[0].blocks.append(scalar, scalar)
        with ir.InsertionPoint(block):
            ir.Operation.create("stablehlo.return", [], [self.added(*block.arguments)])
        return op.result

    def sliced(self, value: Any, k: int, start: int, size: int) -> Any:
        """A part of a tensor along a dimension."""
        shape = list(value.type.shape)
        starts, limits = [0] * len(shape), list(shape)
        starts[k], limits[k], shape[k] = start, start + size, size
        return self.made(
            "slice",
            shape,
            [value],
            start_indices=_array(starts),
            limit_indices=_array(limits),
            strides=_array([1] * len(shape)),
        )

    def padded(self, value: Any, k: int, size: int) -> Any:
        """A tensor with zeros after its end, up to that size."""
        shape = list(value.type.shape)
        high = [0] * len(shape)
        high[k], shape[k] = size - shape[k], size
        zero = self.constant(0, ir.RankedTensorType.get([], value.type.element_type))
        nothing = _array([0] * len(shape))
        return self.made(
            "pad",
            shape,
            [value, zero],
            edge_padding_low=nothing,
            edge_padding_high=_array(high),
            interior_padding=nothing,
        )

    def held(self, value: Any, k: int, starts: Sequence[int], size: int) -> Any:
        """The part of a tensor along a dimension that starts on each device where a table says."""
        integer = ir.IntegerType.get_signless(32)
        unsigned = ir.IntegerType.get_unsigned(32)
        device = self.made(self._number, [], [], unsigned)
        table = self.made(
            "constant", [len(starts)], [], integer, value=f"dense<{list(starts)}> : tensor<{len(starts)}xi32>"
        )
        one = self.made("dynamic_slice", [1], [table, device], slice_sizes=_array([1]))
        start = self.made("reshape", [], [one])
        zero = self.constant(0, ir.RankedTensorType.get([], integer))
        shape = list(value.type.shape)
        places = [start if n == k else zero for n in range(len(shape))]
        shape[k] = size
        return self.made("dynamic_slice", shape, [value, *places], slice_sizes=_array(shape))


def _array(numbers: Sequence[int] | str) -> str:
    text = numbers if isinstance(numbers, str) else ", ".join(map(str, numbers))
    return f"array<i64: {text}>" if text else "array<i64>"


Enter = Callable[[Writer, list[Any]], list[Any]]
"""Makes the module's arguments of what the new function takes."""

Leave = Callable[[Writer, list[Any]], list[Any]]
"""Makes the new function's results of the module's."""


def is_plain(module: Module) -> bool:
    """Whether a module's own function takes and gives tensors, none of them in tuples."""
    function_type = _entry(module.mlir).attributes["function_type"].value
    return len(function_type.inputs) == len(module.argument_names) and all(
        isinstance(each, ir.RankedTensorType) for each in (*function_type.inputs, *function_type.results)
    )


def _entry(mlir: Any) -> Any:
    """The function @main, or the only public one."""
    functions = [f for f in mlir.body.operations if f.operation.name == "func.func"]
    named = [f for f in functions if f.attributes["sym_name"].value == "main"]
    return (named or [f for f in functions if "sym_visibility" not in f.attributes])[0]


def put_in_front(
    module: Module,
    takes: Sequence[Taken],
    enter: Enter,
    leave: Leave | None = None,
    gives: Sequence[tuple[str, Sharding | None]] | None = None,
) -> Module:
    """The module whose function takes those arguments; `gives` are its results, with their names and placements, if
    they are others."""
    mlir = ir.Module.parse(module.bytecode(), module.mlir.context)
    _wrap(mlir, module, takes, enter, leave)
    source = Source(mlir, module.partitions, module.replicas, module.notes)
    made = build(source, canonicalize(mlir, module.path), None, "")
    return replace(
        made,
        argument_names=tuple(each.name for each in takes),
        argument_shardings=tuple(each.sharding for each in takes),
        result_names=module.result_names if gives is None else tuple(name for name, _ in gives),
        result_shardings=module.result_shardings if gives is None else tuple(sharding for _, sharding in gives),
        name=module.name,
        partitions=module.partitions,
        replicas=module.replicas,
        path=module.path,
        unplaced={},
        assumed=tuple(_assumed(module, each) for each in takes),
    )


def _assumed(module: Module, taken: Taken) -> Values | None:
    """What is assumed of an argument that is one of the module's, or made of a part of one."""
    values = assumed(module)[taken.origin]
    is_whole = tuple(taken.shape) == module.main.argument_types[taken.origin].shape
    return values if values is None or is_whole else values.of_each


def _wrap(mlir: Any, module: Module, takes: Sequence[Taken], enter: Enter, leave: Leave | None) -> None:
    number = "replica_id" if module.replicas > 1 else "partition_id"
    with mlir.context, mlir.operation.location:
        main = _entry(mlir)
        names = [op.attributes["sym_name"].value for op in mlir.body.operations if "sym_name" in op.attributes]
        before = sum(name.startswith(WHOLE) for name in names)
        whole = f"{WHOLE}.{before}"
        main.attributes["sym_name"] = ir.StringAttr.get(whole)
        main.attributes["sym_visibility"] = ir.StringAttr.get("private")
        function_type = main.attributes["function_type"].value
        arguments = list(main.regions[0].blocks[0].arguments)
        types = [ir.RankedTensorType.get(list(t.shape), arguments[t.origin].type.element_type) for t in takes]
        places = [ir.Location.name(each.name) for each in takes]
        with main.location, ir.InsertionPoint(main):
            attributes = {"sym_name": ir.StringAttr.get("main")}
            attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, list(function_type.results)))
            if leave is None and "res_attrs" in main.attributes:
                attributes["res_attrs"] = main.attributes["res_attrs"]
            wrapper = ir.Operation.create("func.func", [], [], attributes, regions=1)
        block = wrapper.regions[0].blocks.append(*types, arg_locs=places)
        with main.location, ir.InsertionPoint(block):
            writer = Writer(number, [argument.type for argument in arguments])
            callee = {"callee": ir.FlatSymbolRefAttr.get(whole)}
            operands = enter(writer, list(block.arguments))
            call = ir.Operation.create("func.call", list(function_type.results), operands, callee)
            given = list(call.results) if leave is None else leave(writer, list(call.results))
            ir.Operation.create("func.return", [], given)
        found = ir.FunctionType.get(types, [value.type for value in given])
        wrapper.attributes["function_type"] = ir.TypeAttr.get(found)
