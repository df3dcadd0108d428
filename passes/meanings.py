"""What every operation means, written down a second time: one element of a result, as a plain term.

Each function follows the text of the StableHLO specification and nothing of `hlo_verify.ops`. It is given where the
element is (`site.where`) and reads operands at index expressions (`site.read`). What is not here is not re-checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.ir import Function, Op, TensorType
from hlo_verify.solver.plain import (
    ONE,
    ZERO,
    Affine,
    Call,
    Choose,
    Entry,
    Expr,
    Gate,
    Integer,
    Num,
    OfIndex,
    Reduce,
    add,
    as_affine,
    clamp,
    digit,
    minus,
    plus,
    row_major,
    sum_of,
    times,
    whole,
)


class UnwrittenError(Exception):
    """An operation, or a use of it, whose meaning is not written down here."""


Reader = Callable[[int, Sequence[Affine], "Affine | None"], Expr]


@dataclass(frozen=True, slots=True)
class Site:
    """One element of one result of an operation, on a device."""

    op: Op
    result: int
    where: tuple[Affine, ...]
    operands: tuple[TensorType, ...]
    reader: Reader
    device: Affine | None = None
    partitions: int = 1
    replicas: int = 1

    @property
    def kind(self) -> TensorType:
        """The type of the result."""
        return self.op.types[self.result]

    def read(self, n: int, where: Sequence[Affine]) -> Expr:
        """An element of an operand, on the same device."""
        return self.reader(n, where, None)

    def read_on(self, n: int, where: Sequence[Affine], device: Affine) -> Expr:
        """An element of an operand on another device."""
        return self.reader(n, where, device)

    def attribute(self, name: str) -> Any:
        return self.op.attributes[name]


Meaning = Callable[[Site], Expr]


def is_integral(dtype: str) -> bool:
    """Whether elements are integers or truth values."""
    return dtype.startswith(("i", "ui"))


def is_real(dtype: str) -> bool:
    """Whether elements are floating-point numbers."""
    return dtype.startswith(("f", "bf"))


# Data movement


def _broadcast_in_dim(site: Site) -> Expr:
    dims, (source, *_) = site.attribute("broadcast_dimensions"), site.operands
    return site.read(0, [Affine(0) if n == 1 else site.where[k] for n, k in zip(source.shape, dims, strict=True)])


def _transpose(site: Site) -> Expr:
    permutation = list(site.attribute("permutation"))
    return site.read(0, [site.where[permutation.index(k)] for k in range(len(permutation))])


def _reshape(site: Site) -> Expr:
    """Elements keep their place in row-major order.

    Dimensions that both shapes share at an end stand for themselves; of the others the place is taken apart.
    """
    return site.read(0, rearranged(site.operands[0].shape, site.kind.shape, site.where))


def rearranged(source: Sequence[int], result: Sequence[int], where: Sequence[Affine]) -> list[Affine]:
    """The index in `source` of the element at `where` of a reshape."""
    if 0 in source:
        return [Affine(0)] * len(source)
    groups: list[tuple[list[int], list[int]]] = []
    a, b = list(range(len(source))), list(range(len(result)))
    while a or b:
        left: list[int] = []
        right: list[int] = []
        m = n = 1
        while not (left or right) or m != n:
            if (m <= n and a) or not b:
                left.append(a.pop(0))
                m *= source[left[-1]]
            else:
                right.append(b.pop(0))
                n *= result[right[-1]]
        groups.append((left, right))
    found = [Affine(0)] * len(source)
    for left, right in groups:
        place = row_major([result[k] for k in right], [where[k] for k in right])
        stride = 1
        for k in reversed(left):
            top = k == left[0]
            found[k] = Affine(0) if source[k] == 1 else digit(place, stride, None if top else source[k])
            stride *= source[k]
    return found


def _slice(site: Site) -> Expr:
    starts, strides = site.attribute("start_indices"), site.attribute("strides")
    return site.read(0, [sum_of((e, s), const=b) for e, b, s in zip(site.where, starts, strides, strict=True)])


def _reverse(site: Site) -> Expr:
    dims = site.attribute("dimensions")
    return site.read(
        0,
        [
            sum_of((e, -1), const=n - 1) if k in dims else e
            for k, (e, n) in enumerate(zip(site.where, site.kind.shape, strict=True))
        ],
    )


def _concatenate(site: Site) -> Expr:
    k = site.attribute("dimension")
    pieces, start = [], 0
    for n, operand in enumerate(site.operands):
        size = operand.shape[k]
        if size:
            here = list(site.where)
            here[k] = plus(here[k], -start) if size > 1 else Affine(0)
            pieces.append(times(Gate(site.where[k], start, start + size - 1), site.read(n, here)))
        start += size
    return add(*pieces)


def _pad(site: Site) -> Expr:
    source = site.operands[0]
    low, interior = site.attribute("edge_padding_low"), site.attribute("interior_padding")
    if 0 in source.shape:
        return site.read(1, [])
    tests: list[Expr] = []
    where = []
    for k, size in enumerate(source.shape):
        e = plus(site.where[k], -low[k])
        step = interior[k] + 1
        if step > 1:
            tests.append(Gate(digit(e, 1, step), 0, 0))
        tests.append(Gate(e, 0, (size - 1) * step))
        where.append(digit(e, step))
    return Choose(times(*tests), site.read(0, where), site.read(1, []))


def _start(site: Site, n: int, where: Sequence[Affine], size: int, width: int) -> Affine:
    return clamp(as_affine(site.read(n, where)), 0, size - width)


def _dynamic_slice(site: Site) -> Expr:
    shape = site.operands[0].shape
    return site.read(
        0,
        [sum_of((_start(site, 1 + k, [], n, site.kind.shape[k]), 1), (site.where[k], 1)) for k, n in enumerate(shape)],
    )


def _dynamic_update_slice(site: Site) -> Expr:
    shape, update = site.operands[0].shape, site.operands[1].shape
    if 0 in update:
        return site.read(0, site.where)
    tests: list[Expr] = []
    where = []
    for k, n in enumerate(shape):
        e = sum_of((site.where[k], 1), (_start(site, 2 + k, [], n, update[k]), -1))
        tests.append(Gate(e, 0, update[k] - 1))
        where.append(e if update[k] > 1 else Affine(0))
    return Choose(times(*tests) if tests else ONE, site.read(1, where), site.read(0, site.where))


def _identity(site: Site) -> Expr:
    return site.read(site.result, site.where)


def _custom_call(site: Site) -> Expr:
    if site.attribute("call_target_name") in ("Sharding", "LayoutConstraint", "MoveToHost", "MoveToDevice"):
        return _identity(site)
    raise UnwrittenError(f"custom_call to {site.attribute('call_target_name')}")


def _gather(site: Site) -> Expr:
    operand, indices = site.operands
    numbers, sizes = site.attribute("dimension_numbers"), site.attribute("slice_sizes")
    offsets, vector = numbers["offset_dims"], numbers["index_vector_dim"]
    batch = [e for k, e in enumerate(site.where) if k not in offsets]
    fixed = {*numbers["collapsed_slice_dims"], *numbers["operand_batching_dims"]}
    free = [k for k in range(operand.rank) if k not in fixed]
    parts: list[list[tuple[Affine, int]]] = [[] for _ in operand.shape]
    for k, dim in zip(free, offsets, strict=True):
        parts[k].append((site.where[dim], 1))
    for n, k in enumerate(numbers["start_index_map"]):
        at = [*batch[:vector], Affine(n), *batch[vector:]] if vector < indices.rank else batch
        parts[k].append((_start(site, 1, at, operand.shape[k], sizes[k]), 1))
    for k, b in zip(numbers["operand_batching_dims"], numbers["start_indices_batching_dims"], strict=True):
        parts[k].append((batch[b if b < vector else b - 1], 1))
    return site.read(0, [sum_of(*p) for p in parts])


# Numbers


def _iota(site: Site) -> Expr:
    return OfIndex(site.where[site.attribute("iota_dimension")])


def _constant(site: Site) -> Expr:
    array = site.attribute("value")
    if array.size == 0:
        return ZERO
    if all(stride == 0 or size == 1 for stride, size in zip(array.strides, array.shape, strict=True)):
        return Entry(array.reshape(-1)[:1].copy(), Affine(0))
    return Entry(array, row_major(site.kind.shape, site.where))


def _at(site: Site, n: int) -> Expr:
    """The operand's element at the same place; of a scalar, it itself."""
    return site.read(n, site.where if site.operands[n].shape else [])


