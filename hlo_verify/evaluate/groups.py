"""Which devices communicate: the groups of collectives, by number of device (`replica * partitions + partition`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo_verify.evaluate.maps import Array, Maps
from hlo_verify.evaluate.state import Place
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.program.ir import Op


def channel(op: Op) -> int:
    """The channel; 0 where there is none."""
    found: Any = op.attributes.get("channel_id", op.attributes.get("channel_handle", 0))
    if isinstance(found, str):
        handle = re.search(r"handle = (\d+)", found)
        if handle is None:
            raise UnknownError(f"the channel {found}")
        return int(handle[1])
    return int(found["handle"] if isinstance(found, dict) else found)


def counts(place: Place) -> tuple[int, int]:
    """The numbers of replicas and of partitions."""
    if place.partitions is None or place.replicas is None:
        raise UnknownError("outside of any device's program")
    return place.replicas, place.partitions


CROSS_PARTITION = frozenset({"all_to_all", "mhlo.all_to_all", "collective_broadcast"})
"""Collectives that, with a channel, are among the partitions of each replica."""


def groups_of(op: Op, maps: Maps, place: Place, *, ordered: bool) -> Array:
    """The groups as the specification has them for the operation's mode, a row each, padded with -1; `ordered` if the
    order in a group matters."""
    has_channel = channel(op) > 0
    mode = (bool(op.attributes.get("use_global_device_ids")), has_channel, has_channel and op.name in CROSS_PARTITION)
    return maps.once(_groups_of, op.attributes["replica_groups"], place, *mode, ordered)


def _groups_of(
    given: Any, place: Place, is_global: bool, has_channel: bool, is_by_partition: bool, ordered: bool
) -> Array:
    replicas, partitions = counts(place)
    rows = _rows(given)
    devices = np.arange(replicas * partitions, dtype=np.int64).reshape(replicas, partitions)
    if is_global:
        table, every = devices.reshape(-1, 1, 1), devices.reshape(1, -1)
    elif is_by_partition:
        table, every = devices.T[:, :, None], np.arange(partitions)[None]
    elif has_channel:
        table, every = devices[:, None, :], np.arange(replicas)[None]
    else:
        table, every = devices[:, :, None], np.arange(replicas)[None]
    rows = rows if rows.size else every
    if ordered and table.shape[2] > 1 and rows.shape[1] > 1:
        raise UnknownError("groups over replicas and partitions, whose order is not agreed on")
    if rows.size and rows.max() >= len(table):
        raise UnknownError("groups that name a device that does not exist")
    # by row, member, what each number's groups are, and what one of those has of each: groups, then their members
    found = np.where(rows[:, :, None, None] < 0, -1, table[rows])
    groups = found.transpose(0, 2, 1, 3).reshape(len(rows) * table.shape[1], -1)
    members = groups[groups >= 0]
    if members.size and np.bincount(members).max() > 1:
        raise UnknownError("groups that name a device twice")
    check_manual(groups, place)
    return groups


def _rows(given: Any) -> Array:
    """The rows of a list of groups, what pads them at the end; none without members."""
    rows = np.asarray(given, np.int64)
    if rows.ndim != 2 or not (rows < 0).any():
        return rows if rows.ndim == 2 else np.empty((0, 0), np.int64)
    lists = [[n for n in row if n >= 0] for row in rows.tolist()]
    longest = max(map(len, lists), default=0)
    return np.array([[*row, *[-1] * (longest - len(row))] for row in lists if row], np.int64).reshape(-1, longest)


def check_manual(groups: Array, place: Place) -> None:
    """Communication along mesh axes that the region around is not manual over has no meaning."""
    if place.automatic is None:
        return
    numbers = np.where(groups < 0, -1, place.automatic[groups])
    if ((numbers >= 0) & (numbers != numbers[:, :1])).any():
        raise UnknownError("communication across mesh axes that are not manual")


def even_groups(op: Op, maps: Maps, place: Place, *, ordered: bool = True) -> Array:
    """Groups of one size that cover every device, as rows."""
    groups = groups_of(op, maps, place, ordered=ordered)
    if (groups < 0).any() or groups.size != place.devices:
        raise UnknownError("groups of different sizes, or that leave devices out")
    return groups


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """Devices in groups. For each device all members of its group would be a table of devices times members."""

    members: Array
    """A row for each group; -1 is no member."""
    row_of: Array
    """The row of each device's group."""
    ranks: Array
    """Its own number there."""

    @property
    def size(self) -> int:
        return int(self.members.shape[1])


def grouped(groups: Array, devices: int) -> Grouped:
    """Groups, as rows padded with -1, that cover so many devices."""
    row_of, ranks = np.zeros(devices, np.int64), np.zeros(devices, np.int64)
    rows, columns = np.nonzero(groups >= 0)
    if len(rows) != devices:
        raise UnknownError("groups that leave devices out")
    row_of[groups[rows, columns]], ranks[groups[rows, columns]] = rows, columns
    return Grouped(groups, row_of, ranks)


def sources_of(op: Op, place: Place) -> Array:
    """For each device the one that it receives from in a collective_permute; -1 where there is none."""
    replicas, partitions = counts(place)
    pairs = np.asarray(op.attributes["source_target_pairs"], np.int64).reshape(-1, 2)
    across = channel(op) > 0
    limit = partitions if across else replicas
    if len(np.unique(pairs[:, 1])) != len(pairs) or ((pairs < 0) | (pairs >= limit)).any():
        raise UnknownError("a target twice, or a device that does not exist")
    if across:
        check_manual(pairs, place)
    devices = np.arange(replicas * partitions, dtype=np.int64).reshape(replicas, partitions)
    numbered = devices if across else devices.T  # by what the pairs do not number, and what they do
    sources = np.full(place.devices, -1, np.int64)
    sources[numbered[:, pairs[:, 1]]] = numbered[:, pairs[:, 0]]
    return sources
