"""The meaning of communication between devices."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hlo_verify.index import expr
from hlo_verify.passes.recheck.meanings.reductions import reducer_of
from hlo_verify.passes.recheck.meanings.site import Meaning, Site, UnwrittenError
from hlo_verify.passes.recheck.plain import Affine, Expr, Gate, OfIndex, Reduce, digit, sum_of, table, times, whole


def _device(site: Site) -> Affine:
    if site.device is None:
        raise UnwrittenError(f"{site.op.name} outside of any device's program")
    return site.device


def _channel(site: Site) -> int:
    """The channel id; 0 where there is none."""
    attributes = site.op.attributes
    found = attributes.get("channel_id", attributes.get("channel_handle", 0))
    if isinstance(found, str):  # mhlo's attribute, as text
        handle = re.search(r"handle = (\d+)", found)
        if handle is None:
            raise UnwrittenError(f"{site.op.name} on the channel {found}")
        return int(handle[1])
    return int(found["handle"] if isinstance(found, dict) else found)


def _groups(site: Site) -> list[list[int]]:
    """Who communicates, as device numbers `replica * partitions + partition`, each device in one group."""
    partitions, replicas = site.partitions, site.replicas
    rows = [[int(n) for n in row if n >= 0] for row in site.attribute("replica_groups")]
    rows = [row for row in rows if row]
    on_channel = _channel(site) > 0
    if site.op.attributes.get("use_global_device_ids"):
        groups = rows or [list(range(partitions * replicas))]
    elif on_channel and site.op.name in ("collective_broadcast", "all_to_all"):
        rows = rows or [list(range(partitions))]
        groups = [[r * partitions + p for p in row] for r in range(replicas) for row in rows]
    elif on_channel:
        rows = rows or [list(range(replicas))]
        groups = [[r * partitions + p for r in row for p in range(partitions)] for row in rows]
    else:
        rows = rows or [list(range(replicas))]
        groups = [[r * partitions + p for r in row] for row in rows for p in range(partitions)]
    members = sorted(n for group in groups for n in group)
    if members != list(range(partitions * replicas)) or len({len(group) for group in groups}) != 1:
        raise UnwrittenError(f"{site.op.name} in groups of different sizes")
    return groups


def _member(site: Site, groups: Sequence[Sequence[int]], n: Affine) -> Affine:
    """The n-th device of this device's group."""
    size = len(groups[0])
    rows = {member: group for group in groups for member in group}
    values = [m for device in range(len(rows)) for m in rows[device]]
    return table(values, sum_of((_device(site), size), (n, 1)))


def _rank(site: Site, groups: Sequence[Sequence[int]]) -> Affine:
    """This device's place in its group."""
    ranks = {member: n for group in groups for n, member in enumerate(group)}
    return table([ranks[device] for device in range(len(ranks))], _device(site))


def _reduced(site: Site, groups: Sequence[Sequence[int]], where: Sequence[Affine]) -> Expr:
    v = expr.fresh("f", len(groups[0]))
    return Reduce(
        reducer_of(site.op.regions[0]), (v,), site.read_on(site.result, where, _member(site, groups, whole(v)))
    )


def _all_reduce(site: Site) -> Expr:
    return _reduced(site, _groups(site), site.where)


def _reduce_scatter(site: Site) -> Expr:
    groups, k = _groups(site), site.attribute("scatter_dimension")
    where = list(site.where)
    where[k] = sum_of((where[k], 1), (_rank(site, groups), site.type.shape[k]))
    return _reduced(site, groups, where)


def _all_gather(site: Site) -> Expr:
    groups, k = _groups(site), site.attribute("all_gather_dim")
    size = site.operands[site.result].shape[k]
    where = list(site.where)
    member = digit(where[k], size)
    where[k] = digit(where[k], 1, size) if size > 1 else Affine(0)
    return site.read_on(site.result, where, _member(site, groups, member))


def _all_to_all(site: Site) -> Expr:
    groups = _groups(site)
    split, concat = site.attribute("split_dimension"), site.attribute("concat_dimension")
    shape, count = site.operands[site.result].shape, len(groups[0])
    width = shape[split] // count
    piece = shape[concat] if concat != split else width
    where = list(site.where)
    member = digit(where[concat], piece)
    where[concat] = digit(where[concat], 1, piece)
    where[split] = sum_of((where[split], 1), (_rank(site, groups), width))
    return site.read_on(site.result, where, _member(site, groups, member))


def _all_to_all_of_tuple(site: Site) -> Expr:
    raise UnwrittenError("all_to_all of a tuple")


def _collective_permute(site: Site) -> Expr:
    partitions, replicas = site.partitions, site.replicas
    sources = [-1] * (partitions * replicas)
    for a, b in site.attribute("source_target_pairs"):
        source, target = int(a), int(b)
        for other in range(replicas if _channel(site) > 0 else partitions):
            if _channel(site) > 0:
                sources[other * partitions + target] = other * partitions + source
            else:
                sources[target * partitions + other] = source * partitions + other
    known = table([int(n >= 0) for n in sources], _device(site))
    source_of = table([max(n, 0) for n in sources], _device(site))
    return times(Gate(known, 1, 1), site.read_on(site.result, site.where, source_of))


def _partition_id(site: Site) -> Expr:
    return OfIndex(digit(_device(site), 1, site.partitions))


def _replica_id(site: Site) -> Expr:
    return OfIndex(digit(_device(site), site.partitions))


MEANINGS: dict[str, Meaning] = {
    "partition_id": _partition_id,
    "replica_id": _replica_id,
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "mhlo.all_to_all": _all_to_all_of_tuple,
    "collective_permute": _collective_permute,
}
"""Meanings by operation name."""
