"""gather, and what it shares with scatter: start indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.index.tables import Ints, evaluate_all
from hlo_verify.limits import allows
from hlo_verify.ops.at_best import at_best
from hlo_verify.ops.in_order import in_order
from hlo_verify.ops.slots import at_own_slots
from hlo_verify.ops.values import (
    Context,
    Rule,
    UnsupportedError,
    Value,
    as_index,
    integer_range,
    lighten,
    position,
    position_var,
)
from hlo_verify.program.ir import Location, Module, Op, operations, value_types
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import Poly


def index_at(indices: Value, where: list[Index], vector: int, component: int) -> Value:
    """The start index of one component at a batch position, as a scalar."""
    at = list(where)
    if vector < len(indices.shape):
        at.insert(vector, expr.constant(component))
    return Value(indices.type, indices.at(at))


def count_of(indices: Value, vector: int) -> int:
    """How many indices a tensor of them holds, the components of one along that dimension."""
    return _count(indices.shape, vector)


def _count(shape: Sequence[int], vector: int) -> int:
    return prod(size for k, size in enumerate(shape) if k != vector)


CLAIMS = ("indices_are_sorted", "unique_indices")
"""Attributes that say something of the values of an operation's indices: what it computes of others is not defined."""

ANY = ""
"""Operations with indices of any kind."""

Claims = frozenset[tuple[str, str, str, Location | None]]
"""What a module takes for granted of indices: operations, by name and by their dimension numbers (or of `ANY`), with
attributes that all of them have, in the whole module (None) or at a place in the source. A single index is sorted, and
there is no other like it."""


def claims_of(module: Module) -> Claims:
    """The claims of a module. One that is made of some indices says nothing of others."""
    types = value_types(module.main)
    every: dict[tuple[str, str, str, Location | None], bool] = {}
    for op in operations(module.main):
        if CLAIMS[0] not in op.attributes:  # it has no indices: they are written out wherever there are some
            continue
        numbers = _numbers(op)
        indices = types[op.operands[len(op.types) if op.name == "scatter" else 1]]
        if _count(indices.shape, numbers["index_vector_dim"]) < 2:
            continue
        for name in CLAIMS:
            for about, where in product((ANY, str(numbers)), (None, op.location)):
                key = op.name, about, name, where
                every[key] = every.get(key, True) and bool(op.attributes.get(name))
    return frozenset(key for key, is_claimed in every.items() if is_claimed)


def unheard_of(op: Op, claims: Claims | None) -> tuple[str, ...]:
    """The attributes of an operation that take something for granted which the logical module does not."""
    if claims is None:
        return ()
    said = [name for name in CLAIMS if op.attributes.get(name)]
    ways = list(product((ANY, str(_numbers(op))), (None, op.location))) if said else []
    return tuple(name for name in said if not any((op.name, about, name, where) in claims for about, where in ways))


def _numbers(op: Op) -> Mapping[str, Any]:
    """The dimension numbers of an operation with indices."""
    found: Mapping[str, Any] = op.attributes.get("dimension_numbers") or op.attributes["scatter_dimension_numbers"]
    return found


def heed_claims(
    op: Op, context: Context, indices: Value, operand: tuple[int, ...], is_unique: Callable[[], bool] = lambda: False
) -> None:
    """Raise `UnsupportedError` where the devices take something of several indices for granted that is not known to
    hold, and that the logical module does not take for granted: it is defined for other indices, and they are not."""
    numbers = _numbers(op)
    vector = numbers["index_vector_dim"]
    for name in unheard_of(op, context.claims) if count_of(indices, vector) > 1 else ():
        along = numbers.get("start_index_map", numbers.get("scatter_dims_to_operand_dims"))
        holds = is_unique() if name == "unique_indices" else are_sorted(indices, vector, along, operand)
        if not holds:
            raise UnsupportedError(
                f"{op.name} with {name}, which no {op.name} of the logical module says of them", Unsupported.USE
            )


