"""Where tensors may lie, by the shapes of the whole and of what each device holds; and where they do, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import permutations
from math import prod

import numpy as np
import numpy.typing as npt

from hlo_verify.program.ir import Module
from hlo_verify.program.op_families import COLLECTIVES
from hlo_verify.program.sharding import Sharding, replicated

Groups = npt.NDArray[np.int64]
"""Devices that communicate with one another, a row each."""


def placements(
    whole: tuple[int, ...], part: tuple[int, ...], devices: int, groups: Collection[Groups] = ()
) -> Iterator[Sharding]:
    """The ways in which devices may hold parts of that shape, the likeliest first: those that communicate hold
    different ones, or else neighbours do."""
    if len(whole) != len(part):
        return
    tiles = []
    for size, local in zip(whole, part, strict=True):
        count = 1 if size == local else -(-size // local) if local else 0
        if count == 0 or -(-size // count) != local:
            return
        tiles.append(count)
    copies, rest = divmod(devices, prod(tiles))
    if rest or not copies:
        yield from _with_empty_shards(whole, part, devices)
        return
    if prod(tiles) == 1:
        yield replicated(len(whole), devices)
        return
    split = [k for k, count in enumerate(tiles) if count > 1]
    seen: set[bytes] = set()
    for rows in groups:
        if len(split) == 1 and rows.shape == (copies, tiles[split[0]]) and _are_all(rows, devices):
            coordinates, others = np.zeros((devices, len(tiles)), np.int64), np.zeros(devices, np.int64)
            coordinates[rows, split[0]] = np.arange(rows.shape[1])
            others[rows] = np.arange(copies)[:, None]
            if coordinates.tobytes() not in seen:
                seen.add(coordinates.tobytes())
                yield Sharding(tuple(tiles), coordinates, others)
    sizes = (copies, *tiles)
    for order in permutations([k for k, size in enumerate(sizes) if size > 1]):
        digits = dict(zip(order, np.unravel_index(np.arange(devices), [sizes[k] for k in order]), strict=True))
        columns = [digits.get(k, np.zeros(devices, np.int64)) for k in range(len(sizes))]
        coordinates, others = np.stack(columns[1:], axis=1).astype(np.int64), columns[0].astype(np.int64)
        if coordinates.tobytes() not in seen:
            yield Sharding(tuple(tiles), coordinates, others)


def _with_empty_shards(whole: tuple[int, ...], part: tuple[int, ...], devices: int) -> Iterator[Sharding]:
    """A shard for each device along one dimension, though the last ones lie past its end."""
    split = [k for k, (size, local) in enumerate(zip(whole, part, strict=True)) if size != local]
    if len(split) == 1 and -(-whole[split[0]] // devices) == part[split[0]]:
        tiles = tuple(devices if k == split[0] else 1 for k in range(len(whole)))
        coordinates = np.zeros((devices, len(whole)), np.int64)
        coordinates[:, split[0]] = np.arange(devices)
        yield Sharding(tiles, coordinates, np.zeros(devices, np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Padding:
    """Shards of one dimension on some devices, and zeros on the others: device `d` holds shard `positions[d]`, where
    there are so many."""

    dimension: int
    positions: npt.NDArray[np.int64]
    count: int
    """How many shards are not zeros alone."""

    @property
    def holders(self) -> list[int]:
        """The devices that hold something, in the order of what they hold."""
        return [int(d) for d in np.argsort(self.positions, kind="stable") if self.positions[d] < self.count]


def paddings(
    whole: tuple[int, ...], part: tuple[int, ...], devices: int, groups: Collection[Groups] = ()
) -> Iterator[Padding]:
    """The ways in which devices may hold shards that are padded with zeros: the first ones hold what there is, of all
    or of each group that communicates, or every second or third one does."""
    split = [k for k, sizes in enumerate(zip(whole, part, strict=False)) if sizes[0] != sizes[1]]
    if len(whole) != len(part) or len(split) != 1 or not 0 < part[split[0]] < whole[split[0]]:
        return
    (k,) = split
    count = -(-whole[k] // part[k])
    seen: set[bytes] = set()
    for rows in (np.arange(devices)[None], *groups):
        size = rows.shape[1]
        if not _are_all(rows, devices) or size < count or (size == count and whole[k] % part[k] == 0):
            continue
        orders = [np.arange(size)]
        if size % count == 0:
            orders.append(np.arange(size) % (size // count) * count + np.arange(size) // (size // count))
        for order in orders:
            positions = np.zeros(devices, np.int64)
            positions[rows] = order
            if positions.tobytes() not in seen:
                seen.add(positions.tobytes())
                yield Padding(k, positions, count)


def sums(sharding: Sharding, groups: Collection[Groups] = ()) -> Iterator[Sharding]:
    """The ways in which devices that hold copies by such a sharding may hold addends instead: all of them, or only
    those that communicate."""
    copies = int(sharding.others.max(initial=0)) + 1
    if copies == 1 or not sharding.is_plain:
        return
    seen: set[bytes] = set()
    for rows in (None, *groups):
        addends = sharding.others if rows is None else _positions(rows, sharding)
        if addends is not None and addends.tobytes() not in seen:
            seen.add(addends.tobytes())
            yield with_addends(sharding, addends)


def _positions(rows: Groups, sharding: Sharding) -> npt.NDArray[np.int64] | None:
    """The place of each device in its group, where groups are of devices that hold the same; else None."""
    if rows.shape[1] < 2 or not _are_all(rows, sharding.devices):
        return None
    together = sharding.coordinates[rows]
    if not np.array_equal(together, np.broadcast_to(together[:, :1], together.shape)):
        return None
    places = np.zeros(sharding.devices, np.int64)
    places[rows] = np.arange(rows.shape[1])
    return places


def _are_all(rows: Groups, devices: int) -> bool:
    """Whether every device is in one group."""
    return np.array_equal(np.sort(rows, axis=None), np.arange(devices))


def with_addends(sharding: Sharding, addends: npt.NDArray[np.int64]) -> Sharding:
    """A sharding by which device `d` holds the addend `addends[d]`, in the same shards."""
    rows = np.concatenate((sharding.coordinates, addends[:, None]), axis=1)
    _, which = np.unique(rows, axis=0, return_inverse=True)
    return Sharding(sharding.tiles, sharding.coordinates, _copies(which.reshape(-1)), addends)


def _copies(which: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many devices before each one are like it, for what each of them is like."""
    order = np.argsort(which, kind="stable")
    alike = which[order]
    starts = np.flatnonzero(np.diff(alike, prepend=-1))
    before = np.empty(len(which), np.int64)
    before[order] = np.arange(len(which)) - np.repeat(starts, np.diff(starts, append=len(which)))
    return before


