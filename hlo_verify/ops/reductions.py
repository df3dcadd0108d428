"""Reductions of whole dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import allows
from hlo_verify.ops.at_best import reduce_to_best
from hlo_verify.ops.best import best_value, index_of_best
from hlo_verify.ops.bits import JOINS
from hlo_verify.ops.regions import best_of_pairs, combine, monoids, operand_term, region_terms
from hlo_verify.ops.values import (
    Context,
    Rule,
    Value,
    factor,
    lighten,
    operand_of_type,
    positions,
    remap,
)
from hlo_verify.program.element_types import is_integer
from hlo_verify.program.ir import Function, Op
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define
from hlo_verify.terms.term import Poly


def _reduce(op: Op, args: list[Value], context: Context) -> list[Value]:
    """Every element is combined with the initial value once."""
    count = len(args) // 2
    inputs, inits = args[:count], args[count:]
    dims = op.attributes["dimensions"]
    own = [expr.fresh("f", inputs[0].shape[k]) for k in dims]
    if any(v.size == 0 for v in own):
        return [Value(type_, operand_of_type(init, type_.dtype)) for type_, init in zip(op.types, inits, strict=True)]
    where = iter(positions(op.types[0].shape))
    indices: list[Index] = []
    for k in range(len(inputs[0].shape)):
        indices.append(expr.of_var(own[dims.index(k)]) if k in dims else next(where))
    bound = [v for v in own if v.size > 1]
    reducers = monoids(op.regions[0], context)
    if reducers is not None:
        return [
            Value(type_, lighten(_reduced(reducer, bound, value, init, indices, type_.dtype), type_.dtype))
            for reducer, value, init, type_ in zip(reducers, inputs, inits, op.types, strict=True)
        ]
    best = best_of_pairs(op.regions[0])
    if best is not None:
        return _best(op, best, bound, inputs, inits, indices)
    dtypes = [type_.dtype for type_ in op.types]
    bodies = [
        remap(factor(operand_of_type(v, dtype), dtype), v.shape, indices)
        for v, dtype in zip(inputs, dtypes, strict=True)
    ]
    firsts = [operand_of_type(init, dtype) for init, dtype in zip(inits, dtypes, strict=True)]
    if _joins_bits(op.regions[0]) and allows("unrolled_turns", prod(v.size for v in own)):
        return [_joined(op, own, bodies[0], firsts[0], context)]
    return fold(op, own, bodies, firsts, region_terms(op.regions[0], context))


def _reduced(
    reducer: str, bound: Sequence[Var], value: Value, init: Value, indices: Sequence[Index], dtype: str
) -> Poly:
    term = operand_term(reducer, value, dtype)
    if bound and (len(term.items) > 8 or (reducer != "sum" and len(term.items) > 1)):
        term = factor(term, dtype)
    reduced = reduce_to_best(reducer, bound, remap(term, value.shape, indices), dtype)
    return combine(reducer, reduced, operand_term(reducer, init, dtype), dtype)


def _best(
    op: Op, best: str, bound: Sequence[Var], inputs: list[Value], inits: list[Value], indices: Sequence[Index]
) -> list[Value]:
    """argmax and its like."""
    dtypes = (op.types[0].dtype, op.types[1].dtype)
    value, index = (
        remap(factor(operand_term("max", v, dtype), dtype), v.shape, indices)
        for v, dtype in zip(inputs, dtypes, strict=True)
    )
    first = (operand_term("max", inits[0], dtypes[0]), operand_term("max", inits[1], dtypes[1]))
    greatest = best_value(best, bound, value, first[0], dtypes[0])
    place = index_of_best(best, bound, (value, index), first, dtypes)
    return [Value(op.types[0], lighten(greatest, dtypes[0])), Value(op.types[1], place)]


def _joins_bits(region: Function) -> bool:
    """Whether a region is `and`, `or` or `xor` of two integers."""
    if len(region.ops) != 1 or region.ops[0].name not in JOINS or not is_integer(region.argument_types[0].dtype):
        return False
    return set(region.ops[0].operands) == set(region.arguments) and region.results == region.ops[0].results


def _joined(op: Op, bound: Sequence[Var], body: Poly, first: Poly, context: Context) -> Value:
    """Few elements joined one by one, which they are in any order and in any parts."""
    type_, inner = op.regions[0].argument_types[0], replace(context, device=None, mesh=None, observe=None)
    total = Value(type_, first)
    for at in product(*(range(v.size) for v in bound)):
        place = {v: expr.constant(n) for v, n in zip(bound, at, strict=True)}
        (total,) = context.run(op.regions[0], [total, Value(type_, algebra.substitute(body, place))], inner)
    return Value(op.types[0], total.term)


def fold(
    op: Op, bound: Sequence[Var], bodies: Sequence[Poly], firsts: Sequence[Poly], key: tuple[Poly, ...]
) -> list[Value]:
    """Reductions that are not recognised: functions of their elements in row-major order, known by their region."""
    return [
        Value(type_, define("reduce", bound, (*bodies, *firsts), attributes=(key, n), ordered=True, dtype=type_.dtype))
        for n, type_ in enumerate(op.types)
    ]


RULES: dict[str, Rule] = {"reduce": _reduce}
