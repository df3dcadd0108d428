"""Which devices communicate: the groups of collectives, by number of device (`replica * partitions + partition`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hlo_verify.evaluate.maps import Array
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


def groups_of(op: Op, place: Place, *, ordered: bool) -> list[list[int]]:
    """The groups as the specification has them for the operation's mode; `ordered` if the order in a group matters."""
    replicas, partitions = counts(place)
    rows = [[int(n) for n in row if n >= 0] for row in op.attributes["replica_groups"]]
    rows = [row for row in rows if row]
    if op.attributes.get("use_global_device_ids"):
        groups = rows or [list(range(replicas * partitions))]
    elif channel(op) > 0 and op.name in CROSS_PARTITION:
        rows = rows or [list(range(partitions))]
        groups = [[r * partitions + p for p in row] for r in range(replicas) for row in rows]
    elif channel(op) > 0:
        rows = rows or [list(range(replicas))]
        if ordered and partitions > 1 and any(len(row) > 1 for row in rows):
            raise UnknownError("groups over replicas and partitions, whose order is not agreed on")
        groups = [[r * partitions + p for r in row for p in range(partitions)] for row in rows]
    else:
        rows = rows or [list(range(replicas))]
        groups = [[r * partitions + p for r in row] for row in rows for p in range(partitions)]
    members = [n for group in groups for n in group]
    if len(set(members)) != len(members) or not all(0 <= n < replicas * partitions for n in members):
        raise UnknownError("groups that name a device twice, or one that does not exist")
    check_manual(groups, place)
    return groups


def check_manual(groups: Iterable[Sequence[int]], place: Place) -> None:
    """Communication along mesh axes that the region around is not manual over has no meaning."""
    numbers = place.automatic
    if numbers is not None and any(len({int(numbers[n]) for n in group}) > 1 for group in groups):
        raise UnknownError("communication across mesh axes that are not manual")


def even_groups(op: Op, place: Place, *, ordered: bool = True) -> Array:
    """Groups of one size that cover every device, as rows."""
    groups = groups_of(op, place, ordered=ordered)
    if len({len(group) for group in groups}) != 1 or sum(map(len, groups)) != place.devices:
        raise UnknownError("groups of different sizes, or that leave devices out")
    return np.array(groups, np.int64)


def members_of(groups: Array, devices: int) -> tuple[Array, Array]:
    """For each device the members of its group, and its own number among them."""
    members = np.zeros((devices, groups.shape[1]), np.int64)
    ranks = np.zeros(devices, np.int64)
    for n in range(groups.shape[1]):
        members[groups[:, n]] = groups
        ranks[groups[:, n]] = n
    return members, ranks


def sources_of(op: Op, place: Place) -> Array:
    """For each device the one that it receives from in a collective_permute; -1 where there is none."""
    replicas, partitions = counts(place)
    pairs = [(int(a), int(b)) for a, b in op.attributes["source_target_pairs"]]
    across = channel(op) > 0
    limit = partitions if across else replicas
    if len({b for _, b in pairs}) != len(pairs) or not all(0 <= n < limit for pair in pairs for n in pair):
        raise UnknownError("a target twice, or a device that does not exist")
    if across:
        check_manual(pairs, place)
    sources = np.full(place.devices, -1, np.int64)
    for a, b in pairs:
        for other in range(replicas if across else partitions):
            own = (
                (other * partitions + b, other * partitions + a)
                if across
                else (
                    b * partitions + other,
                    a * partitions + other,
                )
            )
            sources[own[0]] = own[1]
    return sources
