"""The module as the passes see it: straight lists of operations over numbered values.

Calls are inlined, tuples are flattened and attributes are plain Python values, so
that an interpreter over a `Function` is a loop. `hlo_verify.passes.canonicalize`
builds it from MLIR; nothing after it touches MLIR again.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hlo_verify.program.source_lines import module_path, own_line

if TYPE_CHECKING:
    from hlo_verify.program.allowed_values import Values
    from hlo_verify.program.sharding import Sharding

Name = int
"""The name of an SSA value: a number that is unique within a module."""

TILES = "hlo_verify.tiles"
"""The frontend attribute of a call with the layouts that StableHLO cannot say: tiles and the like."""


UNREAD_FIELDS = "hlo_verify.fields"
"""The frontend attribute that keeps, as hexadecimals, an instruction's fields of HLO that StableHLO cannot say."""

MADE_BY = "made_by"
"""The attribute of an operation that looks at the bits of computed numbers: which operations made them."""

IN_FLOATS = "in_floats"
"""The attribute of a comparison or rounding that floats may decide otherwise than real numbers, of numbers that hang on
no argument (`passes.load.float_jumps`): how these were made, where their terms do not say it."""

AS_FLOATS = "as_floats"
"""The attribute of an operation that is no function of real numbers but one of floats, of which nothing more is known
(`passes.load.float_jumps`): whether it gives finite numbers, if that is known, and what it hangs on beside operands."""

FINITE, INFINITE = "finite", "infinite"
"""All that an operation gives, or what some of it may be."""

NARROWED = "narrowed"
"""The attribute of a question whether floats are infinite that went through narrower types: the one that holds least
(`passes.load.narrowed`)."""

VANISHED = "vanished"
"""The attribute of an operation of which every result is 0, and which has neither operands nor regions then."""

KINDS = "kinds"
"""The attribute of a custom call that has the types of its settings."""

NESTING = "nesting"
"""The attribute of a custom call that has how its operands and results are nested, where that is more than a list."""

OURS = frozenset({MADE_BY, IN_FLOATS, AS_FLOATS, NARROWED, VANISHED, KINDS, NESTING})
"""Attributes that operations of modules do not have by themselves, whatever these say."""

SIGNED_ZERO = "a zero with a sign"
"""What made a constant of which no real number tells the bits."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """A static tensor type. `dtype` is StableHLO's spelling (`f32`, `bf16`, `i32`, `ui8`, `i1`, `token`)."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def rank(self) -> int:
        return len(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Location:
    """Where an operation comes from.

    `name` is the JAX/HLO op name (`jit(loss)/dot_general`); `frames` are the stack's frames, innermost first, as (file,
    line). A location is told as the user's own line.
    """

    name: str = ""
    frames: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        own = own_line(self.frames)
        return f"{own[0]}:{own[1]}" if own is not None else self.name or "unknown location"

    @property
    def module(self) -> str:
        """The module of a network that it belongs to (`Block/Dense_1`), as flax names it; empty if it says none."""
        return module_path(self.name)

    @property
    def stack(self) -> tuple[str, ...]:
        """All frames, innermost first."""
        return tuple(f"{file}:{line}" for file, line in self.frames)


@dataclass(frozen=True, slots=True)
class Op:
    """One operation. `name` is StableHLO's, without the dialect prefix (`dot_general`).

    Attributes are plain: ints, bools, strings, tuples of ints, dictionaries of those for
    dimension numbers, and numpy arrays for constants (a splat is a zero-stride view) and
    replica groups (rows padded with -1). Regions see the values of the enclosing function.
    """

    name: str
    operands: tuple[Name, ...]
    results: tuple[Name, ...]
    types: tuple[TensorType, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    regions: tuple[Function, ...] = ()
    location: Location = Location()
    source: Any = field(default=None, compare=False, repr=False)
    """The MLIR operation, kept only so that a report can print its StableHLO line."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function or region body: `ops` in order, then `results` are returned."""

    arguments: tuple[Name, ...]
    argument_types: tuple[TensorType, ...]
    ops: tuple[Op, ...]
    results: tuple[Name, ...]


def functions(function: Function) -> Iterator[Function]:
    """A function and all regions inside."""
    yield function
    for op in function.ops:
        for region in op.regions:
            yield from functions(region)


def operations(function: Function) -> Iterator[Op]:
    """A function's operations, each before those of its regions."""
    for op in function.ops:
        yield op
        for region in op.regions:
            yield from operations(region)


@dataclass(slots=True)
class Fresh:
    """Gives out names for new values: the numbers from `next` on."""

    next: Name

    def one(self) -> Name:
        self.next += 1
        return self.next - 1

    def some(self, count: int) -> tuple[Name, ...]:
        return tuple(self.one() for _ in range(count))


def fresh_in(function: Function) -> Fresh:
    """New names for a function: neither it nor its regions have values that are called so."""
    return beyond(value_types(function))


def beyond(values: Iterable[Name]) -> Fresh:
    """Names that are none of these."""
    return Fresh(1 + max(values, default=-1))


def value_types(function: Function) -> dict[Name, TensorType]:
    """The types of all values of a function and of its regions."""
    found: dict[Name, TensorType] = {}
    for each in functions(function):
        found.update(zip(each.arguments, each.argument_types, strict=True))
        for op in each.ops:
            found.update(zip(op.results, op.types, strict=True))
    return found


def captured(op: Op) -> list[Name]:
    """The values around an operation that its regions refer to."""
    return [name for region in op.regions for name in taken_from_outside(region)]


def taken_from_outside(region: Function) -> list[Name]:
    """The values around a region that it refers to."""
    found: list[Name] = []
    inside = set(region.arguments)
    for op in region.ops:
        found.extend(v for v in (*op.operands, *captured(op)) if v not in inside)
        inside.update(op.results)
    found.extend(v for v in region.results if v not in inside)
    return found


def used(op: Op) -> set[Name]:
    """The values that an operation uses, those that its regions take from outside among them."""
    return {*op.operands, *captured(op)}


@dataclass(frozen=True, slots=True)
class Module:
    """A whole program: one function, with what is known of names, shardings and devices."""

    name: str
    main: Function
    argument_names: tuple[str, ...]
    result_names: tuple[str, ...]
    result_types: tuple[TensorType, ...]
    argument_shardings: tuple[Sharding | None, ...]
    result_shardings: tuple[Sharding | None, ...]
    partitions: int | None = None
    """Number of partitions, where the module says so."""
    replicas: int = 1
    path: str = ""
    notes: tuple[str, ...] = ()
    """What reading it took for granted, in words, for the report."""
    unplaced: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Annotations that do not say which elements a device holds (`{manual}`), by ("argument" or "result", position)."""
    assumed: tuple[Values | None, ...] = ()
    """What the user says of the values of each argument; empty where nothing is said (`preconditions`)."""
    declared: int = 0
    """How many of the last arguments stand for values that it computes itself (`passes.cut`). MLIR has none of them."""
    mlir: Any = field(default=None, compare=False, repr=False)
    """The MLIR module: an `Op.source` is valid only while it lives."""

    def bytecode(self) -> bytes:
        """The MLIR module as bytecode."""
        buffer = io.BytesIO()
        self.mlir.operation.write_bytecode(buffer)
        return buffer.getvalue()
