"""Bodies: MLIR blocks as lists of plain operations, with calls inlined and tuples flattened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from hlo_verify.diagnostics import Annotation, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jaxlib_api import ir, sdy
from hlo_verify.passes.canonicalize import shardy_statements
from hlo_verify.passes.canonicalize.attributes import Attributes
from hlo_verify.passes.canonicalize.defaults import RULES
from hlo_verify.passes.canonicalize.locations import Locations
from hlo_verify.passes.canonicalize.resources import Resources
from hlo_verify.program import sharding_text
from hlo_verify.program.ir import NESTING, UNREAD_FIELDS, Function, Name, Op, TensorType
from hlo_verify.program.mesh import Mesh, device_order_of, read_mesh
from hlo_verify.program.op_families import BORDERS, IDENTITIES, OF_ELEMENTS

Values = tuple[Name, ...]
Environment = dict[Any, Values]
"""The flat values that each MLIR value stands for: one, or the leaves of a tuple."""


class Builder:
    """One walk over one module. Every method raises `InputError` for what has no meaning or is not supported."""

    def __init__(self, module: Any, path: str = "") -> None:
        self.module = module
        self.functions: dict[str, Any] = {}
        meshes = shardy_statements.meshes(module)
        for op in module.body.operations:
            name = op.operation.name
            if name == "func.func":
                self.functions[op.attributes["sym_name"].value] = op
            elif name == "sdy.mesh":
                meshes[op.attributes["sym_name"].value] = op.attributes["mesh"]
        self.meshes = {symbol: _ordered(read_mesh(sdy.MeshAttr(mesh))) for symbol, mesh in meshes.items()}
        mesh_texts = {symbol: str(mesh).removeprefix("#sdy.") for symbol, mesh in meshes.items()}
        self.attributes = Attributes(self.meshes, mesh_texts, Resources(module))
        self.locations = Locations(path)
        self.types: dict[Any, tuple[TensorType, ...]] = {}
        self.calls: list[str] = []
        self.next_value = 0

    # Values and types

    def fresh(self, count: int) -> Values:
        start = self.next_value
        self.next_value += count
        return tuple(range(start, start + count))

    def flat_type(self, type_: Any) -> tuple[TensorType, ...]:
        if type_ not in self.types:
            self.types[type_] = tuple(_flatten(type_))
        return self.types[type_]

    def flat_types(self, types: Iterable[Any]) -> tuple[TensorType, ...]:
        return tuple(leaf for type_ in types for leaf in self.flat_type(type_))

    def bind(self, arguments: Iterable[Any], env: Environment) -> Values:
        bound: list[Name] = []
        for argument in arguments:
            env[argument] = self.fresh(len(self.flat_type(argument.type)))
            bound += env[argument]
        return tuple(bound)

    # Bodies

    def block(self, block: Any, env: Environment, ops: list[Op]) -> Values:
        """Append the block's operations to `ops`; what its terminator returns."""
        for op in block.operations:
            operation = op.operation
            name = operation.name
            if name in TERMINATORS:
                return _operands(operation, env)
            rule = STRUCTURAL.get(name)
            if rule is None or _has_unread_fields(operation):
                ops.append(self.operation(operation, name, env))
            else:
                rule(self, operation, env, ops)
        return ()

    def operation(self, operation: Any, name: str, env: Environment) -> Op:
        operands = _operands(operation, env)
        types: tuple[TensorType, ...] = ()
        results: Values = ()
        for result in operation.results:
            flat = self.flat_type(result.type)
            env[result] = self.fresh(len(flat))
            types += flat
            results += env[result]
        attributes = self.attributes.of(operation)
        if attributes.get("call_target_name") in BORDERS:  # their operands' shardings count too
            attributes["operand_sharding"] = self.sharding_of(operation.operands[0])
        regions = tuple(self.region(region, env) for region in operation.regions)
        if "called_computations" in attributes:
            regions += tuple(map(self.called, attributes["called_computations"]))
        name = name.removeprefix("stablehlo.")
        operand_types = self.flat_types(operand.type for operand in operation.operands)
        if name == "custom_call":
            attributes |= _tuples(operation)
            if attributes.get("call_target_name") in IDENTITIES and operand_types != types:
                name = "custom_call that gives its operands in other types"  # so that no rule claims to know it
        if name in RULES:
            name = RULES[name](name, attributes, operand_types, types)
        if name != "custom_call" and UNREAD_FIELDS in attributes.get("frontend_attributes", ()):
            name = f"{name} with fields that StableHLO does not have"  # so that no rule claims to know it
        location = self.locations.of(operation.location)
        return Op(name, operands, results, types, attributes, regions, location, operation)

    def sharding_of(self, value: Any) -> str | None:
        """The HloSharding that a value is annotated with: by its operation, or its function's signature."""
        owner, number, count = value.owner, 0, 1
        if isinstance(owner, ir.Block):
            function = owner.owner.operation
            if "arg_attrs" not in function.attributes:
                return None
            given = function.attributes["arg_attrs"][ir.BlockArgument(value).arg_number]
        else:
            given, number, count = owner.attributes, ir.OpResult(value).result_number, len(owner.results)
        if "mhlo.sharding" not in given:
            return None
        text = self.attributes.sharding(given["mhlo.sharding"])
        if not sharding_text.is_tuple(text):
            return text
        elements = sharding_text.leaves(text)
        return elements[number] if len(elements) == count else None

    def region(self, region: Any, env: Environment) -> Function:
        blocks = list(region.blocks)
        if not blocks:
            return Function((), (), (), ())
        if len(blocks) > 1:
            raise InputError(
                "a region with control flow between several blocks is not supported", Input.UNSUPPORTED_MODULE
            )
        arguments = self.bind(blocks[0].arguments, env)
        types = self.flat_types(argument.type for argument in blocks[0].arguments)
        ops: list[Op] = []
        results = self.block(blocks[0], env, ops)
        return Function(arguments, types, tuple(ops), results)

    def called(self, symbol: str) -> Function:
        """A function that a custom call refers to by name, as a region."""
        function = self.function(symbol)
        env: Environment = {}
        block = single_block(function)
        arguments = self.bind(block.arguments, env)
        ops: list[Op] = []
        self.calls.append(symbol)
        results = self.block(block, env, ops)
        self.calls.pop()
        return Function(arguments, self.flat_types(a.type for a in block.arguments), tuple(ops), results)

    def inline(self, symbol: str, operation: Any, env: Environment, ops: list[Op]) -> None:
        """Put the body of a function in the place of a call to it."""
        block = self.open(symbol)
        with self.locations.inside(operation.location):
            self.substitute(block, operation, env, {}, ops)
        self.calls.pop()

    def open(self, symbol: str) -> Any:
        """The body of a function, which is being called from now on."""
        block = single_block(self.function(symbol))
        self.calls.append(symbol)
        return block

    def substitute(self, block: Any, operation: Any, env: Environment, inner: Environment, ops: list[Op]) -> None:
        """Run a block on an operation's operands and let what it returns be the operation's results."""
        taken = self.flat_types(argument.type for argument in block.arguments)
        given = self.flat_types(operand.type for operand in operation.operands)
        if taken != given:
            raise InputError(
                f"{operation.name} gives {_listed(given)} to a computation that takes {_listed(taken)}: the module is "
                "damaged, or was edited",
                Input.DAMAGED,
            )
        operands = iter(_operands(operation, env))
        for argument in block.arguments:
            inner[argument] = tuple(next(operands) for _ in self.flat_type(argument.type))
        self.let(operation, self.block(block, inner, ops), env)

    def let(self, operation: Any, values: Iterable[Name], env: Environment) -> None:
        """Let the operation's results be these flat values."""
        remaining = list(values)
        if len(remaining) != len(self.flat_types(result.type for result in operation.results)):
            raise InputError(
                f"{operation.name} has other results than what it stands for: an asynchronous operation that is not "
                "awaited where it was begun is not supported",
                Input.UNSUPPORTED_MODULE,
            )
        for result in operation.results:
            count = len(self.flat_type(result.type))
            env[result], remaining = tuple(remaining[:count]), remaining[count:]

    def function(self, symbol: str) -> Any:
        if symbol not in self.functions:
            raise InputError(f"the module calls @{symbol} and does not define it", Input.UNSUPPORTED_MODULE)
        if symbol in self.calls:
            raise InputError(
                f"the function @{symbol} calls itself; StableHLO has no recursion", Input.UNSUPPORTED_MODULE
            )
        return self.functions[symbol]


