"""What an operation computes with: a tensor as a scalar term over its positional index variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ir import Function, Op, TensorType
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define, named
from hlo_verify.terms.term import Poly, Tensor, tensor

WEIGHT_LIMIT = 40
"""A term heavier than this (atoms and their indices) is given a name."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor: `term` is its element at the positional variables `p0, p1, ...`."""

    type: TensorType
    term: Poly

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    def at(self, indices: Sequence[Index]) -> Poly:
        """The element at those indices."""
        return remap(self.term, self.type.shape, indices)


def remap(term: Poly, shape: tuple[int, ...], indices: Sequence[Index]) -> Poly:
    """The term with positional variables replaced."""
    mapping: dict[Var, Index] = {}
    for k, (size, e) in enumerate(zip(shape, indices, strict=True)):
        old = position_var(k, size)
        if size > 1 and e is not position(k, size):
            mapping[old] = e
    return algebra.substitute(term, mapping) if mapping else term


def position_var(k: int, size: int) -> Var:
    """The positional variable of dimension k."""
    return expr.var("p", k, size)


def position(k: int, size: int) -> Index:
    """The index along dimension k of a tensor of that size."""
    return expr.of_var(position_var(k, size))


def positions(shape: Sequence[int]) -> tuple[Index, ...]:
    """The index of every dimension."""
    return tuple(position(k, size) for k, size in enumerate(shape))


class UnsupportedError(Exception):
    """An operation, or a use of it, whose meaning is not known exactly: its results become opaque."""


@dataclass(slots=True)
class Context:
    """What surrounds an operation: the devices of the module, and what was not understood so far.

    `device` is None in a module that every device does not run by itself (the logical one).
    `run` interprets a region. Devices are numbered replica by replica: `replica * partitions + partition`.
    """

    device: Var | None
    partitions: int
    replicas: int
    run: Callable[[Function, Sequence[Value], Context], list[Value]]
    environment: dict[int, Value] = field(default_factory=dict)
    unsupported: dict[str, str] = field(default_factory=dict)
    side: str = "logical"
    loops: Any = None
    """The logical module's loops (`control.LoopBook`)."""
    iterations: list[Index] = field(default_factory=list)
    """The counters of the logical loops around."""

    def opaque(self, op: Op, reason: str) -> list[Value]:
        """Fresh tensors that equal nothing else, one a result."""
        key = f"{op.name} at {op.location}"
        self.unsupported.setdefault(key, reason)
        extra = (expr.of_var(self.device),) if self.device is not None else ()
        values = []
        for kind in op.types:
            unknown: Tensor = tensor("opaque", f"{self.side}.{op.name}", kind.dtype, kind.shape, location=op.location)
            values.append(Value(kind, algebra.read(unknown, (*extra, *positions(kind.shape)))))
        return values


Rule = Callable[[Op, list[Value], Context], list[Value]]
"""An operation's meaning: operands in, results out."""


def lighten(term: Poly, dtype: str, limit: int = WEIGHT_LIMIT) -> Poly:
    """The term, by name if it is heavy."""
    return named(term, dtype) if term.weight > limit else term


def factor(term: Poly, dtype: str) -> Poly:
    """The term as one light monomial, so that products of it stay small."""
    return named(term, dtype) if len(term.items) > 1 or term.weight > 16 else term


def integer_range(dtype: str) -> tuple[int, int]:
    """Least and greatest value of an integer type."""
    if dtype not in algebra.INTEGER_RANGES:
        raise UnsupportedError(f"{dtype} where an integer type is expected")
    return algebra.INTEGER_RANGES[dtype]


def as_index(value: Value) -> Index:
    """An integer tensor's element as an index expression."""
    return algebra.as_index(value.term, *integer_range(value.type.dtype))


def whole(kind: str, attributes: Any, operands: Sequence[Value], result: TensorType) -> Poly:
    """A function of whole tensors, known only by its kind and attributes, at the result's position."""
    bound: list[Var] = []
    bodies = []
    for value in operands:
        own = [expr.fresh("f", size) for size in value.shape]
        bodies.append(value.at([expr.of_var(v) for v in own]))
        bound.extend(own)
    return define(
        kind, bound, tuple(bodies), attributes=attributes, at=positions(result.shape), ordered=True, dtype=result.dtype
    )


def is_float(dtype: str) -> bool:
    """Whether a type is a real floating-point type."""
    return dtype.startswith(("f", "bf"))


def is_integer(dtype: str) -> bool:
    """Whether a type is an integer type other than booleans."""
    return dtype in algebra.INTEGER_RANGES and dtype != "i1"
