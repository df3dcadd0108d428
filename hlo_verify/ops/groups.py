"""Replica groups: which devices communicate, as tables of device numbers fitted to digits.

Devices are numbered replica by replica: `replica * partitions + partition`. Everything here is worked out once for each
attribute that is an object of its own, for all devices at once: a module of a hundred thousand operations has a handful
of them, and each may name a hundred thousand devices.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr, tables
from hlo_verify.index.expr import Index, Var
from hlo_verify.memory import per_session
from hlo_verify.ops.values import Context, UnsupportedError
from hlo_verify.program.ir import Op
from hlo_verify.program.op_families import BY_PARTITION
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import ONE, Poly

Members = npt.NDArray[np.int64]


def device_of(context: Context) -> Var:
    """The device variable; collectives have no meaning without one."""
    if context.device is None:
        raise UnsupportedError("a collective outside of any device's program", Unsupported.MANUAL)
    return context.device


def channel(op: Op) -> int:
    """The channel id; 0 where there is none."""
    found: Any = op.attributes.get("channel_id", op.attributes.get("channel_handle", 0))
    if isinstance(found, str):  # mhlo's attribute, as text
        handle = re.search(r"handle = (\d+)", found)
        if handle is None:
            raise UnsupportedError(f"{op.name} on the channel {found}", Unsupported.GROUPS)
        return int(handle[1])
    return int(found["handle"] if isinstance(found, dict) else found)


_groups: Callable[[], dict[tuple[Any, ...], tuple[Any, Members]]] = per_session("groups of collectives", dict)
"""Every list of groups is read once, by the object that it is. The attribute too, so that its id stays taken."""


def process_groups(op: Op, context: Context, ordered: bool = True) -> Members:
    """The groups of a collective as device numbers, a row each, padded with -1 (StableHLO, "Collective ops").

    The mode follows from the operation, `channel_id` and `use_global_device_ids`: cross_replica, cross_partition,
    cross_replica_and_partition (groups of replicas over all partitions), or flattened ids. `ordered` says that the
    order within a group matters.
    """
    given, automatic = op.attributes["replica_groups"], context.automatic
    mode = (bool(op.attributes.get("use_global_device_ids")), channel(op) > 0, op.name in BY_PARTITION, ordered)
    key = (id(given), mode, context.partitions, context.replicas, id(automatic))
    known = _groups()
    if key not in known:
        found = _process_groups(_padded(given), op.name, mode, context)
        check_manual(op, found, context)
        known[key] = (given, automatic), found
    return known[key][1]


def _process_groups(rows: Members, name: str, mode: tuple[bool, bool, bool, bool], context: Context) -> Members:
    partitions, replicas = context.partitions, context.replicas
    is_global, has_channel, is_by_partition, ordered = mode
    if is_global:
        groups = _rows_or_all(rows, partitions * replicas)
    elif has_channel and is_by_partition:  # cross_partition
        rows = _rows_or_all(rows, partitions)
        groups = np.concatenate([np.where(rows < 0, -1, rows + r * partitions) for r in range(replicas)])
    elif has_channel:  # cross_replica_and_partition
        rows = _rows_or_all(rows, replicas)
        if ordered and partitions > 1 and rows.shape[1] > 1:
            # The specification goes through the replicas of each partition, XLA through the partitions of each replica.
            raise UnsupportedError(
                f"{name} over replicas and partitions, whose order within a group is not agreed on", Unsupported.GROUPS
            )
        every = rows[:, :, None] * partitions + np.arange(partitions)
        groups = np.where(rows[:, :, None] < 0, -1, every).reshape(len(rows), -1)
    else:  # cross_replica
        rows = _rows_or_all(rows, replicas)
        every = rows[:, None, :] * partitions + np.arange(partitions)[:, None]
        groups = np.where(rows[:, None, :] < 0, -1, every).reshape(-1, rows.shape[1])
    flat = groups[groups >= 0]
    if flat.size and (flat.max() >= partitions * replicas or np.bincount(flat).max() > 1):
        raise UnsupportedError(
            "replica groups that name a device twice, or one that does not exist", Unsupported.GROUPS
        )
    return groups


def _padded(given: Any) -> Members:
    """Rows with what pads them at the end, and no row without members."""
    rows = np.asarray(given, np.int64)
    if rows.ndim != 2:
        rows = rows.reshape(0, 0) if not rows.size else rows.reshape(1, -1)
    if not (rows < 0).any():
        return rows if rows.size else np.empty((0, 0), np.int64)
    rows = np.take_along_axis(rows, np.argsort(rows < 0, axis=1, kind="stable"), axis=1)
    rows = np.where(rows < 0, -1, rows)
    members = (rows >= 0).sum(axis=1)
    return rows[members > 0, : members.max()] if members.any() else np.empty((0, 0), np.int64)


def _rows_or_all(rows: Members, count: int) -> Members:
    return rows if len(rows) else np.arange(count, dtype=np.int64)[None, :]


def check_manual(op: Op, groups: Members, context: Context) -> None:
    """Refuse communication across mesh axes that the region around is not manual over: it has no meaning there."""
    numbers = context.automatic
    if numbers is None:
        return
    across = np.asarray(numbers)[groups]  # of -1 the last device's, which is not looked at
    if ((across != across[:, :1]) & (groups >= 0)).any():
        raise UnsupportedError(f"{op.name} across mesh axes that are not manual", Unsupported.MANUAL)


def even_groups(op: Op, context: Context, ordered: bool = True) -> Members:
    """Groups of one size that cover every device, as rows."""
    groups = process_groups(op, context, ordered)
    if (groups < 0).any():
        raise UnsupportedError("replica groups of different sizes", Unsupported.GROUPS)
    if groups.size != context.partitions * context.replicas:
        raise UnsupportedError("replica groups that do not cover every device once", Unsupported.GROUPS)
    return groups


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """What is known of groups and a device's place in them; the groups too, so that their id stays taken."""

    groups: Members
    pair: Var
    """Counts all members of all groups, one group after another."""
    members: Index
    """The device that is number `pair`."""
    group: Index
    """The number of a device's own group."""
    rank: Index
    """Its own number there."""


