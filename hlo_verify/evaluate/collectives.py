"""Collectives: classes of devices are regrouped. What a device receives depends on its group's members' classes."""

from __future__ import annotations

import math

import numpy as np

from hlo_verify.evaluate.balls import zeros
from hlo_verify.evaluate.blocks import Blocks, aligned, compact, replaced, with_map
from hlo_verify.evaluate.elementwise import scalar_function
from hlo_verify.evaluate.groups import Grouped, counts, even_groups, grouped, groups_of, sources_of
from hlo_verify.evaluate.maps import Array, ClassMap, Maps, rectangle, unique_rows
from hlo_verify.evaluate.movement import by_device
from hlo_verify.evaluate.numbers import wrapped
from hlo_verify.evaluate.reductions import fold, monoid, reduced
from hlo_verify.evaluate.selection import assembled, rows
from hlo_verify.evaluate.state import Place, Rule, Run
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.program.ir import Function, Op


def _id(of_replica: bool) -> Rule:
    def rule(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
        _, partitions = counts(place)
        if place.automatic is not None and len(np.unique(place.automatic)) > 1:
            raise UnknownError("a device's number where the mesh is manual only in part")
        numbers = np.arange(place.devices)
        numbers = numbers // partitions if of_replica else numbers % partitions
        return [by_device(wrapped(numbers, op.types[0].dtype, run.real), 0, (), run.maps)]

    return rule


def _expanded(a: Blocks, place: Place, run: Run) -> Blocks:
    """A value that says itself for every device."""
    if a.devices == place.devices:
        return a
    return replaced(a, 0, run.maps.constant(place.devices), a.values)


def _even(op: Op, run: Run, place: Place) -> Grouped:
    """The groups of an operation, with as many members everywhere."""
    return run.maps.once(grouped, even_groups(op, run.maps, place), place.devices)


def _held_by(maps: Maps, devices: ClassMap, groups: Grouped, in_any_order: bool) -> tuple[ClassMap, Array]:
    """What the members of each device's group hold, -1 where there is none: the number of the pattern of each device,
    and the patterns."""
    numbers = np.where(groups.members >= 0, devices[groups.members], -1)
    if in_any_order:
        numbers = np.sort(numbers, axis=1)
    first, which = unique_rows(numbers)
    return maps.intern(which[groups.row_of]), numbers[first]


def reduced_over(a: Blocks, groups: Grouped, region: Function | None, dtype: str, run: Run) -> Blocks:
    """The reduction over the members of each device's group. Without a region, the sum."""
    reducer = "add" if region is None else monoid(region)
    in_any_order = reducer is not None
    which, patterns = run.maps.once(_held_by, run.maps, run.maps.intern(a.classes[0]), groups, in_any_order)
    run.spend(a.values.size // a.values.shape[0] * len(patterns))
    if reducer is None:
        return _folded(a, patterns, which, region, dtype, run)
    results = []
    for pattern in patterns:
        present, times = np.unique(pattern[pattern >= 0], return_counts=True)
        part = a.values if len(present) == len(a.values) else np.take(a.values, present, axis=0)
        results.append(reduced(reducer, part, [times], [0]))
    values = wrapped(np.stack(results), dtype, run.real)
    return Blocks((which, *a.classes[1:]), values)


def _folded(a: Blocks, patterns: Array, which: ClassMap, region: Function | None, dtype: str, run: Run) -> Blocks:
    assert region is not None
    if (patterns < 0).any():
        raise UnknownError("groups of different sizes")
    run.spend(a.values.size // a.values.shape[0] * patterns.size)
    arrays = np.stack([a.values[patterns[:, n]] for n in range(patterns.shape[1])])
    (found,) = fold(scalar_function(region, run), [arrays])
    return Blocks((which, *a.classes[1:]), wrapped(found, dtype, run.real))


def _all_reduce(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    groups = run.maps.once(grouped, groups_of(op, run.maps, place, ordered=False), place.devices)
    return [
        reduced_over(_expanded(a, place, run), groups, op.regions[0], type_.dtype, run)
        for a, type_ in zip(args, op.types, strict=True)
    ]


def _reduce_scatter(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    groups = _even(op, run, place)
    k = op.attributes["scatter_dimension"]
    results = []
    for a, type_ in zip(args, op.types, strict=True):
        whole = compact(reduced_over(_expanded(a, place, run), groups, op.regions[0], type_.dtype, run), run.maps)
        results.append(pieces(whole, k + 1, groups.ranks, type_.shape[k], run))
    return results


def pieces(a: Blocks, axis: int, numbers: Array, size: int, run: Run) -> Blocks:
    """On each device the piece of that number and size along an axis."""
    distinct, which = np.unique(numbers, return_inverse=True)
    row_of, column_of, table = rows(a.classes[axis], distinct * size, size)
    return assembled(a, run.maps.intern(which.reshape(-1)), [(axis, row_of, column_of, table)], run)


def _patterns(maps: Maps, devices: ClassMap, groups: Grouped) -> tuple[ClassMap, Array, Array, Array]:
    """What the members of each device's group hold: the number of the pattern of each device, the patterns by member,
    and of their columns the first of each that are equal, and which of these each is."""
    numbers = devices[groups.members]
    first, which = unique_rows(numbers)
    patterns = numbers[first]
    return maps.intern(which[groups.row_of]), patterns, *unique_rows(np.ascontiguousarray(patterns.T))


def gathered(a: Blocks, axis: int, groups: Grouped, run: Run) -> Blocks:
    """The tensors of the members of each device's group, put end to end along an axis."""
    which, patterns, columns, column_of = run.maps.once(_patterns, run.maps, run.maps.intern(a.classes[0]), groups)
    run.spend(a.values.size // a.values.shape[0] * len(patterns) * len(columns))
    values = a.values[patterns[:, columns]]
    if a.values.shape[0] == 1 or len(columns) == 1:
        values, column_of = a.values[patterns[:, 0]][:, None], np.zeros_like(column_of)
    size = a.values.shape[axis]
    values = np.moveaxis(values, 1, axis)
    values = values.reshape((*values.shape[:axis], -1, *values.shape[axis + 2 :]))
    classes = (column_of[:, None] * size + a.classes[axis]).reshape(-1)
    maps = [which, *a.classes[1:]]
    maps[axis] = run.maps.intern(classes)
    return Blocks(tuple(maps), values)


def _all_gather(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    groups = _even(op, run, place)
    return [gathered(_expanded(a, place, run), op.attributes["all_gather_dim"] + 1, groups, run) for a in args]


def _all_to_all(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    """Member r of a group receives the r-th piece of every member, put end to end."""
    groups = _even(op, run, place)
    split, concat = op.attributes["split_dimension"], op.attributes["concat_dimension"]
    count = op.attributes.get("split_count", groups.size)
    if count != groups.size:
        raise UnknownError(f"{count} pieces in groups of {groups.size}")
    results = []
    for a in args:
        a = _expanded(a, place, run)
        size = a.shape[split] // count
        # The piece for each rank, as if every device were of that rank; then the members' pieces side by side.
        if split != concat:
            whole = gathered(a, concat + 1, groups, run)
            results.append(pieces(compact(whole, run.maps), split + 1, groups.ranks, size, run))
            continue
        results.append(_exchanged(a, split + 1, groups, size, run))
    return results


def _exchanged(a: Blocks, axis: int, groups: Grouped, size: int, run: Run) -> Blocks:
    """all_to_all along one dimension: the pieces of that number of all members, put end to end."""
    whole = gathered(a, axis, groups, run)
    count = groups.size
    run.fits(count * count * size)
    starts = (np.arange(count)[:, None, None] * count + np.arange(count)[None, :, None]) * size
    where = (starts + np.arange(size)).transpose(1, 0, 2).reshape(count, -1)
    matrix = whole.classes[axis][where]
    row_of, column_of, table = rectangle(matrix)
    return assembled(whole, run.maps.intern(groups.ranks), [(axis, row_of, column_of, table)], run)


def _all_to_all_of_tuple(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    """HLO's form on a tuple: operand r goes to member r, and result n comes from member n."""
    groups = _even(op, run, place)
    if len(args) != groups.size:
        raise UnknownError(f"{len(args)} operands in groups of {groups.size}")
    classes, values = aligned([_expanded(a, place, run) for a in args], run.maps, run.fits)
    common = np.broadcast_shapes(*(v.shape for v in values))
    run.spend(math.prod(common) * len(values))
    stacked = np.stack([np.broadcast_to(v, common) for v in values])
    results = []
    for n in range(len(args)):
        sources = groups.members[groups.row_of, n]
        held = classes[0][sources] if common[0] > 1 else np.zeros_like(sources)
        keys = np.stack([groups.ranks, held], axis=1)
        first, which = unique_rows(keys)
        found = stacked[keys[first, 0], keys[first, 1]]
        results.append(Blocks((run.maps.intern(which), *classes[1:]), found))
    return results


def received(a: Blocks, sources: Array, run: Run) -> Blocks:
    """What each device receives from another; zeros where it receives nothing (-1)."""
    numbers = np.where(sources >= 0, a.classes[0][sources], len(a.values))
    if (sources >= 0).all():
        return with_map(a, 0, numbers, run.maps)
    nothing = zeros((1, *a.values.shape[1:]), a.values.dtype)
    longer = Blocks(a.classes, np.concatenate([a.values, nothing]))
    return with_map(longer, 0, numbers, run.maps)


def _collective_permute(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    sources = sources_of(op, place)
    return [received(_expanded(a, place, run), sources, run) for a in args]


def _collective_broadcast(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    if op.attributes.get("has_dynamic_root"):
        raise UnknownError("members that an operand says")
    sources = np.full(place.devices, -1, np.int64)
    groups = groups_of(op, run.maps, place, ordered=True)
    for column in groups.T:
        sources[column[column >= 0]] = groups[column >= 0, 0]
    return [received(_expanded(a, place, run), sources, run) for a in args]


RULES: dict[str, Rule] = {
    "partition_id": _id(False),
    "replica_id": _id(True),
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "mhlo.all_to_all": _all_to_all_of_tuple,
    "collective_permute": _collective_permute,
    "collective_broadcast": _collective_broadcast,
}
