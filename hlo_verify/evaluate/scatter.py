"""scatter: indices that are hit get classes of their own; updates of one class are added as often as they occur."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlo_verify.evaluate.blocks import Blocks, refine, replaced, spread, take, taken
from hlo_verify.evaluate.elementwise import scalar_function
from hlo_verify.evaluate.maps import Array, ClassMap
from hlo_verify.evaluate.numbers import wrapped
from hlo_verify.evaluate.reductions import monoid, power, promoted
from hlo_verify.evaluate.state import Place, Rule, Run
from hlo_verify.evaluate.totals import are_same, is_enclosure, negated, scaled, ufunc
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.program.ir import Function, Op


@dataclass(frozen=True, slots=True)
class Landing:
    """Where updates land: for each class of updates (axes as those of the updates' values), the class of the result's
    index along each dimension, whether that is inside, and how often it occurs."""

    classes: tuple[ClassMap, ...]
    """Of the result."""
    targets: list[Array]
    inside: Array
    times: Array


def _scatter(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    count = len(op.types)
    operands, indices, updates = args[:count], args[count], args[count + 1 :]
    sides = promoted(op, [*operands, *updates], (*op.operands[:count], *op.operands[count + 1 :]), run)
    operands, updates = sides[:count], sides[count:]
    if 0 in updates[0].shape:
        return list(operands)
    if count > 1:
        raise UnknownError("a computation that is not recognised")
    reducer, update = _reducer(op.regions[0]), updates[0]
    if reducer == "subtract":
        reducer, update = "add", replace(update, values=negated(update.values))
    return [_landed(reducer, op, operands[0], indices, update, run)]


def _reducer(region: Function) -> str | None:
    """How updates are combined with elements; None where the region itself says it, of one update at the most."""
    if region.results == region.arguments[1:]:
        return "set"
    (op, *others) = region.ops or (None,)
    if op is not None and not others and op.name == "subtract" and op.operands == region.arguments:
        return "subtract" if op.results == region.results else None
    return monoid(region)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which axis of the updates' values goes along each dimension of the operand, and how wide the windows are."""

    axis: tuple[int | None, ...]
    width: tuple[int, ...]
    """1 for a dimension that is mapped over."""
    batching: frozenset[int]
    batch_axes: tuple[int, ...]
    to_operand: tuple[int, ...]
    vector: int


def _layout(op: Op, operand: Blocks, update: Blocks) -> Layout:
    numbers = op.attributes["scatter_dimension_numbers"]
    windows, vector = numbers["update_window_dims"], numbers["index_vector_dim"]
    batch_axes = tuple(k + 1 for k in range(len(update.shape)) if k not in windows)
    batching = dict(zip(numbers["input_batching_dims"], numbers["scatter_indices_batching_dims"], strict=True))
    gone = {*numbers["inserted_window_dims"], *batching}
    axis: list[int | None] = [None] * len(operand.shape)
    for k, w in zip((k for k in range(len(operand.shape)) if k not in gone), windows, strict=True):
        axis[k] = w + 1
    width = tuple(1 if a is None else len(update.classes[a]) for a in axis)
    for k, b in batching.items():
        axis[k] = batch_axes[b if b < vector else b - 1]
    to_operand = tuple(numbers["scatter_dims_to_operand_dims"])
    return Layout(tuple(axis), width, frozenset(batching), batch_axes, to_operand, vector)


def _landed(reducer: str | None, op: Op, operand: Blocks, indices: Blocks, update: Blocks, run: Run) -> Blocks:
    layout = _layout(op, operand, update)
    update = _fitted(operand, update, layout, run)
    update, starts = _with_starts(indices, update, layout, run)
    landing = _landing(operand, update, starts, layout, run)
    now, (own, other) = refine(
        [(operand.classes[0], operand.values.shape[0]), (update.classes[0], update.values.shape[0])], run.maps
    )
    devices = int(now.max()) + 1
    sizes = [int(c.max()) + 1 for c in landing.classes]
    run.spend(devices * math.prod(sizes))
    finer = zip(landing.classes, operand.classes[1:], operand.values.shape[1:], strict=True)
    base = take(operand.values, [own, *(_class_in(fine, coarse, count) for fine, coarse, count in finer)])
    result = np.array(np.broadcast_to(base, (devices, *sizes)))
    shape = (devices, *update.values.shape[1:])
    run.spend(math.prod(shape))

    def full(a: Array) -> Array:
        return np.broadcast_to(a if a.shape[0] == 1 or other is None else a[other], shape)

    inside = full(landing.inside)
    numbers = np.arange(devices).reshape((-1,) + (1,) * (len(shape) - 1))
    where = tuple(np.broadcast_to(x, shape)[inside] for x in (numbers, *map(full, landing.targets)))
    values, times = full(update.values)[inside], full(landing.times)[inside]
    if reducer is None:
        _compute(scalar_function(op.regions[0], run), result, where, values, times)
    else:
        _put(reducer, result, where, values, times)
    return Blocks((now, *landing.classes), wrapped(result, op.types[0].dtype, run.real))


def _put(reducer: str, result: Array, where: tuple[Array, ...], values: Array, times: Array) -> None:
    """Combine the updates into the result."""
    if reducer == "add":
        ufunc("add", result).at(result, where, scaled(values, times))
    elif reducer == "set":
        result[where] = values
        if not _agree(result[where], values):
            raise UnknownError("different updates of one element, in no order")
    elif reducer == "multiply":
        ufunc("multiply", result).at(result, where, power(values, times))
    else:
        ufunc(reducer, result).at(result, where, values)


def _compute(
    function: Callable[[Sequence[Array]], list[Array]],
    result: Array,
    where: tuple[Array, ...],
    values: Array,
    times: Array,
) -> None:
    """Put what a region makes of an element and its update into the result, where each has one at the most."""
    places = np.ravel_multi_index(where, result.shape)
    if (times > 1).any() or len(np.unique(places)) < len(places):
        raise UnknownError("several updates of one element by a computation that is not recognised")
    (found,) = function([result[where], values])
    result[where] = found


def _agree(a: Array, b: Array) -> bool:
    if is_enclosure(a):
        return bool(are_same(a, b).all())
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def _class_in(fine: ClassMap, coarse: ClassMap, count: int) -> Array | None:
    """For each class of a map, its class in a coarser one."""
    if count == 1:
        return None
    found = np.zeros(int(fine.max()) + 1, np.int64)
    found[fine] = coarse
    return found


def _whole(operand: Blocks, layout: Layout, k: int) -> bool:
    """Whether windows fill a dimension, and start at its begin."""
    return k not in layout.batching and k not in layout.to_operand and layout.width[k] == len(operand.classes[k + 1])


def _fitted(operand: Blocks, update: Blocks, layout: Layout, run: Run) -> Blocks:
    """The updates with classes as fine as the operand's along windows that fill a dimension, and with a class for each
    index along others."""
    for k, axis in enumerate(layout.axis):
        if axis is None:
            continue
        if not _whole(operand, layout, k):
            run.spend(update.values.size // update.values.shape[axis] * len(update.classes[axis]))
            update = spread(update, axis, run.maps)
            continue
        sides = [
            (update.classes[axis], update.values.shape[axis]),
            (operand.classes[k + 1], operand.values.shape[k + 1]),
        ]
        now, (own, _) = refine(sides, run.maps)
        count = int(now.max()) + 1
        index = np.zeros(count, np.int64) if update.values.shape[axis] == 1 else own
        values = update.values if index is None else np.take(update.values, index, axis=axis)
        update = replaced(update, axis, now, values)
    return update


def _with_starts(indices: Blocks, update: Blocks, layout: Layout, run: Run) -> tuple[Blocks, Array]:
    """The updates refined by the classes of their start indices, and those, with one more axis, for components."""
    vector = layout.vector
    if vector == len(indices.shape):
        indices = Blocks((*indices.classes, run.maps.constant(1)), indices.values[..., None])
    axes = [k + 1 for k in range(len(indices.shape)) if k != vector]
    components = indices.classes[vector + 1]
    vectors = np.moveaxis(np.take(indices.values, components, axis=vector + 1), vector + 1, -1)
    shape = [1] * len(update.classes)
    maps = [run.maps.constant(len(c)) for c in update.classes]
    for axis, source, n in zip((0, *layout.batch_axes), (0, *axes), vectors.shape[:-1], strict=True):
        maps[axis], shape[axis] = indices.classes[source], n
    classes: list[ClassMap] = []
    both: list[list[Array | None]] = [[], []]
    for k, c in enumerate(update.classes):
        now, found = refine([(c, update.values.shape[k]), (maps[k], shape[k])], run.maps)
        classes.append(now)
        for side, index in zip(both, found, strict=True):
            side.append(index)
    values, starts = taken([update.values, vectors.reshape((*shape, -1))], [both[0], [*both[1], None]], run.fits)
    common = tuple(max(a, b) for a, b in zip(values.shape, starts.shape, strict=False))
    run.spend(math.prod(common))
    refined = Blocks(tuple(classes), np.broadcast_to(values, common))
    return refined, np.broadcast_to(starts, (*common, starts.shape[-1]))


def _landing(operand: Blocks, update: Blocks, starts: Array, layout: Layout, run: Run) -> Landing:
    rank = len(update.classes)

    def along(a: Array, axis: int) -> Array:
        return a.reshape(tuple(-1 if k == axis else 1 for k in range(rank)))

    inside: Array = np.ones((1,) * rank, np.bool_)
    targets: list[Array] = []
    classes: list[ClassMap] = []
    for k, size in enumerate(operand.shape):
        axis = layout.axis[k]
        if axis is not None and _whole(operand, layout, k):
            classes.append(update.classes[axis])
            targets.append(along(np.arange(update.values.shape[axis]), axis))
            continue
        begin: Array = np.zeros((1,) * rank, np.int64)
        if k in layout.to_operand:
            begin = starts[..., layout.to_operand.index(k)].astype(np.int64)
        fits = (begin >= 0) & (begin <= size - layout.width[k])
        if (~fits & (begin < size) & (begin > -layout.width[k])).any():
            raise UnknownError("windows that lie outside in part, of which XLA drops all and the specification some")
        inside = inside & fits
        offset = begin * 0 if axis is None else along(update.classes[axis], axis)
        at = np.clip(begin + offset, 0, size - 1)
        hit = np.unique(at)
        marks = np.zeros(size, np.int64)
        marks[hit] = np.arange(len(hit)) + (len(hit) < size)
        joint = run.maps.joint(operand.classes[k + 1], run.maps.intern(marks))
        classes.append(joint.classes)
        targets.append(joint.classes[at])
    times: Array = np.ones((1,) * rank, np.int64)
    for axis in layout.batch_axes:
        weights = run.maps.weights(update.classes[axis])
        times = times * along(weights, axis)
    return Landing(tuple(classes), targets, inside, times)


RULES: dict[str, Rule] = {"scatter": _scatter}
