"""Data movement: operations that only rewrite index expressions."""

from __future__ import annotations

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ops.at_best import at_best
from hlo_verify.ops.halos import one_function
from hlo_verify.ops.in_order import in_order
from hlo_verify.ops.slots import at_own_slots
from hlo_verify.ops.values import Context, Rule, Value, as_index, position, positions
from hlo_verify.program.ir import Op
from hlo_verify.terms import algebra, guards, rotations
from hlo_verify.terms.term import ONE, ZERO, Monomial, Number, Poly, make_poly


def _broadcast_in_dim(op: Op, args: list[Value], context: Context) -> list[Value]:
    (result,) = op.types
    dims = op.attributes["broadcast_dimensions"]
    source = args[0]
    indices = [
        expr.constant(0) if size == 1 else position(k, result.shape[k])
        for size, k in zip(source.shape, dims, strict=True)
    ]
    return [Value(result, source.at(indices))]


def _transpose(op: Op, args: list[Value], context: Context) -> list[Value]:
    (result,) = op.types
    permutation = op.attributes["permutation"]
    indices: list[Index] = [expr.constant(0)] * result.rank
    for k, source in enumerate(permutation):
        indices[source] = position(k, result.shape[k])
    return [Value(result, args[0].at(indices))]


def linear_index(shape: tuple[int, ...], indices: tuple[Index, ...]) -> Index:
    """The row-major position of an element."""
    total = expr.constant(0)
    stride = 1
    for size, e in zip(reversed(shape), reversed(indices), strict=True):
        total = expr.add(total, expr.scale(e, stride))
        stride *= size
    return total


def unravel(linear: Index, shape: tuple[int, ...]) -> list[Index]:
    """The index of every dimension of the element at that row-major position."""
    indices = []
    stride = 1
    for size in reversed(shape):
        indices.append(expr.digit_of(linear, stride, size))
        stride *= size
    return indices[::-1]


def _reshape(op: Op, args: list[Value], context: Context) -> list[Value]:
    (result,) = op.types
    source = args[0]
    return [Value(result, source.at(reshape_indices(source.shape, result.shape)))]


def reshape_indices(source: tuple[int, ...], result: tuple[int, ...]) -> list[Index]:
    """The source index of every element of a reshape, block of dimensions by block."""
    indices: list[Index] = []
    where = positions(result)
    i = j = 0
    while i < len(source) or j < len(result):
        a, b, m, n = i, j, 1, 1
        while True:  # grow the smaller side until both blocks hold the same number of elements
            if m == n and (i > a or j > b) and m != 1:
                break
            if m <= n and i < len(source):
                m *= source[i]
                i += 1
            elif j < len(result):
                n *= result[j]
                j += 1
            else:
                break
        indices.extend(unravel(linear_index(result[b:j], where[b:j]), source[a:i]))
    return indices


def _slice(op: Op, args: list[Value], context: Context) -> list[Value]:
    (result,) = op.types
    starts, strides = op.attributes["start_indices"], op.attributes["strides"]
    indices = [
        expr.shift(expr.scale(position(k, size), stride), start)
        for k, (size, start, stride) in enumerate(zip(result.shape, starts, strides, strict=True))
    ]
    return [Value(result, in_order(args[0].at(indices)))]


def _reverse(op: Op, args: list[Value], context: Context) -> list[Value]:
    (result,) = op.types
    indices = list(positions(result.shape))
    for k in op.attributes["dimensions"]:
        indices[k] = expr.shift(expr.scale(indices[k], -1), result.shape[k] - 1)
    return [Value(result, args[0].at(indices))]


def _concatenate(op: Op, args: list[Value], context: Context) -> list[Value]:
    (result,) = op.types
    k = op.attributes["dimension"]
    parts, where = [(a, a.shape[k]) for a in args], positions(result.shape)
    together = one_function(parts, k, where[k])
    return [Value(result, concatenated(parts, k, where) if together is None else together)]