def _either(a: Expr, b: Expr) -> Expr:
    return add(a, b, times(Num(-1), a, b))


def _add(site: Site) -> Expr:
    a, b = _at(site, 0), _at(site, 1)
    return _either(a, b) if site.kind.dtype == "i1" else add(a, b)


def _subtract(site: Site) -> Expr:
    return minus(_at(site, 0), _at(site, 1))


def _multiply(site: Site) -> Expr:
    return times(_at(site, 0), _at(site, 1))


def _negate(site: Site) -> Expr:
    return times(Num(-1), _at(site, 0))


def _divide(site: Site) -> Expr:
    if not is_integral(site.kind.dtype):
        return times(_at(site, 0), Call("inverse", (_at(site, 1),)))
    top, bottom = as_affine(_at(site, 0)), as_affine(_at(site, 1))
    if bottom.items or bottom.const <= 0 or any(isinstance(part.base, Integer) for part, _ in top.items):
        raise UnwrittenError("division of integers that are no index, or by what is no positive constant")
    back = times(Num(-1), OfIndex(digit(sum_of((top, -1)), bottom.const)))
    return Choose(Gate(top, 0, None), OfIndex(digit(top, bottom.const)), back)


def _remainder(site: Site) -> Expr:
    if not is_integral(site.kind.dtype):
        return free_function(site)
    top, bottom = as_affine(_at(site, 0)), as_affine(_at(site, 1))
    if bottom.items or bottom.const <= 0 or any(isinstance(part.base, Integer) for part, _ in top.items):
        raise UnwrittenError("remainder of integers that are no index, or by what is no positive constant")
    back = times(Num(-1), OfIndex(digit(sum_of((top, -1)), 1, bottom.const)))
    return Choose(Gate(top, 0, None), OfIndex(digit(top, 1, bottom.const)), back)


