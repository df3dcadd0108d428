"""The meaning of operations that reduce: contractions, windows, scatters."""

from __future__ import annotations

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.passes.recheck.meanings.elementwise import product_of
from hlo_verify.passes.recheck.meanings.ordering import best_of_pairs
from hlo_verify.passes.recheck.meanings.site import Meaning, Site, UnwrittenError
from hlo_verify.passes.recheck.plain import (
    ONE,
    Affine,
    Call,
    Choose,
    Expr,
    Gate,
    Reduce,
    Row,
    add,
    as_affine,
    digit,
    minus,
    sum_of,
    times,
    whole,
)
from hlo_verify.program.ir import Function
from hlo_verify.terms.functions import EXTREMA, WINDOWS_LAND


def _dot_general(site: Site) -> Expr:
    if site.type.dtype == "i1":
        raise UnwrittenError("dot_general of truth values")
    numbers = site.attribute("dot_dimension_numbers")
    sides: list[dict[int, Affine]] = [{}, {}]
    names = ("lhs", "rhs")
    bound = []
    contracting = [numbers[f"{side}_contracting_dimensions"] for side in names]
    for pair in zip(*contracting, strict=True):
        v = expr.fresh("f", site.operands[0].shape[pair[0]])
        bound.append(v)
        for side, k in zip(sides, pair, strict=True):
            side[k] = whole(v)
    places = iter(site.where)
    for pair in zip(*(numbers[f"{side}_batching_dimensions"] for side in names), strict=True):
        e = next(places)
        for side, k in zip(sides, pair, strict=True):
            side[k] = e
    factors = []
    for n, side in enumerate(sides):
        rank = site.operands[n].rank
        for k in range(rank):
            if k not in side:
                side[k] = next(places)
        factors.append(site.read(n, [side[k] for k in range(rank)]))
    return Reduce("sum", tuple(bound), product_of(site.type.dtype, *factors))


