"""Elements at start indices that are values themselves: dynamic_slice, dynamic_update_slice, gather."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hlo_verify.evaluate.blocks import Blocks, refine, taken
from hlo_verify.evaluate.maps import Array, ClassMap, rectangle, unique_rows
from hlo_verify.evaluate.state import Place, Rule, Run
from hlo_verify.program.ir import Op


def rows(classes: ClassMap, starts: Array, size: int) -> tuple[Array, Array, Array]:
    """Windows of a map: for each of an array of starts the number of its row, for each offset that of its column,
    and the table of the classes by row and column."""
    if size == len(classes) and size:
        return np.zeros(starts.shape, np.int64), classes, np.arange(int(classes.max()) + 1)[None]
    distinct, which = np.unique(starts, return_inverse=True)
    matrix = classes[distinct[:, None] + np.arange(size)]
    if size == 0:
        return np.zeros(starts.shape, np.int64), np.zeros(0, np.int64), np.zeros((1, 1), np.int64)
    row_of, column_of, table = rectangle(matrix)
    return row_of[which].reshape(starts.shape), column_of, table


def starts_of(
    op: Op, operands: Sequence[Blocks], sizes: Sequence[int], widths: Sequence[int], run: Run
) -> tuple[ClassMap, list[Array]]:
    """Start indices as scalars of each class of devices, clamped so that the window lies inside."""
    classes, found = refine([(s.classes[0], s.values.shape[0]) for s in operands], run.maps)
    count = int(classes.max()) + 1
    starts = []
    for s, index, size, width in zip(operands, found, sizes, widths, strict=True):
        values = s.values.reshape(-1) if index is None else s.values.reshape(-1)[index]
        starts.append(np.broadcast_to(clamped(values, size - width), (count,)))
    return classes, starts


def clamped(values: Array, high: int) -> Array:
    """Indices inside of 0 and `high`, of any integer type."""
    if values.dtype.kind == "u":
        return np.minimum(values, np.uint64(high)).astype(np.int64)
    return np.clip(values.astype(np.int64), 0, high)


def windowed(source: Blocks, devices: ClassMap, starts: Sequence[Array], shape: Sequence[int], run: Run) -> Blocks:
    """On each device, the window of that shape that starts at the device's class's own starts."""
    columns: list[tuple[int, Array, Array, Array]] = []
    for k, (begin, size) in enumerate(zip(starts, shape, strict=True), 1):
        if size == len(source.classes[k]):
            continue
        row_of, column_of, table = rows(source.classes[k], begin, size)
        columns.append((k, row_of, column_of, table))
    return assembled(source, devices, columns, run)


def assembled(
    source: Blocks, devices: ClassMap, columns: Sequence[tuple[int, Array, Array, Array]], run: Run
) -> Blocks:
    """The tensor with other maps along some axes: (axis, row of each class of devices, column of each index, table)."""
    classes = list(source.classes)
    values = source.values
    varying = []
    for axis, row_of, column_of, table in columns:
        classes[axis] = run.maps.intern(column_of)
        if len(table) == 1:
            values = np.take(values, table[0], axis=axis)
        else:
            varying.append((axis, row_of, table))
    if not varying:
        return Blocks(tuple(classes), values)
    now, (own, other) = refine([(source.classes[0], values.shape[0]), (devices, int(devices.max()) + 1)], run.maps)
    count = int(now.max()) + 1
    keys = np.zeros((count, len(varying) + 1), np.int64)
    keys[:, 0] = 0 if values.shape[0] == 1 else np.arange(count) if own is None else own
    for n, (_, row_of, _) in enumerate(varying, 1):
        keys[:, n] = row_of if other is None else row_of[other]
    first, which = unique_rows(keys)
    classes[0] = run.maps.intern(which[now])
    keys = keys[first]
    rank = values.ndim
    sizes = list(values.shape)
    index: list[Array] = [_along(np.arange(n), k, rank) for k, n in enumerate(sizes)]
    index[0] = _along(keys[:, 0], 0, rank)
    for n, (axis, _, table) in enumerate(varying, 1):
        found = table[keys[:, n]]
        index[axis] = found.reshape(tuple(found.shape[0] if k == 0 else -1 if k == axis else 1 for k in range(rank)))
    run.spend(math.prod(np.broadcast_shapes(*(i.shape for i in index))))
    return Blocks(tuple(classes), values[tuple(index)])


def _along(index: Array, axis: int, rank: int) -> Array:
    return index.reshape(tuple(-1 if k == axis else 1 for k in range(rank)))


def _dynamic_slice(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    source, *operands = args
    shape = op.types[0].shape
    if not shape:
        return [source]
    devices, starts = starts_of(op, operands, source.shape, shape, run)
    return [windowed(source, devices, starts, shape, run)]


def _dynamic_update_slice(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    source, update, *operands = args
    if 0 in update.shape:
        return [source]
    if not update.shape:
        return [update]
    devices, starts = starts_of(op, operands, source.shape, update.shape, run)
    now, (own, other, third) = refine(
        [
            (source.classes[0], source.values.shape[0]),
            (update.classes[0], update.values.shape[0]),
            (devices, int(devices.max()) + 1),
        ],
        run.maps,
    )
    count, rank = int(now.max()) + 1, source.values.ndim
    everyone = np.arange(count)
    back = [_along(_number(own, source.values.shape[0], everyone), 0, rank)]
    front = [_along(_number(other, update.values.shape[0], everyone), 0, rank)]
    inside: Array = np.ones((1,) * rank, np.bool_)
    classes = [now]
    for k, begin in enumerate(starts, 1):
        begin = begin if third is None else begin[third]
        column_of, below, above = _overlay(source.classes[k], update.classes[k], begin)
        classes.append(run.maps.intern(column_of))
        shape = tuple(n if a == 0 else -1 if a == k else 1 for a in range(rank) for n in (below.shape[0],))
        back.append(np.minimum(below, source.values.shape[k] - 1).reshape(shape))
        front.append(np.clip(above, 0, update.values.shape[k] - 1).reshape(shape))
        inside = inside & (above >= 0).reshape(shape)
    size = math.prod(np.broadcast_shapes(*(i.shape for i in (*back, *front))))
    run.spend(size)
    return [Blocks(tuple(classes), np.where(inside, update.values[tuple(front)], source.values[tuple(back)]))]


def _number(index: Array | None, count: int, everyone: Array) -> Array:
    if count == 1:
        return np.zeros_like(everyone)
    return everyone if index is None else index


def _overlay(back: ClassMap, front: ClassMap, starts: Array) -> tuple[Array, Array, Array]:
    """A map laid over another at each of some starts: the column of each index, and for each start and column the class
    below, and the one above or -1."""
    distinct, which = np.unique(starts, return_inverse=True)
    above = np.full((len(distinct), len(back)), -1, np.int64)
    for n, start in enumerate(distinct):
        above[n, start : start + len(front)] = front
    count = int(front.max()) + 2
    row_of, column_of, table = rectangle(back * count + above + 1)
    found = table[row_of[which.reshape(-1)]] if len(distinct) > 1 else table
    return column_of, found // count, found % count - 1


# gather


def _gather(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    source, indices = args
    numbers = op.attributes["dimension_numbers"]
    sizes, shape = op.attributes["slice_sizes"], op.types[0].shape
    vector = numbers["index_vector_dim"]
    if vector == len(indices.shape):
        indices = Blocks((*indices.classes, run.maps.constant(1)), indices.values[..., None])
    batch_axes = [k + 1 for k in range(len(indices.shape)) if k != vector]
    offset_dims = numbers["offset_dims"]
    batch_dims = [k for k in range(len(shape)) if k not in offset_dims]
    gone = (*numbers["collapsed_slice_dims"], *numbers["operand_batching_dims"])
    kept = [k for k in range(len(source.shape)) if k not in gone]
    # Axes of the working array: the devices, the batch dimensions, the window dimensions that are kept.
    rank = 1 + len(batch_axes) + len(kept)
    place_of = {k: 1 + len(batch_axes) + n for n, k in enumerate(kept)}
    components = indices.classes[vector + 1]
    vectors = np.moveaxis(np.take(indices.values, components, axis=vector + 1), vector + 1, -1)
    maps = [indices.classes[0], *(indices.classes[k] for k in batch_axes)]
    shared = numbers["start_indices_batching_dims"]
    takes: list[Array | None] = [None] * (vectors.ndim - 1)
    maps[0], (first, takes[0]) = refine(
        [(source.classes[0], source.values.shape[0]), (indices.classes[0], vectors.shape[0])], run.maps
    )
    count = int(maps[0].max()) + 1
    everyone = np.arange(count)
    index: list[Array] = [_along(_number(first, source.values.shape[0], everyone), 0, rank)]
    index += [np.zeros((1,) * rank, np.int64)] * len(source.shape)
    for k, b in zip(numbers["operand_batching_dims"], shared, strict=True):
        axis = 1 + (b if b < vector else b - 1)
        n = source.values.shape[k + 1]
        maps[axis], (left, takes[axis]) = refine(
            [(source.classes[k + 1], n), (maps[axis], vectors.shape[axis])], run.maps
        )
        index[k + 1] = _along(_number(left, n, np.arange(int(maps[axis].max()) + 1)), axis, rank)
    (vectors,) = taken([vectors], [[*takes, *[None] * (vectors.ndim - len(takes))]], run.fits)
    columns: dict[int, Array] = {}
    starts = {k: vectors[..., n] for n, k in enumerate(numbers["start_index_map"])}
    for k in range(len(source.shape)):
        if k in numbers["operand_batching_dims"]:
            continue
        begin = starts.get(k, np.zeros((1,) * (vectors.ndim - 1), np.int64))
        begin = clamped(begin, source.shape[k] - sizes[k])
        row_of, column_of, table = rows(source.classes[k + 1], begin, sizes[k])
        columns[k] = column_of
        row_of = row_of.reshape((*row_of.shape, *(1,) * len(kept)))
        axis = place_of.get(k)
        column = np.zeros((1,) * rank, np.int64) if axis is None else _along(np.arange(table.shape[1]), axis, rank)
        index[k + 1] = table[row_of, column] if len(table) > 1 else table[0][column]
        if source.values.shape[k + 1] == 1:
            index[k + 1] = np.zeros_like(index[k + 1])
    run.spend(math.prod(np.broadcast_shapes(*(i.shape for i in index))))
    values = source.values[tuple(index)]
    offsets = [run.maps.intern(columns[k]) for k in kept]
    order = [0, *(1 + (*batch_dims, *offset_dims).index(k) for k in range(len(shape)))]
    # Where all rows of the source are alike, the starts leave no trace, and the axes of the indices have one class.
    every = [c if n > 1 else run.maps.constant(len(c)) for c, n in zip((*maps, *offsets), values.shape, strict=True)]
    return [Blocks(tuple(every[k] for k in order), np.transpose(values, order))]


RULES: dict[str, Rule] = {
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
}
