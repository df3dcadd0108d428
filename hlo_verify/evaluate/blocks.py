"""Tensors on all devices, block-constant: an element depends on the classes of its indices alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from hlo_verify.evaluate.balls import BALLS, identities
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.maps import Array, ClassMap, Maps, first_of_each, renumber
from hlo_verify.evaluate.numbers import exact

LARGE = 1 << 20
"""More values than this are not copied for the sake of a few slices that are equal."""

Fits = Callable[[float], None]
"""Is told of an array that is about to be made, how many floats of 64 bits take as much memory."""

SAMPLE = 61
"""How many elements of each slice are looked at first, for slices that are equal; then as many times more."""


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """A tensor on every device: element (d, i0, i1, ...) is `values[classes[0][d], classes[1][i0], ...]`.

    `classes` has an array for the devices (the first) and one for each dimension; every class of `values` occurs. A
    dimension without any index has an empty array, and 1 class that means nothing.
    """

    classes: tuple[ClassMap, ...]
    values: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor on one device."""
        return tuple(len(c) for c in self.classes[1:])

    @property
    def devices(self) -> int:
        return len(self.classes[0])


def of_dense(array: Array) -> Blocks:
    """A tensor of which every element is its own, the same on every one of 1 device."""
    array = np.asarray(array)
    if array.size == 0:
        maps = (np.zeros(1, np.int64), *(np.zeros(n, np.int64) for n in array.shape))
        return Blocks(maps, np.zeros((1,) * (array.ndim + 1), array.dtype))
    return Blocks(tuple(np.arange(n) for n in (1, *array.shape)), array[None])


def of_devices(array: Array) -> Blocks:
    """Likewise; the first dimension is over the devices."""
    array = np.asarray(array)
    if array.size == 0:
        return Blocks(tuple(np.zeros(n, np.int64) for n in array.shape), np.zeros((1,) * array.ndim, array.dtype))
    return Blocks(tuple(np.arange(n) for n in array.shape), array)


def dense(blocks: Blocks, device: int) -> Array:
    """Every element on one device."""
    if 0 in blocks.shape:
        return np.zeros(blocks.shape, blocks.values.dtype)
    number = blocks.classes[0][device if blocks.devices > 1 else 0]
    return take(blocks.values[number : number + 1].reshape(blocks.values.shape[1:]), blocks.classes[1:])


def every_element(blocks: Blocks) -> Array:
    """Every element on all devices that differ: [devices, *shape]."""
    return np.stack([dense(blocks, n) for n in range(blocks.devices)])


def take(values: Array, indices: Sequence[Array | None], start: int = 0) -> Array:
    """The values at an index array for each axis from `start` (None: all of it)."""
    for k, index in enumerate(indices, start):
        if index is not None and values.shape[k] == 1 and len(index) != 1:
            values = np.broadcast_to(values, (*values.shape[:k], len(index), *values.shape[k + 1 :]))
        elif index is not None:
            values = np.take(values, index, axis=k)
    return values


def taken(arrays: Sequence[Array], indices: Sequence[Sequence[Array | None]], fits: Fits) -> list[Array]:
    """The same of several arrays, where there is memory for them."""
    for values, index in zip(arrays, indices, strict=True):
        counts = (n if i is None or n == 1 else len(i) for n, i in zip(values.shape, index, strict=True))
        fits(math.prod(counts) * values.itemsize / 8)
    return [take(values, index) for values, index in zip(arrays, indices, strict=True)]


def scalar(value: object, shape: Sequence[int], dtype: object, devices: int, maps: Maps) -> Blocks:
    """One value everywhere."""
    is_number = isinstance(value, bool | int | float | np.number | np.bool_)
    held: Any = exact(value, dtype)[()] if dtype in (BALLS, INTERVALS) and is_number else value
    values = np.full((1,) * (len(shape) + 1), held, dtype)  # type: ignore[call-overload]
    return Blocks(tuple(maps.constant(n) for n in (devices, *shape)), values)