def _has_unread_fields(operation: Any) -> bool:
    given = operation.attributes
    return "mhlo.frontend_attributes" in given and UNREAD_FIELDS in str(given["mhlo.frontend_attributes"])


def _ordered(mesh: Mesh) -> Mesh:
    """The mesh in the order of devices that the name of its first axis holds (see `proto_edits.name_device_orders`)."""
    order = device_order_of(mesh.axes[0][0]) if mesh.axes else ()
    if order and sorted(order) != list(range(mesh.size)):
        raise InputError(
            f"replica groups must name each of their mesh's {mesh.size} devices once: {mesh}", Annotation.WRONG_MESH
        )
    return replace(mesh, device_ids=order) if order else mesh


def _listed(types: Iterable[TensorType]) -> str:
    return ", ".join(map(str, types)) or "nothing"


def _operands(operation: Any, env: Environment) -> Values:
    return tuple([value for operand in operation.operands for value in env[operand]])


def single_block(function: Any) -> Any:
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 1:
        name = function.attributes["sym_name"].value
        raise InputError(f"the function @{name} has {len(blocks)} blocks; one is supported", Input.UNSUPPORTED_MODULE)
    return blocks[0]


def _tuples(operation: Any) -> dict[str, Any]:
    """How a call's operands and results are nested where that is more than a list, for it sees that."""
    operands = tuple(_nesting(operand.type) for operand in operation.operands)
    results = tuple(_nesting(result.type) for result in operation.results)
    if len(results) == 1 and isinstance(results[0], tuple) and len(results[0]) > 1:
        (results,) = results  # what HLO has in the place of several results
    return {NESTING: (operands, results)} if any((*operands, *results)) else {}


