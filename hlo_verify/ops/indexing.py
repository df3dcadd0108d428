"""gather and scatter."""

from __future__ import annotations

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque
from hlo_verify.ir import Op
from hlo_verify.ops.regions import combine, monoid, region_terms
from hlo_verify.ops.values import (
    Context,
    Rule,
    UnsupportedError,
    Value,
    factor,
    integer_range,
    lighten,
    position,
    remap,
)
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, Poly


def _index_at(indices: Value, where: list[Index], vector: int, component: int) -> Value:
    """The start index of one component at a batch position, as a scalar."""
    at = list(where)
    if vector < len(indices.shape):
        at.insert(vector, expr.constant(component))
    return Value(indices.type, indices.at(at))


def _gather(op: Op, args: list[Value], context: Context) -> list[Value]:
    """StableHLO gather: start indices are clamped so that the slice lies inside."""
    (result,) = op.types
    operand, start_indices = args
    numbers = op.attributes["dimension_numbers"]
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
        start = algebra.as_index(_index_at(start_indices, batch, vector, n).term, lo, hi)
        where[k] = expr.add(where[k], expr.clamp(start, 0, operand.shape[k] - sizes[k]))
    for k, b in zip(batching, numbers["start_indices_batching_dims"], strict=True):
        where[k] = batch[b if b < vector else b - 1]
    return [Value(result, lighten(operand.at(where), result.dtype))]


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


def _scatter(op: Op, args: list[Value], context: Context) -> list[Value]:
    """StableHLO scatter with a sum reducer: every update adds at its index, or nowhere if that is outside."""
    if len(op.types) != 1:
        raise UnsupportedError("scatter of several operands")
    (result,) = op.types
    operand, indices, updates = args
    kind = monoid(op.regions[0], context)
    if kind != "sum":
        return _scatter_opaque(op, args, context)
    numbers = op.attributes["scatter_dimension_numbers"]
    window_dims, inserted = numbers["update_window_dims"], numbers["inserted_window_dims"]
    batching, vector = numbers["input_batching_dims"], numbers["index_vector_dim"]
    to_operand = numbers["scatter_dims_to_operand_dims"]
    kept = [k for k in range(result.rank) if k not in inserted and k not in batching]
    for k, d in zip(kept, window_dims, strict=True):
        if k in to_operand and 1 < updates.shape[d] < result.shape[k]:
            raise UnsupportedError("scatter of windows that may lie partly outside")
    at: list[Index] = []
    bound = []
    for size in updates.shape:
        v = expr.fresh("f", size)
        bound.append(v)
        at.append(expr.of_var(v))
    batch = [at[d] for d in range(len(updates.shape)) if d not in window_dims]
    offset: list[Index] = [expr.constant(0)] * result.rank
    for k, d in zip(kept, window_dims, strict=True):
        offset[k] = at[d]
    lands = ONE
    for k in range(result.rank):
        target = expr.subtract(position(k, result.shape[k]), offset[k])
        if k in to_operand:
            start = _index_at(indices, batch, vector, to_operand.index(k)).term
            if k in kept and updates.shape[window_dims[kept.index(k)]] == result.shape[k] > 1:
                # a window as wide as the operand lands only where it starts at 0
                lands = algebra.multiply(lands, equals(start, indices.type.dtype, expr.constant(0)))
                lands = algebra.multiply(lands, guards.interval(target, 0, 0))
            else:
                lands = algebra.multiply(lands, equals(start, indices.type.dtype, target))
        elif k in batching:
            b = numbers["scatter_indices_batching_dims"][batching.index(k)]
            e = batch[b if b < vector else b - 1]
            lands = algebra.multiply(lands, guards.interval(expr.subtract(target, e), 0, 0))
        else:
            lands = algebra.multiply(lands, guards.interval(target, 0, 0))
    term = remap(factor(updates.term, result.dtype), updates.shape, at)
    added = reduce_sum(bound, algebra.multiply(lands, term))
    return [Value(result, lighten(combine("sum", operand.term, added, result.dtype), result.dtype))]


def _scatter_opaque(op: Op, args: list[Value], context: Context) -> list[Value]:
    """Scatter with another reducer: a function of its whole operands."""
    from hlo_verify.ops.values import whole

    numbers = tuple(sorted((k, v) for k, v in op.attributes["scatter_dimension_numbers"].items()))
    unique = bool(op.attributes.get("unique_indices"))
    if monoid(op.regions[0], context) is None and not unique and len(set(op.regions[0].results)) != 1:
        raise UnsupportedError("scatter with a reducer that is not recognised")
    key = (region_terms(op.regions[0], context), numbers, unique)
    return [Value(kind, whole("scatter", (key, n), args, kind)) for n, kind in enumerate(op.types)]


RULES: dict[str, Rule] = {"gather": _gather, "scatter": _scatter}
