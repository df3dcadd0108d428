"""Collectives: a device is an index, so communication is substitution of, or a sum over, the device's digits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hlo_verify.index import expr, tables
from hlo_verify.index.expr import Index, Var
from hlo_verify.ir import Op
from hlo_verify.ops.regions import monoid, operand_term, reduce_terms
from hlo_verify.ops.values import Context, Rule, UnsupportedError, Value, factor, lighten, position_var, positions
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import ONE, Poly

Members = npt.NDArray[np.int64]


def device_of(context: Context) -> Var:
    """The device variable; collectives have no meaning without one."""
    if context.device is None:
        raise UnsupportedError("a collective outside of any device's program")
    return context.device


def _id(divide: bool) -> Rule:
    def rule(op: Op, args: list[Value], context: Context) -> list[Value]:
        d = expr.of_var(device_of(context))
        q, r = expr.floor_divmod(d, context.partitions)
        return [Value(op.types[0], algebra.of_index(q if divide else r))]

    return rule


def process_groups(op: Op, context: Context) -> Members:
    """The groups of a collective as rows of device numbers (StableHLO, "Collective ops").

    The mode follows from `channel_id` and `use_global_device_ids`: cross_replica, cross_replica_and_partition
    (groups of replicas over all partitions), or flattened ids.
    """
    groups = np.asarray(op.attributes["replica_groups"], dtype=np.int64)
    handle = op.attributes.get("channel_id", 0)
    partitions, replicas = context.partitions, context.replicas
    if op.attributes.get("use_global_device_ids"):
        if groups.size == 0:
            groups = np.arange(partitions * replicas).reshape(1, -1)
    elif op.name in ("collective_permute", "collective_broadcast", "all_to_all") and handle > 0:
        if groups.size == 0:
            groups = np.arange(partitions).reshape(1, -1)
        groups = np.concatenate([groups + r * partitions for r in range(replicas)])  # cross_partition
    else:
        if groups.size == 0:
            groups = np.arange(replicas).reshape(1, -1)
        if handle > 0:  # cross_replica_and_partition
            groups = np.stack([np.concatenate([g * partitions + p for p in range(partitions)]) for g in groups])
        else:  # cross_replica
            groups = np.concatenate([groups * partitions + p for p in range(partitions)])
    if (groups < 0).any():
        raise UnsupportedError("replica groups of different sizes")
    if sorted(groups.flat) != list(range(partitions * replicas)):
        raise UnsupportedError("replica groups that do not cover every device once")
    return groups


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


def reduce_over_group(kind: str, term: Poly, groups: Members, device: Var) -> Poly:
    """The reduction of a term over the members of each device's group, in any order."""
    size = groups.shape[1]
    if size == 1:
        return term
    v = expr.fresh("f", size)
    where = member_index(np.sort(groups, axis=1), device, expr.of_var(v))
    return reduce_terms(kind, [v], algebra.substitute(term, {device: where}))


def _reducer(op: Op) -> str:
    kind = monoid(op.regions[0])
    if kind is None:
        raise UnsupportedError(f"{op.name} with a reducer that is not recognised")
    return kind


def _light(kind: str, value: Value) -> Poly:
    term = operand_term(kind, value)
    if len(term.items) > 8 or (kind != "sum" and len(term.items) > 1):
        return factor(term, value.type.dtype)
    return term


def _all_reduce(op: Op, args: list[Value], context: Context) -> list[Value]:
    kind = _reducer(op)
    device = device_of(context)
    groups = process_groups(op, context)
    return [
        Value(result, lighten(reduce_over_group(kind, _light(kind, value), groups, device), result.dtype))
        for result, value in zip(op.types, args, strict=True)
    ]


def _reduce_scatter(op: Op, args: list[Value], context: Context) -> list[Value]:
    kind = _reducer(op)
    device = device_of(context)
    groups = process_groups(op, context)
    k = op.attributes["scatter_dimension"]
    (result,) = op.types
    reduced = reduce_over_group(kind, _light(kind, args[0]), groups, device)
    where = list(positions(result.shape))
    where[k] = expr.add(where[k], expr.scale(rank_index(groups, device), result.shape[k]))
    return [Value(result, lighten(Value(args[0].type, reduced).at(where), result.dtype))]