def _convolution(site: Site) -> Expr:
    numbers, attributes = site.attribute("dimension_numbers"), site.op.attributes
    lhs, rhs = site.operands
    groups, batch_groups = attributes.get("feature_group_count", 1), attributes.get("batch_group_count", 1)
    feature = site.where[numbers["output_feature_dimension"]]
    features = site.type.shape[numbers["output_feature_dimension"]]
    channels = rhs.shape[numbers["kernel_input_feature_dimension"]]
    channel = expr.fresh("f", channels)
    left, right = [Affine(0)] * lhs.rank, [Affine(0)] * rhs.rank
    bound, tests = [channel], []
    for k, dim in enumerate(numbers["input_spatial_dimensions"]):
        kernel = numbers["kernel_spatial_dimensions"][k]
        size, stretch = rhs.shape[kernel], attributes["lhs_dilation"][k]
        window = expr.fresh("f", size)
        bound.append(window)
        out = site.where[numbers["output_spatial_dimensions"][k]]
        at = sum_of(
            (out, attributes["window_strides"][k]),
            (whole(window), attributes["rhs_dilation"][k]),
            const=-int(attributes["padding"][k][0]),
        )
        tests.append(Gate(at, 0, (lhs.shape[dim] - 1) * stretch))
        if stretch > 1:
            tests.append(Gate(digit(at, 1, stretch), 0, 0))
        left[dim] = digit(at, stretch)
        right[kernel] = (
            sum_of((whole(window), -1), const=size - 1) if attributes["window_reversal"][k] else whole(window)
        )
    batch = site.where[numbers["output_batch_dimension"]]
    per_group = lhs.shape[numbers["input_batch_dimension"]] // batch_groups
    left[numbers["input_batch_dimension"]] = sum_of((batch, 1), (digit(feature, features // batch_groups), per_group))
    left[numbers["input_feature_dimension"]] = sum_of(
        (whole(channel), 1), (digit(feature, features // groups), channels)
    )
    right[numbers["kernel_input_feature_dimension"]] = whole(channel)
    right[numbers["kernel_output_feature_dimension"]] = feature
    return Reduce(
        "sum", tuple(bound), times(*tests, product_of(site.type.dtype, site.read(0, left), site.read(1, right)))
    )


REDUCERS = {"add": "sum", "multiply": "product", "maximum": "max", "minimum": "min", "and": "min", "or": "max"}


def reducer_of(region: Function) -> str:
    """The reducer of a region that is one operation on its two arguments."""
    if len(region.ops) != 1 or set(region.ops[0].operands) != set(region.arguments) or len(region.arguments) != 2:
        raise UnwrittenError("a reducer that is more than one operation")
    (op,) = region.ops
    if op.name not in REDUCERS or region.results != op.results:
        raise UnwrittenError(f"a reducer that is {op.name}")
    if region.argument_types[0].dtype == "i1":
        return {"add": "max", "multiply": "min"}.get(op.name, REDUCERS[op.name])
    if op.name in ("and", "or"):
        raise UnwrittenError(f"a reducer that is {op.name} of integers")
    return REDUCERS[op.name]


def combined(reducer: str, *terms: Expr) -> Expr:
    """What a reducer makes of some terms."""
    if reducer == "sum":
        return add(*terms)
    return times(*terms) if reducer == "product" else Call(EXTREMA[reducer], terms)


def _reduce(site: Site) -> Expr:
    dims, count = site.attribute("dimensions"), len(site.operands) // 2
    reducer = reducer_of(site.op.regions[0]) if count == 1 else best_of_pairs(site.op.regions[0])
    bound: list[Var] = []
    where, places = [], iter(site.where)
    for k, size in enumerate(site.operands[0].shape):
        if k in dims:
            bound.append(expr.fresh("f", size))
            where.append(whole(bound[-1]))
        else:
            where.append(next(places))
    first = site.read(count + site.result, [])
    if any(v.size == 0 for v in bound):
        return first
    if site.result:
        bodies = (site.read(0, where), site.read(1, where), site.read(count, []), first)
        return Row(f"arg{reducer}", tuple(bound), bodies)
    return combined(reducer, Reduce(reducer, tuple(bound), site.read(0, where)), first)


def _reduce_window(site: Site) -> Expr:
    if len(site.operands) != 2:
        raise UnwrittenError("reduce_window of several operands together")
    reducer, attributes, source = reducer_of(site.op.regions[0]), site.op.attributes, site.operands[0]
    ones = (1,) * source.rank
    strides, base = attributes.get("window_strides") or ones, attributes.get("base_dilations") or ones
    dilation, padding = attributes.get("window_dilations") or ones, attributes.get("padding")
    bound, where = [], []
    tests: list[Expr] = []
    for k, size in enumerate(attributes["window_dimensions"]):
        v = expr.fresh("f", size)
        bound.append(v)
        low = int(padding[k][0]) if padding is not None else 0
        at = sum_of((site.where[k], strides[k]), (whole(v), dilation[k]), const=-low)
        tests.append(Gate(at, 0, (source.shape[k] - 1) * base[k]))
        if base[k] > 1:
            tests.append(Gate(digit(at, 1, base[k]), 0, 0))
        where.append(digit(at, base[k]))
    first = site.read(1, [])
    inner = Choose(times(*tests), site.read(0, where), first) if tests else site.read(0, where)
    return combined(reducer, Reduce(reducer, tuple(bound), inner), first)


def _scatter(site: Site) -> Expr:
    """Every update lands where its start index and its offset say, if its whole window lies inside.

    Whether the part of a window that lies inside lands where another part does not is a truth value of its own
    (`hlo_verify.ops.scatter` says why).
    """
    if len(site.op.types) != 1:
        raise UnwrittenError("scatter of several operands together")
    reducer = reducer_of(site.op.regions[0])
    operand, indices, updates = site.operands
    numbers = site.attribute("scatter_dimension_numbers")
    vector, windows = numbers["index_vector_dim"], numbers["update_window_dims"]
    bound = tuple(expr.fresh("f", n) for n in updates.shape)
    at = [whole(v) for v in bound]
    batch = [e for k, e in enumerate(at) if k not in windows]
    fixed = {*numbers["inserted_window_dims"], *numbers["input_batching_dims"]}
    free = [k for k in range(operand.rank) if k not in fixed]
    offset = {k: (at[w], updates.shape[w]) for k, w in zip(free, windows, strict=True)}
    start: dict[int, Affine] = {}
    for n, k in enumerate(numbers["scatter_dims_to_operand_dims"]):
        place = [*batch[:vector], Affine(n), *batch[vector:]] if vector < indices.rank else batch
        start[k] = as_affine(site.read(1, place))
    for k, b in zip(numbers["input_batching_dims"], numbers["scatter_indices_batching_dims"], strict=True):
        start[k] = batch[b if b < vector else b - 1]
    tests: list[Expr] = []
    inside: list[Expr] = []
    for k, size in enumerate(operand.shape):
        moved, width = offset.get(k, (Affine(0), 1))
        tests.append(Gate(sum_of((start.get(k, Affine(0)), 1), (moved, 1), (site.where[k], -1)), 0, 0))
        if width > 1 and k in start:
            inside.append(Gate(start[k], 0, size - width))
    if inside:
        fits = times(*inside)
        tests.append(add(fits, times(minus(ONE, fits), Call(WINDOWS_LAND, ()))))
    if reducer != "sum":
        raise UnwrittenError(f"scatter whose reducer is {reducer}")
    return add(site.read(0, site.where), Reduce("sum", bound, times(*tests, site.read(2, at))))


MEANINGS: dict[str, Meaning] = {
    "dot_general": _dot_general,
    "convolution": _convolution,
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "scatter": _scatter,
}
"""Meanings by operation name."""