_fitted: Callable[[], dict[tuple[int, Var], _Fitted]] = per_session("groups of collectives, fitted", dict)


def _fit(groups: Members, device: Var) -> _Fitted:
    known = _fitted()
    found = known.get((id(groups), device))
    if found is None:
        rows = groups[np.argsort(groups.min(axis=1))]
        count, size = rows.shape
        own = np.empty((2, groups.size), dtype=np.int64)
        own[0, rows], own[1, rows] = np.arange(count)[:, None], np.arange(size)
        pair = expr.var("pair", 0, count * size)
        found = _Fitted(
            groups, pair, tables.fit(rows.reshape(-1), pair), tables.fit(own[0], device), tables.fit(own[1], device)
        )
        known[id(groups), device] = found
    return found


def member_index(groups: Members, device: Var, member: Index) -> Index:
    """The device that is number `member` (an index below the group size) in the device's own group."""
    fitted = _fit(groups, device)
    return expr.substitute(fitted.members, {fitted.pair: expr.add(expr.scale(fitted.group, groups.shape[1]), member)})


def rank_index(groups: Members, device: Var) -> Index:
    """The device's own number in its group."""
    return _fit(groups, device).rank


_ascending: Callable[[], dict[int, tuple[Members, Members]]] = per_session("groups in ascending order", dict)


def ascending(groups: Members) -> Members:
    """The same groups, the members of each in ascending order."""
    known = _ascending()
    if id(groups) not in known:
        known[id(groups)] = groups, np.sort(groups, axis=1)
    return known[id(groups)][1]


_sources: Callable[[], dict[tuple[Any, ...], tuple[Any, Members]]] = per_session("sources of permutes", dict)


def sources_of(op: Op, context: Context) -> Members:
    """From which device each receives; -1 for one that receives nothing. Raises `UnsupportedError` where that is not
    said of each device once."""
    if op.name == "collective_broadcast":
        return _broadcast(op, context)
    given, automatic, across = op.attributes["source_target_pairs"], context.automatic, channel(op) > 0
    key = (id(given), across, context.partitions, context.replicas, id(automatic))
    known = _sources()
    if key not in known:
        known[key] = (given, automatic), _permuted(op, np.asarray(given, np.int64).reshape(-1, 2), across, context)
    return known[key][1]


def _broadcast(op: Op, context: Context) -> Members:
    if op.attributes.get("has_dynamic_root"):
        raise UnsupportedError("collective_broadcast from members that an operand says", Unsupported.USE)
    groups = process_groups(op, context)
    found = np.full(context.partitions * context.replicas, -1, np.int64)
    first = np.broadcast_to(groups[:, :1], groups.shape)
    found[groups[groups >= 0]] = first[groups >= 0]
    return found


def _permuted(op: Op, pairs: Members, across: bool, context: Context) -> Members:
    partitions, replicas = context.partitions, context.replicas
    limit = partitions if across else replicas
    if pairs.size and (pairs.min() < 0 or pairs.max() >= limit or np.bincount(pairs[:, 1]).max() > 1):
        raise UnsupportedError(
            "collective_permute to one target twice, or with a device that does not exist", Unsupported.GROUPS
        )
    if across:
        check_manual(op, pairs, context)
    here = np.full(limit, -1, np.int64)
    here[pairs[:, 1]] = pairs[:, 0]
    if across:  # cross_partition
        every = here[None, :] + partitions * np.arange(replicas)[:, None]
        return np.where(here[None, :] < 0, -1, every).reshape(-1)
    every = here[:, None] * partitions + np.arange(partitions)  # cross_replica
    return np.where(here[:, None] < 0, -1, every).reshape(-1)


_received: Callable[[], dict[tuple[int, Var], tuple[Members, Index, Poly]]] = per_session("received from", dict)


def receive(term: Poly, sources: Members, device: Var) -> Poly:
    """The term of the device that each device receives from; zero where it receives nothing."""
    found = _received()
    key = (id(sources), device)
    if key not in found:
        known = sources >= 0
        where = tables.fit(np.where(known, sources, 0), device, None if known.all() else known)
        inside = ONE
        for form, lo, hi in () if known.all() else tables.fit_set(known, device):
            inside = algebra.multiply(inside, guards.interval(form, lo, hi))
        found[key] = sources, where, inside
    _, where, inside = found[key]
    return algebra.multiply(inside, algebra.substitute(term, {device: where}))