def concatenated(parts: list[tuple[Value, int]], k: int, where: tuple[Index, ...]) -> Poly:
    """The element at `where` of values put end to end along dimension k."""
    pieces = []
    start = 0
    for value, size in parts:
        if size:
            inside = guards.interval(where[k], start, start + size - 1)
            moved = [*where[:k], expr.shift(where[k], -start) if size > 1 else expr.constant(0), *where[k + 1 :]]
            pieces.append(algebra.multiply(inside, value.at(moved)))
        start += size
    return algebra.add(*pieces)


def _pad(op: Op, args: list[Value], context: Context) -> list[Value]:
    (result,) = op.types
    source, filler = args
    low, interior = op.attributes["edge_padding_low"], op.attributes["interior_padding"]
    inside = ONE
    indices = []
    for k, size in enumerate(source.shape):
        apart, start = interior[k] + 1, low[k] % (interior[k] + 1)
        e = expr.shift(position(k, result.shape[k]), start - low[k])  # so that it is divided digit by digit
        q, r = expr.floor_divmod(e, apart)
        inside = algebra.multiply(inside, guards.interval(q, 0, size - 1))
        inside = algebra.multiply(inside, guards.interval(r, start, start))
        indices.append(q)
    if 0 in source.shape:
        return [Value(result, filler.term)]
    return [Value(result, guarded_select(inside, source.at(indices), filler.term))]


def guarded_select(inside: Poly, a: Poly, b: Poly) -> Poly:
    """a where `inside` (a product of guards), else b."""
    if inside is ONE:
        return a
    if inside is ZERO:
        return b
    # What is 0 inside anyhow stays as it is: n slots that are filled one by one are n products, not 2^n.
    kept: list[tuple[Monomial, Number]] = []
    masked: list[tuple[Monomial, Number]] = []
    there: list[Poly] = []
    for item in b.items:
        own = algebra.multiply(inside, make_poly((item,)))
        (masked if own.items else kept).append(item)
        there.append(own)
    left = make_poly(tuple(masked))
    if masked:
        overwritten = algebra.either(*there)
        if len(overwritten.items) < len(masked):  # n slots that are cleared one by one likewise
            left = algebra.either(left, algebra.scale(overwritten, -1))
        else:
            left = algebra.multiply(algebra.logical_not(inside), left)
    return algebra.either(algebra.multiply(inside, a), make_poly(tuple(kept)), left)


def _starts(operands: list[Value], shape: tuple[int, ...], sizes: tuple[int, ...]) -> list[Index]:
    """Start indices, clamped so that the slice lies inside (StableHLO, dynamic_slice)."""
    return [
        expr.clamp(as_index(value), 0, size - width) for value, size, width in zip(operands, shape, sizes, strict=True)
    ]


def _dynamic_slice(op: Op, args: list[Value], context: Context) -> list[Value]:
    (result,) = op.types
    source, *operands = args
    starts = _starts(operands, source.shape, result.shape)
    indices = [expr.add(start, e) for start, e in zip(starts, positions(result.shape), strict=True)]
    return [Value(result, at_own_slots(in_order(at_best(source.at(indices)))))]


def _dynamic_update_slice(op: Op, args: list[Value], context: Context) -> list[Value]:
    (result,) = op.types
    source, update, *operands = args
    if 0 in update.shape:
        return [source]
    inside = ONE
    indices = []
    for k, start in enumerate(_starts(operands, source.shape, update.shape)):
        e = expr.subtract(position(k, result.shape[k]), start)
        inside = algebra.multiply(inside, guards.interval(e, 0, update.shape[k] - 1))
        indices.append(e if update.shape[k] > 1 else expr.constant(0))
    return [Value(result, rotations.joined(guarded_select(inside, update.at(indices), source.term)))]


def _identity(op: Op, args: list[Value], context: Context) -> list[Value]:
    return [Value(type_, value.term) for type_, value in zip(op.types, args, strict=True)]


RULES: dict[str, Rule] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "transpose": _transpose,
    "reshape": _reshape,
    "slice": _slice,
    "reverse": _reverse,
    "concatenate": _concatenate,
    "pad": _pad,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "optimization_barrier": _identity,
    "sdy.sharding_constraint": _identity,
    "sdy.reshard": _identity,
}
