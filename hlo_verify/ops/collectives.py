"""Collectives: a device is an index, so communication is substitution of, or a sum over, the device's digits."""

from __future__ import annotations

from hlo_verify.diagnostics import Unsupported
from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.ops.at_best import reduce_to_best
from hlo_verify.ops.devices import ascends
from hlo_verify.ops.groups import (
    Members,
    ascending,
    device_of,
    even_groups,
    member_index,
    rank_index,
    receive,
    sources_of,
)
from hlo_verify.ops.regions import monoid, operand_term
from hlo_verify.ops.values import (
    Context,
    Rule,
    UnsupportedError,
    Value,
    factor,
    lighten,
    position_var,
    positions,
)
from hlo_verify.program.ir import Op
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.term import Poly


def _id(divide: bool) -> Rule:
    def rule(op: Op, args: list[Value], context: Context) -> list[Value]:
        d = expr.of_var(device_of(context))
        q, r = expr.floor_divmod(d, context.partitions)
        return [Value(op.types[0], algebra.of_index(q if divide else r))]

    return rule


def reduce_over_group(reducer: str, term: Poly, dtype: str, groups: Members, device: Var) -> Poly:
    """The reduction of a term over the members of each device's group, in any order: in one that its indices ascend in,
    if there is one; in an irregular mesh that is the group's own, which follows the mesh's axes."""
    size = groups.shape[1]
    if size == 1:
        return term
    v = expr.fresh("f", size)
    reduced = []
    for members in (ascending(groups), groups):
        where = member_index(members, device, expr.of_var(v))
        reduced.append(_reduce(reducer, v, algebra.substitute(term, {device: where}), dtype))
        if ascends(reduced[-1]):
            return reduced[-1]
    return reduced[0]


def _reduce(reducer: str, member: Var, term: Poly, dtype: str) -> Poly:
    return reduce_to_best(reducer, [member], term, dtype)


def reducer_of(op: Op, context: Context) -> str:
    """The reducer of a collective. Raises `UnsupportedError` for one that is not recognised."""
    reducer = monoid(op.regions[0], context)
    if reducer is None:
        raise UnsupportedError(f"{op.name} with a reducer that is not recognised", Unsupported.REGION)
    return reducer


def _light(reducer: str, value: Value, dtype: str) -> Poly:
    term = operand_term(reducer, value, dtype)
    if len(term.items) > 8 or (reducer != "sum" and len(term.items) > 1):
        return factor(term, dtype)
    return term


def sum_over_group(value: Value, dtype: str, groups: Members, device: Var) -> Poly:
    """The sum of a value over the members of each device's group."""
    return lighten(reduce_over_group("sum", _light("sum", value, dtype), dtype, groups, device), dtype)


def _all_reduce(op: Op, args: list[Value], context: Context) -> list[Value]:
    reducer = reducer_of(op, context)
    device = device_of(context)
    groups = even_groups(op, context, ordered=False)
    return [
        Value(
            result,
            lighten(
                reduce_over_group(reducer, _light(reducer, value, result.dtype), result.dtype, groups, device),
                result.dtype,
            ),
        )
        for result, value in zip(op.types, args, strict=True)
    ]


def _reduce_scatter(op: Op, args: list[Value], context: Context) -> list[Value]:
    reducer = reducer_of(op, context)
    device = device_of(context)
    groups = even_groups(op, context)
    k = op.attributes["scatter_dimension"]
    results = []
    for result, value in zip(op.types, args, strict=True):
        reduced = reduce_over_group(reducer, _light(reducer, value, result.dtype), result.dtype, groups, device)
        where = list(positions(result.shape))
        where[k] = expr.add(where[k], expr.scale(rank_index(groups, device), result.shape[k]))
        results.append(Value(result, lighten(Value(value.type, reduced).at(where), result.dtype)))
    return results


def _all_gather(op: Op, args: list[Value], context: Context) -> list[Value]:
    device = device_of(context)
    groups = even_groups(op, context)
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
    groups = even_groups(op, context)
    rank = rank_index(groups, device)
    split, concat = op.attributes["split_dimension"], op.attributes["concat_dimension"]
    count = op.attributes.get("split_count", groups.shape[1])
    if count != groups.shape[1]:
        raise UnsupportedError(f"all_to_all of {count} pieces in groups of {groups.shape[1]}", Unsupported.GROUPS)
    results = []
    for result, value in zip(op.types, args, strict=True):
        where = list(positions(result.shape))
        piece = value.shape[concat] if concat != split else value.shape[split] // count
        member, where[concat] = expr.floor_divmod(where[concat], piece)
        where[split] = expr.add(where[split], expr.scale(rank, value.shape[split] // count))
        results.append(Value(result, _on_device(value, where, device, member_index(groups, device, member))))
    return results


def _all_to_all_of_tuple(op: Op, args: list[Value], context: Context) -> list[Value]:
    """HLO's form on a tuple: operand r goes to member r, and result n comes from member n."""
    device = device_of(context)
    groups = even_groups(op, context)
    if len(args) != groups.shape[1]:
        raise UnsupportedError(f"all_to_all of {len(args)} operands in groups of {groups.shape[1]}", Unsupported.GROUPS)
    rank = rank_index(groups, device)
    results = []
    for n, result in enumerate(op.types):
        source = member_index(groups, device, expr.constant(n))
        picked = []
        for r, value in enumerate(args):
            mine = guards.interval(expr.shift(rank, -r), 0, 0)
            picked.append(algebra.multiply(mine, algebra.substitute(value.term, {device: source})))
        results.append(Value(result, algebra.add(*picked)))
    return results


def _forwarded(op: Op, args: list[Value], context: Context) -> list[Value]:
    """A device with a source receives its value, in a broadcast that of its group's first member; one without receives
    zeros."""
    device = device_of(context)
    sources = sources_of(op, context)
    return [Value(result, receive(value.term, sources, device)) for result, value in zip(op.types, args, strict=True)]


RULES: dict[str, Rule] = {
    "partition_id": _id(False),
    "replica_id": _id(True),
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "mhlo.all_to_all": _all_to_all_of_tuple,
    "collective_permute": _forwarded,
    "collective_broadcast": _forwarded,
}
