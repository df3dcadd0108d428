"""Where tensors may lie, by the shapes of the whole and of what each device holds; and where they do, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import permutations
from math import prod

import numpy as np
import numpy.typing as npt

from hlo_verify.ir import COLLECTIVES, Module
from hlo_verify.sharding import Sharding, replicated

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
        return
    if prod(tiles) == 1:
        yield replicated(len(whole), devices)
        return
    split = [k for k, count in enumerate(tiles) if count > 1]
    seen: set[bytes] = set()
    for rows in groups:
        if len(split) == 1 and rows.shape == (copies, tiles[split[0]]) and rows.size == devices:
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


def groups_of(partitioned: Module) -> list[Groups]:
    """The groups of devices that communicate, of each kind of grouping once."""
    found: dict[bytes, Groups] = {}
    for op in partitioned.main.ops:
        rows = op.attributes.get("replica_groups")
        if rows is not None and op.name in COLLECTIVES and np.ndim(rows) == 2 and np.min(rows, initial=0) >= 0:
            found.setdefault(np.asarray(rows, np.int64).tobytes(), np.asarray(rows, np.int64))
    return list(found.values())


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
    plain = next(
        placements(shape, tuple(-(-s // t) for s, t in zip(shape, sharding.tiles, strict=True)), sharding.devices)
    )
    same = np.array_equal(plain.coordinates, sharding.coordinates)
    return text if same else f"{text}, on devices in another order ({sharding.coordinates.tolist()})"