def free_function(site: Site) -> Expr:
    """A function known by its name, attributes and types."""
    name = site.op.name.removeprefix("chlo.").removeprefix("mhlo.")
    real = all(is_real(kind.dtype) for kind in site.operands) and name != "next_after"
    source = "real" if real else ",".join(kind.dtype for kind in site.operands)
    target = "real" if is_real(site.kind.dtype) and name != "next_after" else site.kind.dtype
    extra = "".join(
        f",{k}={site.op.attributes[k]}" for k in ("exponent_bits", "mantissa_bits") if k in site.op.attributes
    )
    return Call(f"{name}:{source}->{target}{extra}", tuple(_at(site, n) for n in range(len(site.operands))))


def _named(name: str) -> Meaning:
    def meaning(site: Site) -> Expr:
        if not is_real(site.kind.dtype):
            return free_function(site)
        return Call(name, tuple(_at(site, n) for n in range(len(site.operands))))

    return meaning


def _maximum(site: Site) -> Expr:
    a, b = _at(site, 0), _at(site, 1)
    return _either(a, b) if site.kind.dtype == "i1" else Call("maximum", (a, b))


def _minimum(site: Site) -> Expr:
    a, b = _at(site, 0), _at(site, 1)
    return times(a, b) if site.kind.dtype == "i1" else Call("minimum", (a, b))


def _clamp(site: Site) -> Expr:
    low, x, high = (_at(site, n) for n in range(3))
    return Call("minimum", (Call("maximum", (x, low)), high))


def _select(site: Site) -> Expr:
    return Choose(*(_at(site, n) for n in range(3)))


def _compare(site: Site) -> Expr:
    direction, dtype = site.attribute("comparison_direction"), site.operands[0].dtype
    a, b = _at(site, 0), _at(site, 1)
    if is_integral(dtype) and not (dtype == "i1" and direction in ("EQ", "NE")):
        bounds = {"EQ": (0, 0), "NE": (0, 0), "LT": (None, -1), "LE": (None, 0), "GT": (1, None), "GE": (0, None)}
        test: Expr = Gate(sum_of((as_affine(a), 1), (as_affine(b), -1)), *bounds[direction])
    elif dtype == "i1":
        test = add(ONE, times(Num(-1), a), times(Num(-1), b), times(Num(2), a, b))
    elif is_real(dtype) and site.op.attributes.get("compare_type") != "TOTALORDER":
        if direction in ("LT", "GE"):
            a, b = b, a
        test = Call("zero" if direction in ("EQ", "NE") else "positive", (minus(a, b),))
        if direction in ("LE", "GE"):
            test = minus(ONE, test)
    else:
        raise UnwrittenError(f"compare of {dtype} in total order")
    return minus(ONE, test) if direction == "NE" else test


def _convert(site: Site) -> Expr:
    old, new, x = site.operands[0].dtype, site.kind.dtype, _at(site, 0)
    if "complex" in old + new:
        raise UnwrittenError("convert of complex numbers")
    if new == "i1" and old != "i1":
        return minus(ONE, Gate(as_affine(x), 0, 0) if is_integral(old) else Call("zero", (x,)))
    if is_integral(new) and not is_integral(old):
        return Call(f"truncate:{new}", (x,))
    return x


def _power(site: Site) -> Expr:
    if not is_real(site.kind.dtype):
        raise UnwrittenError("power of integers")
    return free_function(site)


def _is_finite(site: Site) -> Expr:
    return Call("is_finite", (_at(site, 0),))


