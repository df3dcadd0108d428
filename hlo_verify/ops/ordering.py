"""sort and top_k: functions of a whole dimension, which every other dimension passes through.

Where a comparator orders by one operand alone, and that is a number (`comparators`), a sort is made of two definitions,
both of which count from the least element on:

- the *values* in order, `sort v. (f(v))` at a place, which do not hang on how equal ones are ordered, nor on
  where an element stands: the greatest first is the same read from the other end;
- the *order*, `sort v. (f(v), v)` at a place: which element it is, of equal ones the first. The greatest first is the
  order of -f (of integers -1-f, which does not wrap).

Where a comparator asks others of equal ones of one operand, that operand comes out as its values in order.
What else is put in that order is read there: `y[order]`. `permutations` has the laws of both.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ops.backwards import from_the_end
from hlo_verify.ops.comparators import first_key, order_of
from hlo_verify.ops.in_order import in_order, order, values
from hlo_verify.ops.regions import region_terms
from hlo_verify.ops.values import Context, Rule, UnsupportedError, Value, exact_integer, positions
from hlo_verify.program.element_types import is_float, is_integer
from hlo_verify.program.ir import Op
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.term import Poly


def _sort(op: Op, args: list[Value], context: Context) -> list[Value]:
    k = op.attributes["dimension"]
    if not args[0].shape:
        return [Value(type_, value.term) for type_, value in zip(op.types, args, strict=True)]
    v = expr.fresh("f", args[0].shape[k])
    stable = bool(op.attributes.get("is_stable"))
    where = positions(args[0].shape)
    by = order_of(op.regions[0])
    number = None if by is None else _key(args[by[0]], where, k, v)
    if by is not None and number is not None and (stable or len(args) == 1):
        return _sorted(op, args, (by[0], number, by[1]), (k, v, where[k]))
    first = first_key(op.regions[0])
    in_front = None if first is None else _key(args[first[0]], where, k, v)
    region = region_terms(op.regions[0], context)
    bodies = tuple(a.at([*where[:k], expr.of_var(v), *where[k + 1 :]]) for a in args)
    found = []
    for n, type_ in enumerate(op.types):
        if first is not None and n == first[0] and in_front is not None:
            place = where[k] if first[1] else from_the_end(v, where[k])
            found.append(Value(type_, in_order(values(v, in_front, place, type_.dtype))))
            continue
        key = (region, stable, n)
        term = define("sort", [v], bodies, attributes=key, at=(where[k],), ordered=True, dtype=type_.dtype)
        found.append(Value(type_, term))
    return found


def _key(value: Value, where: Sequence[Index], k: int, v: Var) -> Poly | None:
    """What elements are ordered by at a place of the dimension; None where that may be no number."""
    dtype = value.type.dtype
    term = exact_integer(value) if is_integer(dtype) else value.term
    there = Value(value.type, term).at([*where[:k], expr.of_var(v), *where[k + 1 :]])
    return None if there.doubt & INFINITE or not (is_integer(dtype) or is_float(dtype)) else there


def _sorted(op: Op, args: list[Value], by: tuple[int, Poly, bool], dimension: tuple[int, Var, Index]) -> list[Value]:
    """The operands in the order of one of them."""
    (number, key, ascending), (k, v, place) = by, dimension
    found = []
    for n, (value, type_) in enumerate(zip(args, op.types, strict=True)):
        if n == number:
            term = values(v, key, place if ascending else from_the_end(v, place), type_.dtype)
        else:
            which = order(v, key, place, args[number].type.dtype, ascending=ascending)
            where = positions(value.shape)
            term = value.at([*where[:k], algebra.as_index(which, 0, v.size - 1), *where[k + 1 :]])
        found.append(Value(type_, in_order(term)))
    return found


def top_k(op: Op, args: list[Value], largest: bool) -> list[Value]:
    """The k largest or least elements of the last dimension in order, of equal ones the first, and their indices."""
    (source,) = args
    dtype = source.type.dtype
    k = len(source.shape) - 1
    v = expr.fresh("f", source.shape[k])
    where = positions(op.types[0].shape)
    key = _key(source, [*where[:k], expr.of_var(v)], k, v)
    if key is not None:
        place = from_the_end(v, where[k]) if largest else where[k]
        found = [values(v, key, place, dtype), order(v, key, where[k], dtype, ascending=not largest)]
        return [Value(type_, in_order(term)) for type_, term in zip(op.types, found, strict=False)]
    return top_k_by((largest,), op, args)


def top_k_by(by: tuple[Hashable, ...], op: Op, args: list[Value]) -> list[Value]:
    """The k first elements of the last dimension in some order, and their indices: a function of all its elements."""
    (source,) = args
    v, where = expr.fresh("f", source.shape[-1]), positions(op.types[0].shape)
    body = source.at([*where[:-1], expr.of_var(v)])
    found = []
    for n, type_ in enumerate(op.types):
        known = (*by, n, source.type.dtype, type_.dtype)
        term = define("top_k", [v], (body,), attributes=known, at=(where[-1],), ordered=True, dtype=type_.dtype)
        found.append(Value(type_, term))
    return found


def _top_k(op: Op, args: list[Value], context: Context) -> list[Value]:
    largest = op.attributes.get("largest", True)
    if not isinstance(largest, bool):
        raise UnsupportedError(f"{op.name} with largest = {largest}")
    return top_k(op, args, largest)


RULES: dict[str, Rule] = {"sort": _sort, "chlo.top_k": _top_k, "mhlo.topk": _top_k}
