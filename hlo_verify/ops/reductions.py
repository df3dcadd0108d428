"""Reductions: reduce, reduce_window, and functions of whole dimensions (sort, top_k)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ir import Function, Op, TensorType
from hlo_verify.ops.elementwise import product
from hlo_verify.ops.movement import guarded_select
from hlo_verify.ops.values import (
    Context,
    Rule,
    UnsupportedError,
    Value,
    exact_integer,
    factor,
    is_integer,
    lighten,
    position,
    positions,
    remap,
)
from hlo_verify.terms import algebra, guards, sums
from hlo_verify.terms.definitions import define
from hlo_verify.terms.functions import apply
from hlo_verify.terms.term import ONE, Poly, Tensor, make_read, mix, of_atom

MONOIDS = {"add": "sum", "multiply": "product", "maximum": "max", "minimum": "min", "and": "and", "or": "or"}


def monoid(region: Function) -> str | None:
    """The reducer's name where a region is one commutative operation on its two arguments."""
    ops = [op for op in region.ops if op.name not in ("return",)]
    if len(ops) != 1 or len(region.arguments) != 2 or ops[0].name not in MONOIDS:
        return None
    op = ops[0]
    if set(op.operands) != set(region.arguments) or region.results != op.results:
        return None
    kind = MONOIDS[op.name]
    if region.argument_types[0].dtype == "i1":
        kind = {"sum": "or", "product": "and", "max": "or", "min": "and"}.get(kind, kind)
    elif kind in ("and", "or"):
        return None
    return kind


def reduce_terms(kind: str, bound: Sequence[Var], term: Poly) -> Poly:
    """The reduction of a term over variables by a recognised monoid."""
    if kind == "sum":
        return sums.reduce_sum(bound, term)
    if kind == "product":
        return sums.reduce_product(bound, term)
    if kind in ("and", "or"):
        return sums.reduce_boolean(kind, bound, term)
    return sums.reduce_extremum(kind, bound, term)


def combine(kind: str, a: Poly, b: Poly, dtype: str) -> Poly:
    """`a ⊕ b` of a recognised monoid."""
    if kind == "sum":
        return algebra.add(a, b)
    if kind == "product":
        return product(a, b, dtype)
    if kind == "and":
        return product(a, b, "i1")
    if kind == "or":
        return algebra.add(a, product(algebra.logical_not(a), b, "i1"))
    return apply({"max": "maximum", "min": "minimum"}[kind], (a, b))


def operand_term(kind: str, value: Value) -> Poly:
    """What a reducer of that kind works on: machine values where it compares integers."""
    if kind in ("max", "min") and is_integer(value.type.dtype):
        return exact_integer(value)
    return value.term


def reducer_key(region: Function, context: Context) -> Any:
    """A reducer as terms over its arguments: equal keys are equal functions."""
    arguments = []
    for n, kind in enumerate(region.argument_types):
        symbol = placeholder(n, kind)
        arguments.append(Value(kind, of_atom(make_read(symbol, positions(kind.shape)))))
    inner = Context(None, context.partitions, context.replicas, context.run, context.environment, context.unsupported)
    return tuple(value.term for value in context.run(region, arguments, inner))


_placeholders: dict[tuple[int, TensorType], Tensor] = {}


def placeholder(n: int, kind: TensorType) -> Tensor:
    """The symbol for the n-th argument of a region."""
    from hlo_verify.terms.term import next_uid

    found = _placeholders.get((n, kind))
    if found is None:
        found = Tensor("argument", f"a{n}", kind.dtype, kind.shape, next_uid(), mix("placeholder", n, str(kind)))
        _placeholders[n, kind] = found
    return found