def _truth(meaning: Callable[..., Expr]) -> Meaning:
    def checked(site: Site) -> Expr:
        if site.kind.dtype != "i1":
            raise UnwrittenError(f"{site.op.name} of the bits of integers")
        return meaning(*(_at(site, n) for n in range(len(site.operands))))

    return checked


# Sums


def _dot_general(site: Site) -> Expr:
    if site.kind.dtype == "i1":
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
    return Reduce("sum", tuple(bound), times(*factors))


def _convolution(site: Site) -> Expr:
    numbers, attributes = site.attribute("dimension_numbers"), site.op.attributes
    lhs, rhs = site.operands
    groups, batch_groups = attributes.get("feature_group_count", 1), attributes.get("batch_group_count", 1)
    feature = site.where[numbers["output_feature_dimension"]]
    features = site.kind.shape[numbers["output_feature_dimension"]]
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
    return Reduce("sum", tuple(bound), times(*tests, site.read(0, left), site.read(1, right)))


REDUCERS = {"add": "sum", "multiply": "product", "maximum": "max", "minimum": "min", "and": "min", "or": "max"}


def reducer(region: Function) -> str:
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


def combined(kind: str, *terms: Expr) -> Expr:
    """What a reducer makes of some terms."""
    if kind == "sum":
        return add(*terms)
    return times(*terms) if kind == "product" else Call({"max": "maximum", "min": "minimum"}[kind], terms)


def _reduce(site: Site) -> Expr:
    dims, count = site.attribute("dimensions"), len(site.operands) // 2
    if count > 1:
        raise UnwrittenError("reduce of several operands together")
    kind = reducer(site.op.regions[0])
    bound: list[Var] = []
    where, places = [], iter(site.where)
    for k, size in enumerate(site.operands[0].shape):
        if k in dims:
            bound.append(expr.fresh("f", size))
            where.append(whole(bound[-1]))
        else:
            where.append(next(places))
    first = site.read(count, [])
    if any(v.size == 0 for v in bound):
        return first
    return combined(kind, Reduce(kind, tuple(bound), site.read(0, where)), first)


def _reduce_window(site: Site) -> Expr:
    if len(site.operands) != 2:
        raise UnwrittenError("reduce_window of several operands together")
    kind, attributes, source = reducer(site.op.regions[0]), site.op.attributes, site.operands[0]
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
    return combined(kind, Reduce(kind, tuple(bound), inner), first)


def _scatter(site: Site) -> Expr:
    """Every update lands where its start index and its offset say, if its whole window lies inside."""
    if len(site.op.types) != 1:
        raise UnwrittenError("scatter of several operands together")
    kind = reducer(site.op.regions[0])
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
    for k, size in enumerate(operand.shape):
        moved, width = offset.get(k, (Affine(0), 1))
        tests.append(Gate(sum_of((start.get(k, Affine(0)), 1), (moved, 1), (site.where[k], -1)), 0, 0))
        if width > 1 and k in start:
            tests.append(Gate(start[k], 0, size - width))
    if kind != "sum":
        raise UnwrittenError(f"scatter whose reducer is {kind}")
    return add(site.read(0, site.where), Reduce("sum", bound, times(*tests, site.read(2, at))))


FUNCTIONS = (
    "abs atan2 cbrt ceil cosine count_leading_zeros exponential_minus_one floor log_plus_one logistic popcnt "
    "round_nearest_afz round_nearest_even rsqrt sign sine tan tanh reduce_precision chlo.erf chlo.erf_inv chlo.erfc "
    "chlo.lgamma chlo.square mhlo.erf mhlo.tan chlo.tan"
).split()

MEANINGS: dict[str, Meaning] = {
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
    "custom_call": _custom_call,
    "gather": _gather,
    "iota": _iota,
    "constant": _constant,
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "negate": _negate,
    "divide": _divide,
    "remainder": _remainder,
    "exponential": _named("exponential"),
    "log": _named("log"),
    "sqrt": _named("sqrt"),
    "maximum": _maximum,
    "minimum": _minimum,
    "clamp": _clamp,
    "select": _select,
    "compare": _compare,
    "convert": _convert,
    "power": _power,
    "is_finite": _is_finite,
    "and": _truth(times),
    "or": _truth(_either),
    "xor": _truth(lambda a, b: add(a, b, times(Num(-2), a, b))),
    "not": _truth(lambda a: minus(ONE, a)),
    "dot_general": _dot_general,
    "convolution": _convolution,
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "scatter": _scatter,
    **dict.fromkeys(FUNCTIONS, free_function),
}
"""Meanings by operation name."""
