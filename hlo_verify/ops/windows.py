"""Windows that slide over a tensor: reduce_window and select_and_scatter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ops.best import index_of_best
from hlo_verify.ops.log_sums import has_elements, is_log_of_sum, log_of_sum
from hlo_verify.ops.movement import guarded_select, linear_index
from hlo_verify.ops.reductions import fold
from hlo_verify.ops.regions import combine, monoid, monoids, neutral, operand_term, reduce_terms, region_terms
from hlo_verify.ops.values import (
    Context,
    Rule,
    UnsupportedError,
    Value,
    factor,
    lighten,
    operand_of_type,
    positions,
    remap,
)
from hlo_verify.program.ir import Op
from hlo_verify.terms import algebra, guards, sums
from hlo_verify.terms.term import ONE, ZERO, Poly, number


@dataclass(frozen=True, slots=True)
class Window:
    """What a window reads: the element at `indices`, which exists where `inside`, for each value of `bound`."""

    bound: tuple[Var, ...]
    indices: tuple[Index, ...]
    inside: Poly


def window(op: Op, source: tuple[int, ...], at: Sequence[Index]) -> Window:
    """The window at a position of the result, over a tensor of shape `source` with padding and dilations."""
    attributes, rank = op.attributes, len(source)
    sizes = attributes["window_dimensions"]
    strides = attributes.get("window_strides") or (1,) * rank
    base = attributes.get("base_dilations") or (1,) * rank
    dilation = attributes.get("window_dilations") or (1,) * rank
    padding = attributes.get("padding")
    bound, indices, inside = [], [], ONE
    for k in range(rank):
        v = expr.fresh("f", sizes[k])
        low = int(padding[k][0]) if padding is not None else 0
        e = expr.add(expr.scale(at[k], strides[k]), expr.scale(expr.of_var(v), dilation[k]))
        q, between = expr.floor_divmod(expr.shift(e, -low), base[k])
        inside = algebra.multiply(inside, guards.interval(q, 0, source[k] - 1))
        inside = algebra.multiply(inside, guards.interval(between, 0, 0))
        bound.append(v)
        indices.append(q)
    return Window(tuple(bound), tuple(indices), inside)


def _reduce_window(op: Op, args: list[Value], context: Context) -> list[Value]:
    """Every window is reduced with the padding holding the initial value."""
    count = len(args) // 2
    sources, inits = args[:count], args[count:]
    view = window(op, sources[0].shape, positions(op.types[0].shape))
    reducers = monoids(op.regions[0], context)
    if reducers is not None:
        return [
            Value(type_, lighten(_windowed(reducer, view, source, init, type_.dtype), type_.dtype))
            for reducer, source, init, type_ in zip(reducers, sources, inits, op.types, strict=True)
        ]
    summed = _log_of_sum(op, view, sources[0], inits[0]) if is_log_of_sum(op.regions[0]) else None
    if summed is not None:
        return [Value(op.types[0], lighten(summed, op.types[0].dtype))]
    bodies = []
    for source, init, type_ in zip(sources, inits, op.types, strict=True):
        term = factor(operand_of_type(source, type_.dtype), type_.dtype)
        first = operand_of_type(init, type_.dtype)
        bodies.append(guarded_select(view.inside, remap(term, source.shape, view.indices), first))
    firsts = [operand_of_type(init, type_.dtype) for init, type_ in zip(inits, op.types, strict=True)]
    return fold(op, view.bound, bodies, firsts, region_terms(op.regions[0], context))


def _log_of_sum(op: Op, view: Window, source: Value, init: Value) -> Poly | None:
    if not has_elements(op, source.shape):
        return None
    dtype = op.types[0].dtype
    term = remap(factor(operand_of_type(source, dtype), dtype), source.shape, view.indices)
    return log_of_sum(view.bound, view.inside, term, operand_of_type(init, dtype))


def _windowed(reducer: str, view: Window, source: Value, init: Value, dtype: str) -> Poly:
    term = remap(factor(operand_term(reducer, source, dtype), dtype), source.shape, view.indices)
    first = operand_term(reducer, init, dtype)
    if reducer != "sum":
        reduced = reduce_terms(reducer, view.bound, guarded_select(view.inside, term, first))
        return combine(reducer, reduced, first, dtype)
    reduced = sums.reduce_sum(view.bound, algebra.multiply(view.inside, term))
    if first.items:
        outside = algebra.multiply(algebra.logical_not(view.inside), first)
        reduced = algebra.add(reduced, sums.reduce_sum(view.bound, outside))
    return algebra.add(reduced, first)


def _select_and_scatter(op: Op, args: list[Value], context: Context) -> list[Value]:
    """Every element of `source` is added where its window over `operand` has the greatest (or least) element.

    The place is found as an offset within the window: the first in row-major order of the best ones where the selection
    keeps what it has (GE, LE), the last where it does not (GT, LT). Padding is never selected.
    """
    operand, source, init = args
    (type_,) = op.types
    best, first_wins = _selection(op)
    if monoid(op.regions[1], context) != "sum":
        raise UnsupportedError("select_and_scatter that scatters by something else than addition", Unsupported.REGION)
    if init.term is not ZERO:  # the specification folds it in for every element, XLA once
        raise UnsupportedError("select_and_scatter from an initial value that is not zero", Unsupported.USE)
    chosen = _chosen_offset(op, operand, source.shape, best, first_wins)
    # Every window that has the element, at the offset o within it, where the window's choice is o.
    at, outer, exist = _windows_with(op, positions(type_.shape), source.shape)
    offsets, lands = _offsets_at(op, positions(type_.shape), outer)
    lands = algebra.multiply(exist, lands)
    e = algebra.as_index(remap(chosen, source.shape, outer), -1, _offsets(op))
    place = linear_index(op.attributes["window_dimensions"], offsets)
    lands = algebra.multiply(lands, guards.interval(expr.subtract(e, place), 0, 0))
    term = remap(factor(operand_of_type(source, type_.dtype), type_.dtype), source.shape, outer)
    added = sums.reduce_sum(at, algebra.multiply(lands, term))
    return [Value(type_, lighten(added, type_.dtype))]


def _selection(op: Op) -> tuple[str, bool]:
    """What `select` keeps, and whether the first of equal elements is kept."""
    region = op.regions[0]
    (compare,) = region.ops if len(region.ops) == 1 else (None,)
    if compare is None or compare.name != "compare" or region.results != compare.results:
        raise UnsupportedError("select_and_scatter with a selection that is not one comparison", Unsupported.REGION)
    direction = compare.attributes["comparison_direction"]
    if compare.operands == region.arguments[::-1]:
        direction = {"GE": "LE", "LE": "GE", "GT": "LT", "LT": "GT"}.get(direction, "")
    elif compare.operands != region.arguments:
        direction = ""
    if direction not in ("GE", "LE", "GT", "LT"):
        raise UnsupportedError("select_and_scatter with a selection that is no order", Unsupported.REGION)
    return ("max" if direction in ("GE", "GT") else "min"), direction in ("GE", "LE")


def _windows_with(op: Op, element: Sequence[Index], count: Sequence[int]) -> tuple[list[Var], list[Index], Poly]:
    """The windows that an element may lie in: variables, windows for their values, and where there is such a window."""
    sizes, padding = op.attributes["window_dimensions"], op.attributes.get("padding")
    strides = op.attributes.get("window_strides") or (1,) * len(sizes)
    bound, windows, exist = [], [], ONE
    for k, size in enumerate(sizes):
        many = -(-size // strides[k])
        v = expr.fresh("f", min(many, count[k]))
        w = expr.of_var(v)
        if many < count[k]:  # the last one with it, and those before that
            low = int(padding[k][0]) if padding is not None else 0
            last, _ = expr.floor_divmod(expr.shift(element[k], low), strides[k])
            w = expr.subtract(last, w)
            exist = algebra.multiply(exist, guards.interval(w, 0, count[k] - 1))
        bound.append(v)
        windows.append(w)
    return bound, windows, exist


def _offsets_at(op: Op, element: Sequence[Index], windows: Sequence[Index]) -> tuple[tuple[Index, ...], Poly]:
    """Where an element lies in a window, and that it lies in it."""
    attributes = op.attributes
    sizes = attributes["window_dimensions"]
    strides = attributes.get("window_strides") or (1,) * len(sizes)
    padding = attributes.get("padding")
    offsets, inside = [], ONE
    for k, size in enumerate(sizes):
        low = int(padding[k][0]) if padding is not None else 0
        offset = expr.subtract(expr.shift(element[k], low), expr.scale(windows[k], strides[k]))
        inside = algebra.multiply(inside, guards.interval(offset, 0, size - 1))
        offsets.append(offset)
    return tuple(offsets), inside


def _offsets(op: Op) -> int:
    count = 1
    for n in op.attributes["window_dimensions"]:
        count *= n
    return count


def _offset(op: Op, bound: Sequence[Var]) -> Index:
    return linear_index(op.attributes["window_dimensions"], tuple(expr.of_var(v) for v in bound))


def _chosen_offset(op: Op, operand: Value, shape: tuple[int, ...], best: str, first_wins: bool) -> Poly:
    """The offset that each window selects, at the positional variables of `shape`."""
    view = window(op, operand.shape, positions(shape))
    dtype = operand.type.dtype
    worst = neutral(best, dtype)
    count = _offsets(op)
    offset = _offset(op, view.bound)
    if not first_wins:  # number offsets from the end
        offset = expr.shift(expr.scale(offset, -1), count - 1)
    term = remap(factor(operand_term(best, operand), dtype), operand.shape, view.indices)
    value = guarded_select(view.inside, term, worst)
    place = guarded_select(view.inside, algebra.of_index(offset), number(count))
    chosen = index_of_best(best, view.bound, (value, place), (worst, number(count)), (dtype, "i64"))
    return chosen if first_wins else algebra.subtract(number(count - 1), chosen)


RULES: dict[str, Rule] = {"reduce_window": _reduce_window, "select_and_scatter": _select_and_scatter}
