"""Replica groups: which devices communicate, as tables of device numbers fitted to digits.

Devices are numbered replica by replica: `replica * partitions + partition`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr, tables
from hlo_verify.index.expr import Index, Var
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


def process_groups(op: Op, context: Context, ordered: bool = True) -> list[list[int]]:
    """The groups of a collective as lists of device numbers (StableHLO, "Collective ops").

    The mode follows from the operation, `channel_id` and `use_global_device_ids`: cross_replica, cross_partition,
    cross_replica_and_partition (groups of replicas over all partitions), or flattened ids. `ordered` says that the
    order within a group matters.
    """
    rows = [[int(n) for n in row if n >= 0] for row in op.attributes["replica_groups"]]
    rows = [row for row in rows if row]
    partitions, replicas = context.partitions, context.replicas
    if op.attributes.get("use_global_device_ids"):
        groups = rows or [list(range(partitions * replicas))]
    elif channel(op) > 0 and op.name in BY_PARTITION:  # cross_partition
        rows = rows or [list(range(partitions))]
        groups = [[r * partitions + p for p in row] for r in range(replicas) for row in rows]
    elif channel(op) > 0:  # cross_replica_and_partition
        rows = rows or [list(range(replicas))]
        if ordered and partitions > 1 and any(len(row) > 1 for row in rows):
            # The specification goes through the replicas of each partition, XLA through the partitions of each replica.
            raise UnsupportedError(
                f"{op.name} over replicas and partitions, whose order within a group is not agreed on",
                Unsupported.GROUPS,
            )
        groups = [[r * partitions + p for r in row for p in range(partitions)] for row in rows]
    else:  # cross_replica
        rows = rows or [list(range(replicas))]
        groups = [[r * partitions + p for r in row] for row in rows for p in range(partitions)]
    flat = [n for group in groups for n in group]
    if len(set(flat)) != len(flat) or not all(0 <= n < partitions * replicas for n in flat):
        raise UnsupportedError(
            "replica groups that name a device twice, or one that does not exist", Unsupported.GROUPS
        )
    check_manual(op, groups, context)
    return groups


def check_manual(op: Op, groups: Iterable[Sequence[int]], context: Context) -> None:
    """Refuse communication across mesh axes that the region around is not manual over: it has no meaning there."""
    numbers = context.automatic
    if numbers is not None and any(len({int(numbers[n]) for n in group}) > 1 for group in groups):
        raise UnsupportedError(f"{op.name} across mesh axes that are not manual", Unsupported.MANUAL)


def even_groups(op: Op, context: Context, ordered: bool = True) -> Members:
    """Groups of one size that cover every device, as rows."""
    groups = process_groups(op, context, ordered)
    if len({len(group) for group in groups}) != 1:
        raise UnsupportedError("replica groups of different sizes", Unsupported.GROUPS)
    if sum(map(len, groups)) != context.partitions * context.replicas:
        raise UnsupportedError("replica groups that do not cover every device once", Unsupported.GROUPS)
    return np.array(groups, dtype=np.int64)


def member_index(groups: Members, device: Var, member: Index) -> Index:
    """The device that is number `member` (an index below the group size) in the device's own group."""
    rows = groups[np.argsort(groups.min(axis=1))]
    count, size = rows.shape
    pair = expr.var("pair", 0, count * size)
    fitted = tables.fit(rows.reshape(-1), pair)
    own = np.empty(groups.size, dtype=np.int64)
    own[rows] = np.arange(count)[:, None]
    group = tables.fit(own, device)
    return expr.substitute(fitted, {pair: expr.add(expr.scale(group, size), member)})


def rank_index(groups: Members, device: Var) -> Index:
    """The device's own number in its group."""
    ranks = np.empty(groups.size, dtype=np.int64)
    for k in range(groups.shape[1]):
        ranks[groups[:, k]] = k
    return tables.fit(ranks, device)


def receive(term: Poly, sources: dict[int, int], device: Var) -> Poly:
    """The term of the device that each device receives from; zero where it receives nothing."""
    table = np.zeros(device.size, dtype=np.int64)
    known = np.zeros(device.size, dtype=bool)
    for target, source in sources.items():
        table[target], known[target] = source, True
    where = tables.fit(table, device, None if known.all() else known)
    received = ONE
    if not known.all():
        for form, lo, hi in tables.fit_set(known, device):
            received = algebra.multiply(received, guards.interval(form, lo, hi))
    return algebra.multiply(received, algebra.substitute(term, {device: where}))
