"""sort and top_k: functions of a whole dimension, which every other dimension passes through."""

from __future__ import annotations

from hlo_verify.index import expr
from hlo_verify.ops.regions import region_terms
from hlo_verify.ops.values import Context, Rule, UnsupportedError, Value, positions
from hlo_verify.program.ir import Op
from hlo_verify.terms.definitions import define


def _sort(op: Op, args: list[Value], context: Context) -> list[Value]:
    k = op.attributes["dimension"]
    if not args[0].shape:
        return [Value(type_, value.term) for type_, value in zip(op.types, args, strict=True)]
    v = expr.fresh("f", args[0].shape[k])
    key = region_terms(op.regions[0], context)
    where = positions(args[0].shape)
    bodies = tuple(a.at([*where[:k], expr.of_var(v), *where[k + 1 :]]) for a in args)
    stable = bool(op.attributes.get("is_stable"))
    return [
        Value(
            type_,
            define("sort", [v], bodies, attributes=(key, stable, n), at=(where[k],), ordered=True, dtype=type_.dtype),
        )
        for n, type_ in enumerate(op.types)
    ]


def top_k(op: Op, args: list[Value], largest: bool) -> list[Value]:
    """The k largest or least elements of the last dimension in order, of equal ones the first, and their indices."""
    (source,) = args
    dtype = source.type.dtype
    k = len(source.shape) - 1
    v = expr.fresh("f", source.shape[k])
    values = []
    for n, type_ in enumerate(op.types):
        where = positions(type_.shape)
        body = source.at([*where[:k], expr.of_var(v)])
        key = (largest, n, dtype, type_.dtype)
        values.append(
            Value(type_, define("top_k", [v], (body,), attributes=key, at=(where[k],), ordered=True, dtype=type_.dtype))
        )
    return values


def _top_k(op: Op, args: list[Value], context: Context) -> list[Value]:
    largest = op.attributes.get("largest", True)
    if not isinstance(largest, bool):
        raise UnsupportedError(f"{op.name} with largest = {largest}")
    return top_k(op, args, largest)


RULES: dict[str, Rule] = {"sort": _sort, "chlo.top_k": _top_k, "mhlo.topk": _top_k}