def _nesting(type_: Any) -> Any:
    """A tuple of what is in a tuple; nothing of a tensor."""
    if not isinstance(type_, ir.TupleType):
        return ""
    return tuple(_nesting(type_.get_type(k)) for k in range(type_.num_types)) or "empty"


def _flatten(type_: Any) -> Iterator[TensorType]:
    if isinstance(type_, ir.TupleType):
        for k in range(type_.num_types):
            yield from _flatten(type_.get_type(k))
    elif isinstance(type_, ir.RankedTensorType):
        if not type_.has_static_shape:
            raise InputError(
                f"the module has a tensor of dynamic shape, {type_}; only static shapes are supported",
                Input.UNSUPPORTED_MODULE,
            )
        yield TensorType(tuple(type_.shape), str(type_.element_type))
    elif str(type_) == "!stablehlo.token":
        yield TensorType((), "token")
    else:
        yield TensorType((), str(type_))


# Operations that do not reach the later passes

Rule = Callable[[Builder, Any, Environment, list[Op]], None]


def _call(builder: Builder, operation: Any, env: Environment, ops: list[Op]) -> None:
    builder.inline(operation.attributes["callee"].value, operation, env, ops)


def _composite(builder: Builder, operation: Any, env: Environment, ops: list[Op]) -> None:
    builder.inline(operation.attributes["decomposition"].value, operation, env, ops)


def _body(builder: Builder, operation: Any, env: Environment, ops: list[Op]) -> None:
    with builder.locations.inside(operation.location):
        builder.substitute(operation.regions[0].blocks[0], operation, env, env, ops)


def _forward(builder: Builder, operation: Any, env: Environment, ops: list[Op]) -> None:
    builder.let(operation, _operands(operation, env), env)


def _start(builder: Builder, operation: Any, env: Environment, ops: list[Op]) -> None:
    """An asynchronous computation, run where it starts; the future stands for its results."""
    block = operation.regions[0].blocks[0]
    for argument, operand in zip(block.arguments, operation.operands, strict=True):
        env[argument] = env[operand]
    env[operation.results[0]] = builder.block(block, env, ops)


def _start_of_hlo(builder: Builder, operation: Any, env: Environment, ops: list[Op]) -> None:
    """The same, of a computation that HLO names: `call-start`, `copy-start`, `all-gather-start` …"""
    block = builder.open(operation.attributes["called_computation"].value)
    with builder.locations.inside(operation.location):
        inner = dict(zip(block.arguments, (env[operand] for operand in operation.operands), strict=True))
        env[operation.results[0]] = builder.block(block, inner, ops)
    builder.calls.pop()


def _update(builder: Builder, operation: Any, env: Environment, ops: list[Op]) -> None:
    env[operation.results[0]] = env[operation.operands[0]]


def _select_element(builder: Builder, operation: Any, env: Environment, ops: list[Op]) -> None:
    (operand,), index = operation.operands, operation.attributes["index"].value
    start = sum(len(builder.flat_type(operand.type.get_type(k))) for k in range(index))
    env[operation.results[0]] = env[operand][start : start + len(builder.flat_type(operation.results[0].type))]


def _drop(builder: Builder, operation: Any, env: Environment, ops: list[Op]) -> None:
    """No results and no effect on values."""


def _constraint(builder: Builder, operation: Any, env: Environment, ops: list[Op]) -> None:
    """A placement is dropped where a region says it of an element: JAX writes one for each value of a comparator or
    reducer on a mesh with explicit axes, and an element has nothing to split. Addends (`unreduced`) are no element."""
    is_element = operation.parent.name.removeprefix("stablehlo.") in OF_ELEMENTS
    if is_element and "unreduced" not in str(operation.attributes["sharding"]):
        _forward(builder, operation, env, ops)
    else:
        ops.append(builder.operation(operation, operation.name, env))


TERMINATORS = frozenset({"func.return", "stablehlo.return", "mhlo.return", "sdy.return"})

STRUCTURAL: dict[str, Rule] = {
    "func.call": _call,
    "stablehlo.composite": _composite,
    "sdy.named_computation": _body,
    "mhlo.fusion": _body,
    "stablehlo.tuple": _forward,
    "stablehlo.get_tuple_element": _select_element,
    "mhlo.copy": _forward,
    "mhlo.domain": _forward,
    "stablehlo.async_start": _start,
    "stablehlo.async_done": _forward,
    "mhlo.async_start": _start_of_hlo,
    "mhlo.async_update": _update,
    "mhlo.async_done": _forward,
    "sdy.propagation_barrier": _forward,
    "sdy.data_flow_edge": _forward,
    "sdy.func_data_flow_edge": _forward,
    "sdy.sharding_group": _drop,
    "sdy.sharding_constraint": _constraint,
}
