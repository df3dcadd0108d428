"""Data movement: operations on class maps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hlo_verify.evaluate.blocks import Blocks, aligned, refine, taken, with_map
from hlo_verify.evaluate.maps import Array, ClassMap, Maps, rectangle
from hlo_verify.evaluate.state import Place, Rule, Run
from hlo_verify.program.ir import Op


def _broadcast_in_dim(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    (a,), shape = args, op.types[0].shape
    dims = op.attributes["broadcast_dimensions"]
    order = sorted(range(len(dims)), key=lambda k: dims[k])
    values = np.transpose(a.values, (0, *(k + 1 for k in order)))
    classes = [a.classes[0], *(run.maps.constant(n) for n in shape)]
    sizes = [1] * len(shape)
    for k, target in enumerate(dims):
        if a.shape[k] == shape[target]:
            classes[target + 1], sizes[target] = a.classes[k + 1], a.values.shape[k + 1]
    return [Blocks(tuple(classes), values.reshape((-1, *sizes)))]


def transposed(a: Blocks, permutation: Sequence[int]) -> Blocks:
    """The dimensions of the result, each by its number in the operand."""
    axes = (0, *(k + 1 for k in permutation))
    return Blocks(tuple(a.classes[k] for k in axes), np.transpose(a.values, axes))


def _transpose(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    return [transposed(args[0], op.attributes["permutation"])]


# reshape


def _groups(source: Sequence[int], result: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The least runs of dimensions of either side that hold the same elements; those of size 1 are in none."""
    left = [k for k, n in enumerate(source) if n != 1]
    right = [k for k, n in enumerate(result) if n != 1]
    groups = []
    i = j = 0
    while i < len(left):
        a, b = [left[i]], [right[j]]
        m, n = source[left[i]], result[right[j]]
        i, j = i + 1, j + 1
        while m != n:
            if m < n:
                a.append(left[i])
                m, i = m * source[left[i]], i + 1
            else:
                b.append(right[j])
                n, j = n * result[right[j]], j + 1
        groups.append((a, b))
    return groups


def reshaped(a: Blocks, shape: Sequence[int], run: Run) -> Blocks:
    """The tensor in another shape of as many elements."""
    if 0 in shape:
        none = (a.classes[0], *(run.maps.constant(n) for n in shape))
        return Blocks(none, np.zeros((a.values.shape[0],) + (1,) * len(shape), a.values.dtype))
    groups = _groups(a.shape, shape)
    kept = [k for k, n in enumerate(a.shape) if n != 1]
    values = a.values.reshape(a.values.shape[0], *(a.values.shape[k + 1] for k in kept))
    axis = 1
    maps: dict[int, ClassMap] = {}
    for source, result in groups:
        if len(source) == 1 and len(result) == 1:
            maps[result[0]] = a.classes[source[0] + 1]
        else:
            values, flat = _merged(values, axis, [a.classes[k + 1] for k in source], run)
            values, parts = _split(values, axis, flat, [shape[k] for k in result], run)
            maps.update(zip(result, parts, strict=True))
        axis += len(result)
    classes = [maps.get(k, run.maps.constant(n)) for k, n in enumerate(shape)]
    sizes = iter(values.shape[1:])
    whole = values.reshape(values.shape[0], *(next(sizes) if n != 1 else 1 for n in shape))
    return Blocks((a.classes[0], *classes), whole)


def _merged(values: Array, axis: int, maps: Sequence[ClassMap], run: Run) -> tuple[Array, ClassMap]:
    """Adjacent dimensions as one, in row-major order."""
    flat = maps[0]
    for k, classes in enumerate(maps[1:], axis + 1):
        run.spend(len(flat) * len(classes) / 4)
        flat = (flat[:, None] * values.shape[k] + classes).reshape(-1)
    shape = values.shape
    count = math.prod(shape[axis : axis + len(maps)])
    return values.reshape(*shape[:axis], count, *shape[axis + len(maps) :]), flat


