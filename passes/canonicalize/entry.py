"""From MLIR to the module that every later pass reads: calls inlined, tuples flattened, attributes plain.

What is dropped changes no value: copies, Shardy's propagation markers, layouts. What is
rewritten has one meaning: `dot` and `broadcast` become `dot_general` and `broadcast_in_dim`.
An operation that is not known here is kept as it is, under its full name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hlo_verify.diagnostics import Annotation, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jaxlib_api import ir
from hlo_verify.passes.canonicalize import bits, shardy_statements
from hlo_verify.passes.canonicalize.inline import Builder, Environment, single_block
from hlo_verify.program.ir import Function, Op, TensorType
from hlo_verify.program.mesh import Mesh


@dataclass(frozen=True, slots=True)
class Entry:
    """The entry function, flattened, with what its signature says of each argument and result."""

    name: str
    main: Function
    argument_names: tuple[str, ...]
    argument_shardings: tuple[tuple[str, ...], ...]
    """Every text that places an argument."""
    result_names: tuple[str, ...]
    result_types: tuple[TensorType, ...]
    result_shardings: tuple[tuple[str, ...], ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    """The module's own (`num_partitions`, …)."""
    meshes: tuple[Mesh, ...] = ()
    sharding_texts: frozenset[str] = frozenset()
    """Every sharding that is written on any operation."""


def canonicalize(module: Any, path: str = "") -> Entry:
    """The entry function of an MLIR module (`main`, or the only public one).

    `path` is the file that locations in the module's own text refer to. Raises `InputError`.
    """
    builder = Builder(module, path)
    function = entry_function(builder)
    block = single_block(function)
    env: Environment = {}
    arguments = builder.bind(block.arguments, env)
    ops: list[Op] = []
    results = builder.block(block, env, ops)
    signature = function.attributes["function_type"].value
    inputs, outputs = list(signature.inputs), list(signature.results)
    arg_attrs, res_attrs = _dictionaries(function, "arg_attrs", inputs), _dictionaries(function, "res_attrs", outputs)
    attributes = builder.attributes.of(module.operation)
    main = bits.marked(Function(arguments, builder.flat_types(inputs), tuple(ops), results))
    return Entry(
        name=str(attributes.get("sym_name", "")),
        main=main,
        argument_names=_argument_names(builder, block.arguments, arg_attrs),
        argument_shardings=_shardings(
            builder, inputs, arg_attrs, _of_arguments(builder, inputs), attributes.get("spmd_parameters_shardings")
        ),
        result_names=_result_names(builder, outputs, res_attrs),
        result_types=builder.flat_types(outputs),
        result_shardings=_shardings(
            builder, outputs, res_attrs, _of_results(builder, outputs, block), attributes.get("spmd_output_sharding")
        ),
        attributes=attributes,
        meshes=tuple(builder.meshes.values()),
        sharding_texts=frozenset(builder.attributes.sharding_texts),
    )


def entry_function(builder: Builder) -> Any:
    if "main" in builder.functions:
        return builder.functions["main"]
    public = [f for f in builder.functions.values() if "sym_visibility" not in f.attributes]
    if len(public) != 1:
        raise InputError(
            f"the module has no function @main and {len(public)} public functions; name the entry function main",
            Input.UNSUPPORTED_MODULE,
        )
    return public[0]


def _argument_names(builder: Builder, arguments: Iterable[Any], dictionaries: list[Dictionary]) -> tuple[str, ...]:
    names: list[str] = []
    for argument, attributes in zip(arguments, dictionaries, strict=True):
        count = len(builder.flat_type(argument.type))
        name = attributes.get("jax.arg_info") or builder.locations.of(argument.location).name
        if not name:
            names += [f"arg{len(names) + k}" for k in range(count)]
        else:
            names += [name] if count == 1 else [f"{name}[{k}]" for k in range(count)]
    return tuple(names)