def _all_gather(op: Op, args: list[Value], context: Context) -> list[Value]:
    device = device_of(context)
    groups = process_groups(op, context)
    k = op.attributes["all_gather_dim"]
    results = []
    for result, value in zip(op.types, args, strict=True):
        where = list(positions(result.shape))
        member, where[k] = expr.floor_divmod(where[k], value.shape[k])
        source = member_index(groups, device, member)
        results.append(Value(result, _on_device(value, where, device, source)))
    return results


def _on_device(value: Value, where: list[Index], device: Var, source: Index) -> Poly:
    """The element at `where` on another device; both replacements happen at once."""
    mapping = {position_var(k, size): e for k, (size, e) in enumerate(zip(value.shape, where, strict=True)) if size > 1}
    mapping[device] = source
    return algebra.substitute(value.term, mapping)


def _all_to_all(op: Op, args: list[Value], context: Context) -> list[Value]:
    """Member r of a group receives the r-th piece of every member, put end to end."""
    device = device_of(context)
    groups = process_groups(op, context)
    rank = rank_index(groups, device)
    if len(args) > 1:  # the tuple form: operand r goes to member r
        return _all_to_all_tuple(op, args, device, groups, rank)
    split, concat = op.attributes["split_dimension"], op.attributes["concat_dimension"]
    count = op.attributes.get("split_count", groups.shape[1])
    (result,) = op.types
    (value,) = args
    where = list(positions(result.shape))
    piece = value.shape[concat] if concat != split else value.shape[split] // count
    member, within = expr.floor_divmod(where[concat], piece)
    where[concat] = within
    where[split] = expr.add(where[split], expr.scale(rank, value.shape[split] // count))
    return [Value(result, _on_device(value, where, device, member_index(groups, device, member)))]


def _all_to_all_tuple(op: Op, args: list[Value], device: Var, groups: Members, rank: Index) -> list[Value]:
    results = []
    for n, result in enumerate(op.types):
        source = member_index(groups, device, expr.constant(n))
        picked = []
        for r, value in enumerate(args):
            mine = guards.interval(expr.shift(rank, -r), 0, 0)
            picked.append(algebra.multiply(mine, algebra.substitute(value.term, {device: source})))
        results.append(Value(result, algebra.add(*picked)))
    return results


def _collective_permute(op: Op, args: list[Value], context: Context) -> list[Value]:
    """A device with a source receives its value; one without receives zeros."""
    device = device_of(context)
    pairs = np.asarray(op.attributes["source_target_pairs"], dtype=np.int64)
    partitions, replicas = context.partitions, context.replicas
    if op.attributes.get("channel_id", 0) > 0:
        pairs = np.concatenate([pairs + r * partitions for r in range(replicas)])
    else:
        pairs = np.concatenate([pairs * partitions + p for p in range(partitions)])
    sources = np.zeros(device.size, dtype=np.int64)
    known = np.zeros(device.size, dtype=bool)
    sources[pairs[:, 1]] = pairs[:, 0]
    known[pairs[:, 1]] = True
    source = tables.fit(sources, device, None if known.all() else known)
    received = ONE
    if not known.all():
        for form, lo, hi in tables.fit_set(known, device):
            received = algebra.multiply(received, guards.interval(form, lo, hi))
    return [
        Value(result, algebra.multiply(received, algebra.substitute(value.term, {device: source})))
        for result, value in zip(op.types, args, strict=True)
    ]


def _collective_broadcast(op: Op, args: list[Value], context: Context) -> list[Value]:
    """Every member of a group receives its first member's value; a device in no group receives zeros."""
    device = device_of(context)
    groups = np.asarray(op.attributes["replica_groups"], dtype=np.int64)
    if context.replicas > 1:
        raise UnsupportedError("collective_broadcast over replicas")
    first = np.zeros(device.size, dtype=np.int64)
    known = np.zeros(device.size, dtype=bool)
    for group in groups:
        members = group[group >= 0]
        first[members], known[members] = members[0], True
    source = tables.fit(first, device, None if known.all() else known)
    received = ONE
    if not known.all():
        for form, lo, hi in tables.fit_set(known, device):
            received = algebra.multiply(received, guards.interval(form, lo, hi))
    return [Value(op.types[0], algebra.multiply(received, algebra.substitute(args[0].term, {device: source})))]


RULES: dict[str, Rule] = {
    "partition_id": _id(False),
    "replica_id": _id(True),
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "collective_permute": _collective_permute,
    "collective_broadcast": _collective_broadcast,
}