def _reduce(op: Op, args: list[Value], context: Context) -> list[Value]:
    count = len(args) // 2
    inputs, inits = args[:count], args[count:]
    dims = op.attributes["dimensions"]
    own = [expr.fresh("f", inputs[0].shape[k]) for k in dims]
    if any(v.size == 0 for v in own):
        return [Value(kind, init.term) for kind, init in zip(op.types, inits, strict=True)]
    where = iter(positions(op.types[0].shape))
    indices: list[Index] = []
    for k in range(len(inputs[0].shape)):
        indices.append(expr.of_var(own[dims.index(k)]) if k in dims else next(where))
    kind = monoid(op.regions[0]) if count == 1 else None
    bound = [v for v in own if v.size > 1]
    if kind is not None:
        value, init = inputs[0], inits[0]
        term = operand_term(kind, value)
        if not bound:
            pass
        elif len(term.items) > 8 or (kind != "sum" and len(term.items) > 1):
            term = factor(term, value.type.dtype)
        reduced = reduce_terms(kind, bound, remap(term, value.shape, indices))
        return [
            Value(
                op.types[0],
                lighten(combine(kind, reduced, operand_term(kind, init), op.types[0].dtype), op.types[0].dtype),
            )
        ]
    key = reducer_key(op.regions[0], context)
    bodies = tuple(v.at(indices) for v in inputs) + tuple(v.term for v in inits)
    return [
        Value(result, define("reduce", own, bodies, attributes=(key, n), ordered=True, dtype=result.dtype))
        for n, result in enumerate(op.types)
    ]


def _reduce_window(op: Op, args: list[Value], context: Context) -> list[Value]:
    if len(args) != 2:
        raise UnsupportedError("reduce_window of several operands")
    source, init = args
    (result,) = op.types
    kind = monoid(op.regions[0])
    if kind is None:
        raise UnsupportedError("reduce_window with a reducer that is not recognised")
    rank = result.rank
    attributes = op.attributes
    sizes = attributes["window_dimensions"]
    strides = attributes.get("window_strides") or (1,) * rank
    base = attributes.get("base_dilations") or (1,) * rank
    dilation = attributes.get("window_dilations") or (1,) * rank
    padding = attributes.get("padding")
    bound = []
    inside = ONE
    indices = []
    for k in range(rank):
        v = expr.fresh("f", sizes[k])
        bound.append(v)
        low = int(padding[k][0]) if padding is not None else 0
        at = expr.add(expr.scale(position(k, result.shape[k]), strides[k]), expr.scale(expr.of_var(v), dilation[k]))
        q, r = expr.floor_divmod(expr.shift(at, -low), base[k])
        inside = algebra.multiply(inside, guards.interval(q, 0, source.shape[k] - 1))
        inside = algebra.multiply(inside, guards.interval(r, 0, 0))
        indices.append(q)
    term = remap(factor(operand_term(kind, source), result.dtype), source.shape, indices)
    first = operand_term(kind, init)
    if kind == "sum":
        reduced = sums.reduce_sum(bound, algebra.multiply(inside, term))
        if first.items:  # padding holds the initial value too
            outside = sums.reduce_sum(bound, algebra.multiply(algebra.logical_not(inside), first))
            reduced = algebra.add(reduced, outside)
    else:
        reduced = reduce_terms(kind, bound, guarded_select(inside, term, first))
    return [Value(result, lighten(combine(kind, reduced, first, result.dtype), result.dtype))]


def _sort(op: Op, args: list[Value], context: Context) -> list[Value]:
    k = op.attributes["dimension"]
    v = expr.fresh("f", args[0].shape[k])
    key = reducer_key(op.regions[0], context)
    where = positions(args[0].shape)
    bodies = tuple(a.at([*where[:k], expr.of_var(v), *where[k + 1 :]]) for a in args)
    stable = bool(op.attributes.get("is_stable"))
    return [
        Value(
            result,
            define("sort", [v], bodies, attributes=(key, stable, n), at=(where[k],), ordered=True, dtype=result.dtype),
        )
        for n, result in enumerate(op.types)
    ]


def _top_k(op: Op, args: list[Value], context: Context) -> list[Value]:
    (source,) = args[:1]
    k = len(source.shape) - 1
    v = expr.fresh("f", source.shape[k])
    results = []
    for n, result in enumerate(op.types):
        where = positions(result.shape)
        body = source.at([*where[:k], expr.of_var(v)])
        largest = bool(op.attributes.get("largest", True))
        term = define("top_k", [v], (body,), attributes=(largest, n), at=(where[k],), ordered=True, dtype=result.dtype)
        results.append(Value(result, term))
    return results


RULES: dict[str, Rule] = {
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "sort": _sort,
    "chlo.top_k": _top_k,
    "mhlo.topk": _top_k,
}