def aligned(operands: Sequence[Blocks], maps: Maps, fits: Fits) -> tuple[tuple[ClassMap, ...], list[Array]]:
    """The common refinement of tensors of one shape: its maps, and the values of each.

    The values broadcast against each other: where a tensor has one class in a dimension, its values have size 1.
    `fits` raises an error where there is no memory for an array.
    """
    rank = len(operands[0].classes)
    classes: list[ClassMap] = []
    indices: list[list[Array | None]] = [[None] * rank for _ in operands]
    for k in range(rank):
        now, found = refine([(x.classes[k], x.values.shape[k]) for x in operands], maps)
        classes.append(now)
        for n, index in enumerate(found):
            indices[n][k] = index
    return tuple(classes), taken([x.values for x in operands], indices, fits)


def refine(sides: Sequence[tuple[ClassMap, int]], maps: Maps) -> tuple[ClassMap, list[Array | None]]:
    """The common refinement of maps, each with its number of classes, and for each the classes to take.

    None where nothing changes; so it is for a map of one class.
    """
    now: ClassMap | None = None
    taken: dict[int, Array | None] = {}
    for classes, count in sides:
        if count == 1 or id(classes) in taken:
            continue
        if now is None:
            now, taken[id(classes)] = classes, None
            continue
        joint = maps.joint(now, classes)
        if joint.left is not None:
            taken = {key: joint.left if index is None else index[joint.left] for key, index in taken.items()}
        now, taken[id(classes)] = joint.classes, joint.right
    if now is None:
        now = maps.constant(max(len(classes) for classes, _ in sides))
    return now, [None if count == 1 else taken[id(classes)] for classes, count in sides]


def with_map(blocks: Blocks, axis: int, classes: Array, maps: Maps) -> Blocks:
    """The tensor with another map along an axis, whose classes are some of its own; those that are not are dropped."""
    count = blocks.values.shape[axis]
    if count == 1:
        return replaced(blocks, axis, maps.constant(len(classes)), blocks.values)
    if len(classes) == 0:
        return replaced(blocks, axis, maps.constant(0), np.take(blocks.values, [0], axis=axis))
    used, which = renumber(classes, count)
    values = blocks.values if len(used) == count else np.take(blocks.values, used, axis=axis)
    return replaced(blocks, axis, maps.constant(len(classes)) if len(used) == 1 else maps.intern(which), values)


def replaced(blocks: Blocks, axis: int, classes: ClassMap, values: Array) -> Blocks:
    """The tensor with other values and another map along one axis."""
    return Blocks((*blocks.classes[:axis], classes, *blocks.classes[axis + 1 :]), values)


def spread(blocks: Blocks, axis: int, maps: Maps) -> Blocks:
    """The same tensor with a class for each index along an axis."""
    size = len(blocks.classes[axis])
    if size <= 1 or np.array_equal(blocks.classes[axis], maps.distinct(size)):
        return blocks
    return replaced(blocks, axis, maps.distinct(size), np.take(blocks.values, blocks.classes[axis], axis=axis))


def compact(blocks: Blocks, maps: Maps) -> Blocks:
    """The same tensor, with classes merged whose slices are equal bit by bit."""
    for axis, count in enumerate(blocks.values.shape):
        if count > 1:
            blocks = _merge(blocks, axis, maps)
    return blocks


def _merge(blocks: Blocks, axis: int, maps: Maps) -> Blocks:
    values = blocks.values
    count = values.shape[axis]
    total = values.size // count
    if total > SAMPLE:
        first, _ = _slices(_sampled(values, axis), 0)
        if _are_apart(values, count, len(first)):
            return blocks
    first, which = _slices(values, axis)
    if _are_apart(values, count, len(first)):
        return blocks
    classes = maps.constant(len(blocks.classes[axis])) if len(first) == 1 else maps.intern(which[blocks.classes[axis]])
    return replaced(blocks, axis, classes, np.take(values, first, axis=axis))


