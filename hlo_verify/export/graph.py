"""A module as a graph: a node for each argument, operation and result, in nested namespaces.

Regions that are run (loops, branches, what each device does) are drawn in a namespace of their operation; those that
are applied to elements (reducers, comparators) are part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hlo_verify.program.ir import Function, Location, Module, Name, Op, TensorType
from hlo_verify.program.op_families import RUNS_REGIONS
from hlo_verify.program.sharding import Sharding

LONGEST = 200
"""Characters of an attribute that are told."""

LARGEST = 64
"""Elements of a table that are told."""

REGIONS = {"while": ("condition", "body"), "sdy.manual_computation": ("each device",), "if": ("true", "false")}
"""What the regions of an operation are called; others are numbered."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node. `inputs` are the nodes whose outputs it takes, with the output's number; `outputs` the types of its own;
    `told` what is said of it, in order. `op` is its operation; arguments and results have none."""

    id: str
    label: str
    namespace: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[TensorType, ...]
    told: tuple[tuple[str, str], ...] = ()
    op: Op | None = None
    operand_types: tuple[TensorType, ...] = ()


@dataclass(slots=True)
class Graph:
    """A module's nodes, in order."""

    id: str
    nodes: list[Node] = field(default_factory=list)

    def of_operations(self) -> dict[int, str]:
        """The node of each operation, by the operation's identity."""
        return {id(node.op): node.id for node in self.nodes if node.op is not None}


def graph_of(module: Module, name: str) -> Graph:
    """The graph of a module, by which it is called."""
    made = _Maker(Graph(name))
    columns = (module.main.arguments, module.main.argument_types, module.argument_names, module.argument_shardings)
    for number, (value, type_, said, sharding) in enumerate(zip(*columns, strict=True)):
        at = made.add(f"argument {number}", said, "arguments", (), (type_,), _placed(sharding))
        made.values[value] = (at, 0)
        made.types[value] = type_
    made.function(module.main, "", "")
    columns = (module.main.results, module.result_types, module.result_names, module.result_shardings)
    for number, (value, type_, said, sharding) in enumerate(zip(*columns, strict=True)):
        made.add(
            f"result {number}",
            said or f"result {number}",
            "results",
            (made.values[value],),
            (type_,),
            _placed(sharding),
        )
    return made.graph


def told(sharding: Sharding) -> str:
    """A sharding in words: tiles along each dimension, copies, addends."""
    if sharding.only is not None:
        return f"on device {sharding.only}"
    count = int(np.prod(sharding.tiles, dtype=np.int64))
    said = f"tiles {' × '.join(map(str, sharding.tiles))}" if count > 1 else "whole"
    copies = sharding.devices // (count * sharding.addend_count)
    said += f", {sharding.addend_count} addends" if sharding.addends is not None else ""
    return said + (f", {copies} copies" if copies > 1 else "")


def _placed(sharding: Sharding | None) -> tuple[tuple[str, str], ...]:
    return () if sharding is None else (("sharding", told(sharding)),)


@dataclass(slots=True)
class _Maker:
    graph: Graph
    values: dict[Name, tuple[str, int]] = field(default_factory=dict)
    types: dict[Name, TensorType] = field(default_factory=dict)

    def add(
        self,
        at: str,
        label: str,
        namespace: str,
        inputs: tuple[tuple[str, int], ...],
        outputs: tuple[TensorType, ...],
        said: tuple[tuple[str, str], ...] = (),
        op: Op | None = None,
        operand_types: tuple[TensorType, ...] = (),
    ) -> str:
        self.graph.nodes.append(Node(at, label, namespace, inputs, outputs, said, op, operand_types))
        return at

    def function(self, function: Function, at: str, around: str) -> None:
        """The operations of a function or region, whose nodes' ids begin with `at`."""
        for number, op in enumerate(function.ops):
            here = f"{at}{number}"
            namespace = _joined(around, _scopes(op.location))
            inputs = tuple(self.values[value] for value in op.operands)
            operands = tuple(self.types[value] for value in op.operands)
            self.add(here, op.name, namespace, inputs, op.types, tuple(_attributes(op)), op, operands)
            for n, (value, type_) in enumerate(zip(op.results, op.types, strict=True)):
                self.values[value] = (here, n)
                self.types[value] = type_
            if op.name in RUNS_REGIONS:
                self._regions(op, here, namespace)

    def _regions(self, op: Op, here: str, namespace: str) -> None:
        names = REGIONS.get(op.name, ())
        for n, region in enumerate(op.regions):
            said = names[n] if n < len(names) else f"branch {n}"
            inside = _joined(namespace, f"{op.name} {here}", said)
            prefix = f"{here}.{n}."
            for k, (value, type_) in enumerate(zip(region.arguments, region.argument_types, strict=True)):
                source = self.values[op.operands[k]] if k < len(op.operands) and op.name != "case" else None
                inputs = () if source is None else (source,)
                self.values[value] = (self.add(f"{prefix}argument {k}", f"argument {k}", inside, inputs, (type_,)), 0)
                self.types[value] = type_
            self.function(region, prefix, inside)
            for k, value in enumerate(region.results):
                given = (self.values[value],)
                self.add(f"{prefix}result {k}", f"result {k}", inside, given, (self.types[value],))


def _joined(*scopes: str) -> str:
    return "/".join(scope for scope in scopes if scope)


def _scopes(location: Location) -> str:
    """The scopes that JAX says an operation stands in."""
    *scopes, _ = location.name.split("/")
    return "/".join(scope.strip() for scope in scopes if scope.strip())


def _attributes(op: Op) -> Iterator[tuple[str, str]]:
    """What is said of an operation: where it is from, and its attributes, the long ones in part."""
    if op.location.frames:
        yield "source", str(op.location)
    if op.location.name:
        yield "name", op.location.name[:LONGEST]
    for key, value in op.attributes.items():
        if isinstance(value, Sharding):
            yield key, told(value)
        elif isinstance(value, tuple) and value and all(isinstance(one, Sharding | None) for one in value):
            yield key, "; ".join("not known" if one is None else told(one) for one in value[:LARGEST])
        else:
            yield key, _short(value)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        if value.size > 1 and not any(value.strides):
            return f"all {value.flat[0]}"
        if value.size > LARGEST:
            return f"a table of {' × '.join(map(str, value.shape))}"
        value = value.tolist()
    elif isinstance(value, Mapping):
        return ", ".join(f"{key} = {_short(one)}" for key, one in value.items())
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
