"""Functions of what is looked up in tables of constants, as lookups in tables of these functions.

    sqrt(1 - a[t])  =  b[t], where b = sqrt(1 - a)            x / c  =  x * d, where d = 1 / c

A diffusion's schedule is looked up by one program, which computes `sqrt(1 - a[t])`; another one holds `sqrt(1 - a)` as
numbers. So what is done element by element, to what is looked up at the same places and to single numbers, is done to
the tables instead, and a division by a table is a multiplication: over the reals that is the same program. What it then
computes of constants alone may be a table of the other one (`rounded_tables`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hlo_verify.passes.chain.closed_values import closed_values
from hlo_verify.program.attributes import elements_once, fingerprint
from hlo_verify.program.element_types import DTYPES, is_float
from hlo_verify.program.ir import Fresh, Function, Module, Name, Op, TensorType, fresh_in, used
from hlo_verify.program.op_families import ELEMENTWISE, KEEPS_SPLATS, LOOKUPS, RESHAPES

_MOVES = KEEPS_SPLATS & RESHAPES
"""What elements go through after a lookup, of one operand."""


@dataclass(frozen=True, slots=True)
class _Lookup:
    """A value that is looked up in a table that depends on no argument."""

    table: Name
    type: TensorType
    ops: tuple[Op, ...]
    """What looks it up, and what moves it then."""

    @property
    def way(self) -> tuple[Any, ...]:
        """Which elements of the table are where."""
        first, *others = self.ops
        moves = tuple((op.name, op.types, fingerprint(op.attributes)) for op in others)
        return self.type, first.name, first.operands[1:], first.types, fingerprint(first.attributes), moves


def with_lookups_last(module: Module) -> Module:
    """The module with functions of tables in the place of functions of what is looked up there; the module itself, if
    there are none."""
    tables = {name: value.type for name, value in closed_values(module.main).items()}
    moving = _Moving(fresh_in(module.main), tables)
    main = moving.function(module.main)
    return replace(module, main=main) if moving.made else module


@dataclass(slots=True)
class _Moving:
    """What is known of the values of a function on the way through it."""

    fresh: Fresh
    closed: dict[Name, TensorType]
    """The values that depend on no argument."""
    lookups: dict[Name, _Lookup] = field(default_factory=dict)
    splats: dict[Name, Any] = field(default_factory=dict)
    """The values of which all elements are one number, which is written down."""
    moved: dict[Name, Op] = field(default_factory=dict)
    """What moves elements of values that depend on no argument, by its result."""
    made: set[Name] = field(default_factory=set)

    def function(self, function: Function) -> Function:
        """A function, or a region, that is rewritten. What was made and is not needed in the end is left out."""
        ops = [each for op in function.ops for each in self._op(op)]
        needed, kept = set(function.results), list[Op]()
        for op in reversed(ops):
            if op.regions or not self.made.issuperset(op.results) or not needed.isdisjoint(op.results):
                kept.append(op)
                needed |= used(op)
        return replace(function, ops=tuple(reversed(kept)))

    def _op(self, op: Op) -> list[Op]:
        if op.regions:
            return [replace(op, regions=tuple(map(self.function, op.regions)))]
        if len(op.results) != 1:
            return [op]
        (name,) = op.results
        self._note(op)
        if name in self.closed and op.name in _MOVES and op.operands[0] in self.closed:
            self.moved[name] = op
        if name in self.closed or not is_float(op.types[0].dtype):
            return [op]
        if op.name in LOOKUPS and op.operands[0] in self.closed:
            self.lookups[name] = _Lookup(op.operands[0], self.closed[op.operands[0]], (op,))
        elif op.name in _MOVES and len(op.operands) == 1 and op.operands[0] in self.lookups:
            found = self.lookups[op.operands[0]]
            self.lookups[name] = replace(found, ops=(*found.ops, op))
        elif op.name in ELEMENTWISE:
            return self._of_tables(op) or self._multiplied(op) or [op]
        return [op]

    def _note(self, op: Op) -> None:
        """Whether a value is one number."""
        if op.name == "constant":
            elements = elements_once(op.attributes["value"])
            if elements.size == 1:
                self.splats[op.results[0]] = elements.reshape(-1)[0]
        elif op.name in KEEPS_SPLATS and len(op.operands) == 1 and op.operands[0] in self.splats:
            self.splats[op.results[0]] = self.splats[op.operands[0]]

    def _of_tables(self, op: Op) -> list[Op]:
        """A function of what is looked up at the same places: the same one of the tables, looked up there."""
        given = [self.lookups.get(v) for v in op.operands]
        found = next((each for each in given if each is not None), None)
        if found is None or any(
            v not in self.splats if each is None else each.way != found.way
            for v, each in zip(op.operands, given, strict=True)
        ):
            return []
        if {found.type.dtype} != {op.types[0].dtype, found.ops[-1].types[0].dtype}:
            return []
        ops: list[Op] = []
        operands = tuple(
            self._splat(self.splats[v], found.type, op, ops) if each is None else each.table
            for v, each in zip(op.operands, given, strict=True)
        )
        table = self._new(replace(op, operands=operands, types=(found.type,)), ops, found.type)
        last, looked = table, list[Op]()
        for n, each in enumerate(found.ops):
            results = op.results if n == len(found.ops) - 1 else (self._name(),)
            looked.append(replace(each, operands=(last, *each.operands[1:]), results=results))
            last = results[0]
        self.lookups[op.results[0]] = _Lookup(table, found.type, tuple(looked))
        self.made.update(op.results)
        return ops + looked

    def _multiplied(self, op: Op) -> list[Op]:
        """A division by a table, as a multiplication by one."""
        if op.name != "divide" or op.operands[1] not in self.closed or op.operands[1] in self.splats:
            return []
        source, moves = op.operands[1], list[Op]()
        while source in self.moved:
            moves.append(self.moved[source])
            (source,) = moves[-1].operands
        type_, ops = self.closed[source], list[Op]()
        one = self._splat(1, type_, op, ops)
        inverse = self._new(replace(op, operands=(one, source), types=(type_,)), ops, type_)
        for move in reversed(moves):
            inverse = self._new(replace(move, operands=(inverse,)), ops, move.types[0])
        self.made.update(op.results)
        return [*ops, replace(op, name="multiply", operands=(op.operands[0], inverse))]

    def _splat(self, number: Any, type_: TensorType, like: Op, ops: list[Op]) -> Name:
        value = np.broadcast_to(np.asarray(number, DTYPES[type_.dtype]), type_.shape)
        constant = replace(like, name="constant", operands=(), types=(type_,), attributes={"value": value})
        return self._new(constant, ops, type_)

    def _new(self, op: Op, ops: list[Op], type_: TensorType) -> Name:
        name = self._name()
        ops.append(replace(op, results=(name,)))
        self.closed[name] = type_
        return name

    def _name(self) -> Name:
        name = self.fresh.one()
        self.made.add(name)
        return name