def _are_apart(values: Array, count: int, groups: int) -> bool:
    """Whether slices in so many groups of equal ones, or more, are not worth merging."""
    return groups == count or (values.size > LARGE and groups > count // 2)


def _sampled(values: Array, axis: int) -> Array:
    """A row of a few elements for each slice."""
    rest = [n for k, n in enumerate(values.shape) if k != axis]
    where = np.unravel_index(np.arange(SAMPLE) * (math.prod(rest) - 1) // (SAMPLE - 1), rest)
    index: tuple[Any, ...] = (slice(None), *where)
    return np.asarray(np.moveaxis(values, axis, 0)[index])


def _slices(values: Array, axis: int) -> tuple[Array, Array]:
    """The first of each group of slices that are equal, bit by bit but for the sign of zero, and the group of each."""
    count = values.shape[axis]
    before = math.prod(values.shape[:axis])
    parts = _packed(np.ascontiguousarray(values).reshape(before, count, -1))
    keys = np.zeros(count, np.uint64)
    if parts.shape[2] == 1:
        left = _factors(before, 0)
        step = max(1, CHUNK // count)
        for k in range(0, before, step):
            keys += (_words(parts[k : k + step, :, 0]) * left[k : k + step, None]).sum(axis=0, dtype=np.uint64)
    else:
        left, right = _factors(before, 0), _factors(parts.shape[2], 1)
        rows = parts.reshape(before * count, -1)
        step = max(1, CHUNK // rows.shape[1])
        found = np.concatenate([_words(rows[k : k + step]) @ right for k in range(0, len(rows), step)])
        keys = (found.reshape(before, count) * left[:, None]).sum(axis=0, dtype=np.uint64)
    first, which = first_of_each(keys)
    if len(first) < count and not _same(parts, first[which]):  # two slices with one hash
        return np.arange(count), np.arange(count)
    return first, which


def _packed(parts: Array) -> Array:
    """Rows of truth values or integers as rows of words that are equal where those are."""
    if parts.dtype.kind not in "biu" or parts.shape[2] < PACKED:
        return parts
    if parts.dtype == bool:
        parts = np.packbits(parts, axis=2)
    lacking = -(parts.shape[2] * parts.itemsize) % np.dtype(np.uint64).itemsize // parts.itemsize
    if lacking:
        parts = np.concatenate([parts, np.zeros((*parts.shape[:2], lacking), parts.dtype)], axis=2)
    return parts.view(np.uint64)


def _same(parts: Array, which: Array) -> bool:
    """Whether each slice along axis 1 is equal to the one that is its number in `which`."""
    moved = np.flatnonzero(which != np.arange(len(which)))
    for k in range(0, len(moved), step := max(1, CHUNK * 4 // (parts.shape[0] * parts.shape[2]))):
        some = moved[k : k + step]
        if not np.array_equal(_words(parts[:, some]), _words(parts[:, which[some]])):
            return False
    return True


PACKED = 64
"""Rows of at least so many elements are worth packing."""

CHUNK = 1 << 16
"""How many elements are hashed at a time: such as fit into a processor's cache."""


def _factors(count: int, stream: int) -> Array:
    """Odd random numbers, always the same for one stream."""
    return _drawn(count.bit_length(), stream)[:count]


@lru_cache(maxsize=64)
def _drawn(bits: int, stream: int) -> Array:
    drawn = np.random.default_rng((bits, stream)).integers(1, 1 << 63, 1 << bits, dtype=np.uint64)
    return drawn * np.uint64(2) + np.uint64(1)


def _words(values: Array) -> Array:
    """A word for each element, equal for equal ones. Multiplication mixes bits upwards only: high ones are folded."""
    if values.dtype == object:
        values = identities(values)
    if values.dtype.kind == "c" or values.dtype == INTERVALS:
        pair = (values["low"], values["high"]) if values.dtype == INTERVALS else (values.real, values.imag)
        return np.asarray(_words(pair[0]) * np.uint64(0x9E3779B97F4A7C15) + _words(pair[1]))
    if values.dtype.kind == "f":
        values = values + values.dtype.type(0)  # no negative zero
    plain = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
    words = plain.astype(np.uint64)
    words ^= words >> np.uint64(29)
    words ^= words << np.uint64(32)
    return words