def _result_names(builder: Builder, types: list[Any], dictionaries: list[Dictionary]) -> tuple[str, ...]:
    names: list[str] = []
    for type_, attributes in zip(types, dictionaries, strict=True):
        name, count = attributes.get("jax.result_info"), len(builder.flat_type(type_))
        names += [name] if name and count == 1 else [f"result[{len(names) + k}]" for k in range(count)]
    return tuple(names)


Statements = list[tuple[Any, ...]]
"""What Shardy says of each flat argument or result, in any number of places, as attributes."""


def _of_arguments(builder: Builder, types: list[Any]) -> Statements:
    count = len(builder.flat_types(types))
    return [_that_say(said) for said in shardy_statements.of_all(builder.module, shardy_statements.ARGUMENTS, count)]


def _of_results(builder: Builder, types: list[Any], block: Any) -> Statements:
    returned = list(block.operations)[-1].operands
    counts = [len(builder.flat_type(type_)) for type_ in types]
    of_each = [
        said
        for value, count in zip(returned, counts, strict=True)
        for said in shardy_statements.of_returned(value, count)
    ]
    of_all = shardy_statements.of_all(builder.module, shardy_statements.RESULTS, sum(counts))
    return [_that_say(*both) for both in zip(of_each, of_all, strict=True)]


def _that_say(*said: Any) -> tuple[Any, ...]:
    return tuple(each for each in said if each is not None)


def _shardings(
    builder: Builder,
    types: list[Any],
    dictionaries: list[Dictionary],
    shardy: Statements,
    spmd: str | tuple[str, ...] | None,
) -> tuple[tuple[str, ...], ...]:
    """The sharding texts of flattened arguments or results, an element of a tuple's sharding for each leaf: those of
    the signature, those of Shardy elsewhere, and those that the partitioner left on the module (`spmd`)."""
    texts: list[tuple[str, ...]] = []
    read = builder.attributes.sharding
    for type_, attributes in zip(types, dictionaries, strict=True):
        own = [read(attributes[key]) for key in SAYS if key in attributes]
        count = len(builder.flat_type(type_))
        is_tuple = isinstance(type_, ir.TupleType)
        leaves = [split_tuple_sharding(text, count) if is_tuple else [text] for text in own]
        stated = shardy_statements.of_signature(attributes, builder.module.context, count)
        leaves += [] if stated is None else [[read(each) for each in stated]]
        texts += [tuple(each) for each in zip(*leaves, strict=True)] if leaves else [()] * count
    texts = [(*own, *map(read, said)) for own, said in zip(texts, shardy, strict=True)]
    if spmd is not None:
        left = split_tuple_sharding(spmd, len(texts)) if isinstance(spmd, str) else list(spmd)
        if len(left) != len(texts):
            raise InputError(
                f"the module has {len(left)} shardings for {len(texts)} arguments or results", Annotation.WRONG_RANK
            )
        texts = [(*own, text) for own, text in zip(texts, left, strict=True)]
    return tuple(texts)


SAYS = ("sdy.sharding", "mhlo.sharding")
"""Attributes of arguments and results that place them."""

Dictionary = dict[str, Any]


def _dictionaries(function: Any, key: str, types: list[Any]) -> list[Dictionary]:
    """The attribute dictionaries of a function's arguments or results, strings as Python's."""
    if key not in function.attributes:
        return [{} for _ in types]
    dictionaries = []
    for attributes in function.attributes[key]:
        named = {attributes[k].name: attributes[k].attr for k in range(len(attributes))}
        dictionaries.append(
            {n: a.value if n.startswith("jax.") and isinstance(a, ir.StringAttr) else a for n, a in named.items()}
        )
    return dictionaries


def split_tuple_sharding(text: str, count: int) -> list[str]:
    """The sharding's text for each leaf of a tuple; one that is no tuple's holds for each. Raises `InputError`."""
    if not text.startswith("{{"):
        return [text] * count
    parts, depth, start = [], 0, 1
    for k, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if depth == 2 and char == "{":
            start = k
        elif depth == 1 and char == "}":
            parts.append(text[start : k + 1])
    if len(parts) != count:
        raise InputError(f"a sharding has {len(parts)} elements for a tuple of {count}: {text}", Annotation.WRONG_RANK)
    return parts
