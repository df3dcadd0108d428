"""mhlo.scan: a carry that runs along one dimension of the inputs, leaving an output at every step.

A running sum (or product, maximum, ...) is one reduction over the steps up to each. Other bodies are functions of that
dimension, and only of it where they work element by element.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ops.movement import guarded_select
from hlo_verify.ops.regions import combine, neutral, operand_term, reduce_terms, region_terms, running
from hlo_verify.ops.values import Context, Rule, UnsupportedError, Value, factor, function_of, lighten, positions, remap
from hlo_verify.program.ir import Op
from hlo_verify.terms import guards
from hlo_verify.terms.term import Apply, Poly, Read, atoms


def _scan(op: Op, args: list[Value], context: Context) -> list[Value]:
    count = op.attributes["operandSegmentSizes"][0]
    inputs, inits = args[:count], args[count:]
    dim, reverse = op.attributes["dimension"], bool(op.attributes.get("is_reverse"))
    if not inputs:
        raise UnsupportedError("a scan without inputs")
    terms = region_terms(op.regions[0], context)
    if len(op.types) == 2 and count == 1 and terms[0] is terms[1] and inputs[0].shape == op.types[0].shape:
        reducer = running(op.regions[0], terms[1])
        if reducer is not None:
            return _running(op, reducer, inputs[0], inits[0], dim, reverse)
    outputs = op.attributes["resultSegmentSizes"][0]
    rest = tuple(n for k, n in enumerate(inputs[0].shape) if k != dim)
    by_element = (
        all(_elementwise(term, rest) for term in terms)
        and all(v.shape == inputs[0].shape for v in inputs)
        and all(v.shape == rest for v in inits)
    )
    results = []
    for n, type_ in enumerate(op.types):
        stacked = n < outputs
        key = (terms, dim, reverse, bool(op.attributes.get("is_associative")), count, n)
        if by_element:
            dims = [(v, [dim]) for v in inputs] + [(v, []) for v in inits]
            own: Sequence[int] = [dim] if stacked else []
        else:
            dims = [(v, list(range(len(v.shape)))) for v in args]
            own = range(type_.rank)
        results.append(Value(type_, function_of("scan", key, dims, type_, own)))
    return results


def _running(op: Op, reducer: str, source: Value, init: Value, dim: int, reverse: bool) -> list[Value]:
    stacked, last = op.types
    term = factor(operand_term(reducer, source), stacked.dtype)
    v = expr.fresh("f", source.shape[dim])
    results = []
    for result in (stacked, last):
        where: list[Index] = list(positions(result.shape))
        outer = [e for k, e in enumerate(where) if result is last or k != dim]
        at = [*outer[:dim], expr.of_var(v), *outer[dim:]]
        body = remap(term, source.shape, at)
        if result is stacked:
            behind = expr.subtract(where[dim], expr.of_var(v))
            seen = guards.interval(behind, None, 0) if reverse else guards.interval(behind, 0, None)
            body = guarded_select(seen, body, neutral(reducer, stacked.dtype))
        first = remap(operand_term(reducer, init), init.shape, outer)
        reduced = reduce_terms(reducer, [v], body)
        results.append(Value(result, lighten(combine(reducer, reduced, first, result.dtype), result.dtype)))
    return results


def _elementwise(p: Poly, shape: tuple[int, ...]) -> bool:
    """Whether a region's result at a position depends on its arguments there alone."""
    return all(
        isinstance(atom, Read) and atom.tensor.kind == "argument" and atom.indices == positions(shape)
        for atom in atoms(p)
        if not isinstance(atom, Apply)
    )


RULES: dict[str, Rule] = {"mhlo.scan": _scan}