def groups_of(partitioned: Module) -> list[Groups]:
    """The groups of devices that communicate, of each kind of grouping once."""
    found: dict[bytes, Groups] = {}
    for op in partitioned.main.ops:
        rows = op.attributes.get("replica_groups")
        if rows is not None and op.name in COLLECTIVES and np.ndim(rows) == 2 and np.min(rows, initial=0) >= 0:
            found.setdefault(np.asarray(rows, np.int64).tobytes(), np.asarray(rows, np.int64))
    return list(found.values())


def placed(sharding: Sharding, shape: tuple[int, ...]) -> str:
    """How a tensor is placed, as a verdict's first line says it: `split along dimension 1 over 2 devices`."""
    split = [(k, tiles) for k, tiles in enumerate(sharding.tiles) if tiles > 1]
    holders = sharding.devices // prod(sharding.tiles)
    what = f"the sum of addends on {sharding.addend_count} devices" if sharding.addends is not None else "replicated"
    if not split:
        return what
    over = f"over {sharding.devices} devices"
    if len(split) == 1 and holders == 1:
        text = f"split along dimension {split[0][0]} {over}"
    else:
        text = f"split along {' and '.join(f'dimension {k} in {tiles}' for k, tiles in split)} {over}"
    if any(shape[k] % tiles for k, tiles in split):
        text += ", the last padded"
    if holders > 1:
        text += f", {what}" if sharding.addends is not None else f", {holders} copies of each"
    return text if _is_in_order(sharding, shape) else f"{text}, devices in another order"


def lies(sharding: Sharding, shape: tuple[int, ...]) -> str:
    """Where a tensor lies, in words."""
    if sharding.addends is not None:
        return f"the sum of what devices hold ({sharding.addend_count} addends)"
    split = [(k, tiles) for k, tiles in enumerate(sharding.tiles) if tiles > 1]
    if not split:
        return "whole on every device"
    parts = []
    for k, tiles in split:
        padded = ", the last padded" if shape[k] % tiles else ""
        parts.append(f"dimension {k} in {tiles}{padded}")
    copies = sharding.devices // prod(sharding.tiles)
    text = " and ".join(parts) + (f", {copies} copies of each shard" if copies > 1 else "")
    if _is_in_order(sharding, shape):
        return text
    return f"{text}, on devices in another order ({sharding.coordinates.tolist()})"


def _is_in_order(sharding: Sharding, shape: tuple[int, ...]) -> bool:
    """Whether shards are on the devices that are likeliest to hold them."""
    part = tuple(-(-size // tiles) for size, tiles in zip(shape, sharding.tiles, strict=True))
    plain = next(placements(shape, part, sharding.devices))
    return np.array_equal(plain.coordinates, sharding.coordinates)