def _split(values: Array, axis: int, flat: ClassMap, sizes: Sequence[int], run: Run) -> tuple[Array, list[ClassMap]]:
    """A dimension as several, in row-major order: rows and columns, then the columns again."""
    maps = []
    for size in sizes[:-1]:
        rows, columns, table = rectangle(flat.reshape(size, -1))
        run.spend(values.size // values.shape[axis] * table.size)
        values = np.take(values, table, axis=axis)
        maps.append(run.maps.intern(rows))
        flat, axis = columns, axis + 1
    return values, [*maps, run.maps.intern(flat)]


def _reshape(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    return [reshaped(args[0], op.types[0].shape, run)]


# slice, reverse, concatenate, pad


def _slice(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    (a,) = args
    starts, limits, strides = (op.attributes[n] for n in ("start_indices", "limit_indices", "strides"))
    for k, (start, limit, stride) in enumerate(zip(starts, limits, strides, strict=True), 1):
        if (start, limit, stride) != (0, len(a.classes[k]), 1):
            a = with_map(a, k, a.classes[k][start:limit:stride], run.maps)
    return [a]


def _reverse(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    (a,) = args
    for k in op.attributes["dimensions"]:
        a = with_map(a, k + 1, a.classes[k + 1][::-1], run.maps)
    return [a]


def _concatenate(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    return [concatenated(args, op.attributes["dimension"] + 1, run)]


def concatenated(parts: Sequence[Blocks], axis: int, run: Run) -> Blocks:
    """Tensors put end to end along an axis of their values."""
    parts = [p for p in parts if len(p.classes[axis])] or list(parts[:1])
    if len(parts) == 1:
        return parts[0]
    classes: list[ClassMap] = []
    indices: list[list[Array | None]] = [[None] * len(parts[0].classes) for _ in parts]
    for k in range(len(parts[0].classes)):
        if k == axis:
            classes.append(run.maps.constant(0))
            continue
        now, found = refine([(p.classes[k], p.values.shape[k]) for p in parts], run.maps)
        classes.append(now)
        for n, index in enumerate(found):
            indices[n][k] = index
    values = taken([p.values for p in parts], indices, run.fits)
    common = np.broadcast_shapes(*((*v.shape[:axis], 1, *v.shape[axis + 1 :]) for v in values))
    counts = [v.shape[axis] for v in values]
    run.spend(math.prod(common) * sum(counts))
    whole = np.concatenate(
        [np.broadcast_to(v, (*common[:axis], n, *common[axis + 1 :])) for v, n in zip(values, counts, strict=True)],
        axis=axis,
    )
    starts = np.cumsum([0, *counts[:-1]])
    joined = np.concatenate([p.classes[axis] + s for p, s in zip(parts, starts, strict=True)])
    classes[axis] = run.maps.intern(joined)
    return Blocks(tuple(classes), whole)


def filled_map(classes: ClassMap, where: Array, size: int, count: int) -> Array:
    """A map of that size with `classes` at some indices and the class `count` elsewhere."""
    result = np.full(size, count, np.int64)
    result[where] = classes
    return result


def padded(a: Blocks, filler: Blocks, axis: int, where: Array, size: int, run: Run) -> Blocks:
    """The tensor spread to the indices `where` of an axis of that size (those outside are dropped), filled elsewhere.

    `filler` is a scalar.
    """
    inside = (where >= 0) & (where < size)
    if inside.all() and len(where) == size:
        return with_map(a, axis, a.classes[axis][np.argsort(where)], run.maps)
    values = filler.values.reshape((-1,) + (1,) * (len(a.classes) - 1))
    maps = [filler.classes[0], *(run.maps.constant(len(c)) for c in a.classes[1:])]
    extra = Blocks(tuple(maps[k] if k != axis else run.maps.constant(1) for k in range(len(maps))), values)
    joined = concatenated([a, extra], axis, run) if len(a.classes[axis]) else extra
    last = joined.values.shape[axis] - 1
    source = joined.classes[axis][:-1]
    return with_map(joined, axis, filled_map(source[inside], where[inside], size, last), run.maps)


def _pad(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    a, filler = args
    low, interior = op.attributes["edge_padding_low"], op.attributes["interior_padding"]
    for k, size in enumerate(op.types[0].shape):
        where = low[k] + np.arange(a.shape[k]) * (interior[k] + 1)
        if size and (size != a.shape[k] or low[k] or interior[k]):
            a = padded(a, filler, k + 1, where, size, run)
        elif not size:
            a = with_map(a, k + 1, np.zeros(0, np.int64), run.maps)
    return [a]


def chosen(mask: Blocks, a: Blocks, b: Blocks, run: Run) -> Blocks:
    """`a` where the mask holds, else `b`; all of one shape."""
    classes, values = aligned([mask, a, b], run.maps, run.fits)
    run.spend(math.prod(np.broadcast_shapes(*(v.shape for v in values))))
    return Blocks(classes, np.where(*values))


def by_device(devices: Array, rank: int, shape: Sequence[int], maps: Maps) -> Blocks:
    """A value for each device, the same everywhere in a tensor of that shape."""
    values, which = np.unique(devices, return_inverse=True)
    classes = (maps.intern(which.reshape(-1)), *(maps.constant(n) for n in shape))
    return Blocks(classes, values.reshape((-1,) + (1,) * rank))


RULES: dict[str, Rule] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "transpose": _transpose,
    "reshape": _reshape,
    "slice": _slice,
    "reverse": _reverse,
    "concatenate": _concatenate,
    "pad": _pad,
}
