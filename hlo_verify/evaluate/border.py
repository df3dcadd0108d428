"""Between a whole tensor and its blocks on the devices: split on the way in, put together on the way out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hlo_verify.evaluate.blocks import Blocks, replaced, with_map
from hlo_verify.evaluate.maps import Array, ClassMap, Maps, unique_rows
from hlo_verify.evaluate.movement import padded
from hlo_verify.evaluate.selection import assembled, rows
from hlo_verify.evaluate.state import Run
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.program.sharding import Sharding

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a tensor lies on the devices: `blocks[d, k]` is the block of device d along dimension k, of `counts[k]`;
    `others[d]` numbers the devices that hold the same block."""

    counts: tuple[int, ...]
    blocks: Numbers
    others: Numbers

    @property
    def devices(self) -> int:
        return len(self.others)


def tiling_of(sharding: Sharding) -> Tiling:
    return Tiling(sharding.tiles, sharding.coordinates, sharding.others)


def shard(a: Blocks, tiling: Tiling, fillers: Sequence[Blocks], run: Run) -> Blocks:
    """Each device's block of a tensor, `ceil(size / count)` long; `fillers` are scalars for what lies past its end.

    The elements past the end of dimension k are the filler k.
    """
    if a.devices == 1 and tiling.devices > 1:
        a = replaced(a, 0, run.maps.constant(tiling.devices), a.values)
    tiled = [k for k, count in enumerate(tiling.counts) if count > 1]
    for k in tiled:
        size, count = a.shape[k], tiling.counts[k]
        if size % count:
            a = padded(a, fillers[k], k + 1, np.arange(size), -(-size // count) * count, run)
    if not tiled:
        return a
    first, which = run.maps.once(_different, run.maps, tiling.blocks)
    columns = []
    for k in tiled:
        size = a.shape[k] // tiling.counts[k]
        row_of, column_of, table = run.maps.once(_cut, run.maps.intern(a.classes[k + 1]), first, tiling.blocks, k, size)
        columns.append((k + 1, row_of, column_of, table))
    return assembled(a, which, columns, run)


def _different(maps: Maps, blocks: Numbers) -> tuple[Numbers, ClassMap]:
    """Of devices with blocks of their own the first of each, and which of these each device is like."""
    first, which = unique_rows(blocks)
    return first, maps.intern(which)


def _cut(classes: ClassMap, devices: Numbers, blocks: Numbers, k: int, size: int) -> tuple[Array, Array, Array]:
    """The windows of a map that some devices' blocks are along a dimension, as `rows` has them."""
    return rows(classes, blocks[devices, k] * size, size)


def joined(a: Blocks, shape: Sequence[int], tiling: Tiling, run: Run) -> Blocks:
    """The whole tensor, of that shape, as each device sees it: every element from the device with its block that is
    otherwise like it (`others`)."""
    if a.devices == 1 and tiling.devices > 1:
        a = replaced(a, 0, run.maps.constant(tiling.devices), a.values)
    tiled = [k for k, count in enumerate(tiling.counts) if count > 1]
    owner = a.classes[0][_owners(tiling, tiled)]
    first, which = unique_rows(owner.reshape(len(owner), -1))
    pattern = owner[first]
    patterns = []
    for axis in range(1, pattern.ndim):
        rows_of_axis = np.moveaxis(pattern, axis, 0).reshape(pattern.shape[axis], -1)
        kept, pattern_of = unique_rows(np.ascontiguousarray(rows_of_axis))
        pattern = np.take(pattern, kept, axis=axis)
        patterns.append(pattern_of)
    run.spend(pattern.size * math.prod(a.values.shape[1:]))
    values = a.values[pattern]  # devices, kinds of blocks, classes within a block
    order, sizes, maps = [0], [len(pattern)], [run.maps.intern(which[tiling.others])]
    for k, size in enumerate(a.shape):
        count = a.values.shape[k + 1]
        if k in tiled:
            n = tiled.index(k)
            order.append(1 + n)
            maps.append((patterns[n][:, None] * count + a.classes[k + 1]).reshape(-1))
            sizes.append(pattern.shape[1 + n] * count)
        else:
            maps.append(a.classes[k + 1])
            sizes.append(count)
        order.append(1 + len(tiled) + k)
        if size * tiling.counts[k] < shape[k] or size * (tiling.counts[k] - 1) > shape[k] > size:
            raise UnknownError(f"{tiling.counts[k]} blocks of {size} for {shape[k]} elements")
    whole = Blocks(tuple(maps), np.transpose(values, order).reshape(sizes))
    for k, size in enumerate(shape, 1):
        classes = whole.classes[k]
        whole = with_map(whole, k, classes[:size], run.maps)
    return whole


def _owners(tiling: Tiling, tiled: Sequence[int]) -> Array:
    """The device for each number of `others` and each block along the dimensions that are tiling."""
    copies = int(tiling.others.max()) + 1
    counts = [tiling.counts[k] for k in tiled]
    number = tiling.others
    for k in tiled:
        number = number * tiling.counts[k] + tiling.blocks[:, k]
    table = np.full(copies * math.prod(counts), -1, np.int64)
    table[number] = np.arange(tiling.devices)
    if (table < 0).any():
        raise UnknownError("blocks that are not all on the same number of devices")
    return table.reshape(copies, *counts)
