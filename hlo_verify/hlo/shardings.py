"""How parameters and results lie on the devices: HloSharding's text, as JAX and XLA write it, and files of it.

Source: xla/hlo/ir/hlo_sharding.h, and tile_assignment.h for `[tiles]<=[sizes]T(order)`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo.groups import listed
from hlo_verify.hlo.shapes import integers, split

_TILES = re.compile(
    r"\{devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))(?:\s+(last_tile_dim_replicate)"
    r"|\s+last_tile_dims=\{([a-z,\s]*)\})?\s*\}"
)


@dataclass(frozen=True, slots=True)
class Shardings:
    """The shardings of a module's parameters and results, leaf by leaf, over its partitions."""

    arguments: tuple[str, ...]
    results: tuple[str, ...]


def read(text: str) -> Shardings:
    """From `{"in": ["{devices=[8,1]<=[8]}", …], "out": […]}`. Raises InputError for what is no such text."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"the shardings are no JSON: {error}", Input.DAMAGED) from error
    lists: list[Any] = [data.get(key, []) for key in ("in", "out")] if isinstance(data, dict) else [None]
    if any(not isinstance(one, list) or not all(isinstance(each, str) for each in one) for one in lists):
        raise InputError('shardings are {"in": [TEXT, …], "out": [TEXT, …]}', Input.DAMAGED)
    return Shardings(tuple(lists[0]), tuple(lists[1]))


def shards(text: str, devices: int) -> tuple[int, ...] | None:
    """For each device the number of its shard; None where the text does not say it.

    >>> shards("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", 4)
    (0, 0, 1, 1)
    """
    tiles = coordinates(text, devices)
    if tiles is None:
        return None
    numbers: dict[tuple[int, ...], int] = {place: number for number, place in enumerate(sorted(set(tiles)))}
    return tuple(numbers[place] for place in tiles)


def coordinates(text: str, devices: int) -> tuple[tuple[int, ...], ...] | None:
    """For each device the place of its shard along each dimension; none of a replicated array. None where the text does
    not say it.

    >>> coordinates("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", 4)
    ((0, 0), (0, 0), (1, 0), (1, 0))
    """
    text = text.strip()
    if text == "{replicated}":
        return ((),) * devices
    tiles = _TILES.fullmatch(text)
    if tiles is None:
        return None
    shape = integers(tiles[1])
    table = listed(tiles[2], tiles[3]) if tiles[2] else np.array(integers(tiles[4]))
    copies = 1 if tiles[5] else len(tiles[6].split(",")) if tiles[6] else 0
    if tiles[6] and {kind.strip() for kind in tiles[6].split(",")} != {"replicated"}:
        return None
    if table is None or copies > len(shape) or prod(shape) != devices or sorted(table) != list(range(devices)):
        return None
    found = np.empty((devices, len(shape) - copies), np.int64)
    places = np.stack(np.unravel_index(np.arange(devices), shape), axis=1)
    found[table] = places[:, : len(shape) - copies]
    return tuple(map(tuple, found.tolist()))


def devices_of(texts: Iterable[str]) -> int | None:
    """How many devices shardings are over, if they say one number.

    >>> devices_of(["{replicated}", "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"])
    4
    """
    tiled = (_TILES.fullmatch(text.strip()) for text in texts)
    counts = {prod(integers(found[1])) for found in tiled if found is not None}
    return counts.pop() if len(counts) == 1 else None


def of_leaves(text: str, count: int) -> list[str]:
    """The shardings of the `count` arrays of a parameter, from what is said of it: one may stand for all.

    >>> of_leaves("{{replicated}, {devices=[2]<=[2]}}", 2)
    ['{replicated}', '{devices=[2]<=[2]}']
    >>> of_leaves("{replicated}", 2)
    ['{replicated}', '{replicated}']
    """
    texts = each(text) if text else []
    return texts * count if len(texts) == 1 else texts


def each(text: str) -> list[str]:
    """The shardings of a tuple's leaves; of an array, its own alone."""
    text = text.strip()
    return split(text[1:-1]) if text.startswith("{{") else [text]