def are_sorted(indices: Value, vector: int, along: Sequence[int], operand: Sequence[int]) -> bool:
    """Whether no index is less than the one before it, computed one by one: of the components, which index those
    dimensions of the operand, the first that differ decide.

    The first may be that of the index or that of the operand: both have to agree. So have the indices as they are and
    as a gather clamps them, which of several components only those surely do that are inside.
    """
    batch = [position(k, size) for k, size in enumerate(indices.shape) if k != vector]
    variables = [position_var(k, size) for k, size in enumerate(indices.shape) if k != vector]
    places = [as_index(Value(indices.type, index_at(indices, batch, vector, n).term)) for n in range(len(along))]
    if len(along) > 1 and not all(e.lo >= 0 and e.hi < operand[k] for e, k in zip(places, along, strict=True)):
        return False
    columns = one_by_one(places, variables)
    return columns is not None and all(map(_never_less, (columns, [columns[n] for n in np.argsort(along)])))


def one_by_one(places: Sequence[Index], variables: Sequence[Var]) -> list[Ints] | None:
    """The values of index expressions, each for all values of the variables in order, but for what depends on none of
    these: that is the same for every index, as where a device's own begin. None where they are too many, or not known.
    """
    if not allows("scattered_places", prod(v.size for v in variables)):
        return None
    columns = []
    for e in places:
        moving = expr.build(e.const, [(atom, c) for atom, c in e.items if not atom.free.isdisjoint(variables)])
        values = evaluate_all(moving, variables)
        if values is None:
            return None
        columns.append(values.reshape(-1))
    return columns


def _never_less(columns: Sequence[Ints]) -> bool:
    """Whether of rows none is less than the one before it."""
    tied = np.ones(len(columns[0]) - 1, dtype=bool)
    for values in columns:
        step = np.diff(values)
        if (tied & (step < 0)).any():
            return False
        tied &= step == 0
    return True


def _gather(op: Op, args: list[Value], context: Context) -> list[Value]:
    """StableHLO gather: start indices are clamped so that the slice lies inside."""
    (result,) = op.types
    operand, start_indices = args
    numbers = op.attributes["dimension_numbers"]
    heed_claims(op, context, start_indices, operand.shape)
    sizes = op.attributes["slice_sizes"]
    offset_dims = numbers["offset_dims"]
    collapsed, batching = numbers["collapsed_slice_dims"], numbers["operand_batching_dims"]
    vector = numbers["index_vector_dim"]
    batch = [position(k, result.shape[k]) for k in range(result.rank) if k not in offset_dims]
    window = [position(k, result.shape[k]) for k in offset_dims]
    lo, hi = integer_range(start_indices.type.dtype)
    where: list[Index] = [expr.constant(0)] * len(operand.shape)
    kept = [k for k in range(len(operand.shape)) if k not in collapsed and k not in batching]
    for k, e in zip(kept, window, strict=True):
        where[k] = e
    for n, k in enumerate(numbers["start_index_map"]):
        start = algebra.as_index(index_at(start_indices, batch, vector, n).term, lo, hi)
        where[k] = expr.add(where[k], expr.clamp(start, 0, operand.shape[k] - sizes[k]))
    for k, b in zip(batching, numbers["start_indices_batching_dims"], strict=True):
        where[k] = batch[b if b < vector else b - 1]
    return [Value(result, lighten(at_own_slots(in_order(at_best(operand.at(where)))), result.dtype))]


def equals(term: Poly, dtype: str, target: Index) -> Poly:
    """`[machine value of term = target]` for a target inside the type's range.

    A term `t + e` with an affine part e may wrap; it equals the target exactly where t equals
    `target - e` modulo 2^n, and if that lies inside the type's range, the machine value of t is it.
    """
    lo, hi = integer_range(dtype)
    whole = algebra.as_index(term, lo, hi)
    if len(whole.items) == 1 and isinstance(whole.items[0][0], Opaque) and whole.items[0][0].term is term:
        affine, other = algebra.split_affine(term)
        wanted = expr.subtract(target, affine)
        if lo <= wanted.lo and wanted.hi <= hi and other is not term:
            return guards.interval(expr.subtract(algebra.as_index(other, lo, hi), wanted), 0, 0)
    return guards.interval(expr.subtract(whole, target), 0, 0)


RULES: dict[str, Rule] = {"gather": _gather}
