"""Collectives on up to 8 devices, against a transcription of StableHLO's specification with numpy.

Arrays have the devices as their first dimension, numbered replica by replica.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from hlo_verify.program.element_types import DTYPES
from tests.ops.cases.drawing import Case, Draw, cases, shapes, values
from tests.ops.cases.reductions import REDUCERS, reducer
from tests.support.modules import Program, Ref

Array = npt.NDArray[Any]
Groups = list[list[int]]

MESHES = ((2, 1), (4, 1), (6, 1), (8, 1), (4, 2), (2, 2), (2, 4), (1, 4), (1, 1), (3, 2))
"""Partitions and replicas."""

_ALL_MODES = ("cross_replica", "cross_replica_and_partition", "flattened_ids")
_TWO_MODES = ("cross_replica", "cross_partition")


def split(draw: Draw, ids: int) -> Groups:
    """Groups of one size that cover all ids: consecutive, strided, or in any order."""
    size = draw(st.sampled_from([n for n in range(1, ids + 1) if ids % n == 0]))
    kind = draw(st.sampled_from(("consecutive", "strided", "any")))
    order = list(draw(st.permutations(range(ids)))) if kind == "any" else list(range(ids))
    table = np.array(order).reshape(-1, size) if kind != "strided" else np.array(order).reshape(size, -1).T
    return [[int(n) for n in row] for row in table]


def processes(groups: Groups, mode: str, partitions: int, replicas: int) -> Groups:
    """The specification's process groups."""
    if mode == "flattened_ids":
        return groups
    if mode == "cross_replica":
        return [[r * partitions + p for r in row] for row in groups for p in range(partitions)]
    if mode == "cross_partition":
        return [[r * partitions + p for p in row] for row in groups for r in range(replicas)]
    return [[r * partitions + p for p in range(partitions) for r in row] for row in groups]


class Setting:
    """A mesh, groups in one of the modes, and the attributes that say so."""

    def __init__(self, draw: Draw, modes: Sequence[str]) -> None:
        self.partitions, self.replicas = draw(st.sampled_from(MESHES))
        self.devices = self.partitions * self.replicas
        self.mode = draw(st.sampled_from(modes))
        if self.mode == "flattened_ids":
            ids = self.devices
        else:
            ids = self.partitions if self.mode == "cross_partition" else self.replicas
        self.rows = split(draw, ids)
        self.groups = processes(self.rows, self.mode, self.partitions, self.replicas)
        self.may_refuse = self.mode == "cross_replica_and_partition" and self.partitions > 1 and len(self.rows[0]) > 1

    @property
    def size(self) -> int:
        return len(self.groups[0])

    def attributes(self, rows: Groups | None = None) -> str:
        rows = self.rows if rows is None else rows
        text = f"replica_groups = dense<{rows}> : tensor<{len(rows)}x{len(rows[0])}xi64>"
        if self.mode != "cross_replica":
            text += ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>"
        return text + (", use_global_device_ids" if self.mode == "flattened_ids" else "")


def shards(draw: Draw, program: Program, setting: Setting, shape: Sequence[int], dtype: str) -> tuple[Ref, Array]:
    """An operand with another value on every device, and what it is there; sometimes it shows its partition."""
    array = values(draw, (setting.devices, *shape), dtype, (-4, 4) if dtype == "f32" else None)
    x = program.argument(array[0])
    program.inputs[-1] = array
    program.devices = True
    if dtype == "i1" or draw(st.booleans()):
        return x, array
    kind = [(x.shape, dtype)]
    (number,) = program.op("partition_id", [], [((), "ui32")])
    (scalar,) = program.op("convert", [number], [((), dtype)])
    (spread,) = program.op("broadcast_in_dim", [scalar], kind, "broadcast_dimensions = array<i64>")
    (scaled,) = program.op("multiply", [x, spread], kind)
    ids = (np.arange(setting.devices) % setting.partitions).reshape(-1, *[1] * len(shape))
    with np.errstate(over="ignore"):
        return scaled, (array * ids.astype(array.dtype)).astype(array.dtype)


def finish(program: Program, setting: Setting, results: Sequence[Ref], expected: Sequence[Array], **more: Any) -> Case:
    return Case(
        program.returns(results),
        list(expected),
        partitions=setting.partitions,
        replicas=setting.replicas,
        may_refuse=more.get("may_refuse", setting.may_refuse),
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.logical_and,
    "or": np.logical_or,
}


def reduced(array: Array, groups: Groups, name: str) -> Array:
    """Every device's group reduced."""
    result = np.empty_like(array)
    with np.errstate(over="ignore"):
        for group in groups:
            total = array[group[0]]
            for member in group[1:]:
                total = FUNCTIONS[name](total, array[member]).astype(array.dtype)
            result[group] = total
    return result


def reduction(draw: Draw) -> tuple[str, str]:
    dtype = draw(st.sampled_from(("f32", "i8", "ui8", "i1")))
    return (dtype, draw(st.sampled_from(("and", "or")))) if dtype == "i1" else (dtype, draw(st.sampled_from(REDUCERS)))


@cases
def all_reduce(draw: Draw) -> Case:
    program, setting = Program(), Setting(draw, _ALL_MODES)
    dtype, name = reduction(draw)
    operands = [shards(draw, program, setting, draw(shapes(most=2)), dtype) for _ in range(draw(st.integers(1, 2)))]
    kinds = [(x.shape, dtype) for x, _ in operands]
    results = program.op("all_reduce", [x for x, _ in operands], kinds, setting.attributes(), reducer(name, dtype))
    expected = [reduced(array, setting.groups, name) for _, array in operands]
    return finish(program, setting, results, expected, may_refuse=False)


@cases
def reduce_scatter(draw: Draw) -> Case:
    program, setting = Program(), Setting(draw, _ALL_MODES)
    dtype, name = reduction(draw)
    shape = list(draw(shapes(least=1, most=2, high=2)))
    k = draw(st.integers(0, len(shape) - 1))
    result = list(shape)
    shape[k] *= setting.size
    x, array = shards(draw, program, setting, shape, dtype)
    attributes = f"{setting.attributes()}, scatter_dimension = {k} : i64"
    results = program.op("reduce_scatter", [x], [(result, dtype)], attributes, reducer(name, dtype))
    whole = reduced(array, setting.groups, name)
    expected = np.empty((setting.devices, *result), dtype=array.dtype)
    for group in setting.groups:
        for rank, member in enumerate(group):
            expected[member] = np.split(whole[member], setting.size, axis=k)[rank]
    return finish(program, setting, results, [expected])


@cases
def all_gather(draw: Draw) -> Case:
    program, setting = Program(), Setting(draw, _ALL_MODES)
    operands = []
    shape = draw(shapes(least=1, most=2, high=2))
    k = draw(st.integers(0, len(shape) - 1))
    for _ in range(draw(st.integers(1, 2))):
        operands.append(shards(draw, program, setting, shape, draw(st.sampled_from(("f32", "i8")))))
    kinds = [((*shape[:k], shape[k] * setting.size, *shape[k + 1 :]), x.dtype) for x, _ in operands]
    attributes = f"{setting.attributes()}, all_gather_dim = {k} : i64"
    results = program.op("all_gather", [x for x, _ in operands], kinds, attributes)
    expected = []
    for _, array in operands:
        rows = {m: np.concatenate([array[n] for n in group], axis=k) for group in setting.groups for m in group}
        expected.append(np.stack([rows[m] for m in range(setting.devices)]))
    return finish(program, setting, results, expected)


@cases
def all_to_all(draw: Draw) -> Case:
    program, setting = Program(), Setting(draw, _TWO_MODES)
    shape = list(draw(shapes(least=1, most=2, high=2)))
    split_dim, concat = (draw(st.integers(0, len(shape) - 1)) for _ in range(2))
    shape[split_dim] *= setting.size
    operands = [
        shards(draw, program, setting, shape, draw(st.sampled_from(("f32", "i8"))))
        for _ in range(draw(st.integers(1, 2)))
    ]
    result = list(shape)
    result[split_dim] //= setting.size
    result[concat] *= setting.size
    attributes = (
        f"{setting.attributes()}, split_dimension = {split_dim} : i64, concat_dimension = {concat} : i64, "
        f"split_count = {setting.size} : i64"
    )
    kinds = [(result, x.dtype) for x, _ in operands]
    results = program.op("all_to_all", [x for x, _ in operands], kinds, attributes)
    expected = []
    for _, array in operands:
        exchanged = np.empty((setting.devices, *result), dtype=array.dtype)
        for group in setting.groups:
            for rank, member in enumerate(group):
                pieces = [np.split(array[n], setting.size, axis=split_dim)[rank] for n in group]
                exchanged[member] = np.concatenate(pieces, axis=concat)
        expected.append(exchanged)
    return finish(program, setting, results, expected)


@cases
def all_to_all_of_tuple(draw: Draw) -> Case:
    program, setting = Program(), Setting(draw, _TWO_MODES)
    shape = draw(shapes(most=2))
    operands = [shards(draw, program, setting, shape, "f32") for _ in range(setting.size)]
    attributes = setting.attributes().replace("#stablehlo.channel", "#mhlo.channel")
    results = program.op("mhlo.all_to_all", [x for x, _ in operands], [(shape, "f32")] * setting.size, attributes)
    expected = [np.empty((setting.devices, *shape), dtype=np.float32) for _ in operands]
    for group in setting.groups:
        for rank, member in enumerate(group):
            for n, source in enumerate(group):
                expected[n][member] = operands[rank][1][source]
    return finish(program, setting, results, expected)


@cases
def collective_permute(draw: Draw) -> Case:
    program, setting = Program(), Setting(draw, _TWO_MODES)
    ids = setting.partitions if setting.mode == "cross_partition" else setting.replicas
    kind = draw(st.sampled_from(("shift", "any", "some")))
    if kind == "shift":
        by = draw(st.integers(0, ids))
        pairs = [(n, (n + by) % ids) for n in range(ids)]
        if draw(st.booleans()):
            pairs = pairs[: draw(st.integers(0, ids))]
    else:
        targets = draw(st.permutations(range(ids)))
        pairs = list(zip(range(ids), targets, strict=True))
        if kind == "some":
            pairs = pairs[: draw(st.integers(0, ids))]
    x, array = shards(draw, program, setting, draw(shapes(most=2)), draw(st.sampled_from(("f32", "i8"))))
    rows = [list(pair) for pair in pairs]
    attributes = f"source_target_pairs = dense<{rows if rows else ''}> : tensor<{len(rows)}x2xi64>"
    if setting.mode == "cross_partition":
        attributes += ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>"
    results = program.op("collective_permute", [x], [(x.shape, x.dtype)], attributes)
    expected = np.zeros_like(array)
    p, q = setting.partitions, setting.replicas
    for source, target in pairs:
        for other in range(q if setting.mode == "cross_partition" else p):
            here, there = (
                (other * p + source, other * p + target)
                if setting.mode == "cross_partition"
                else (source * p + other, target * p + other)
            )
            expected[there] = array[here]
    return finish(program, setting, results, [expected])


@cases
def collective_broadcast(draw: Draw) -> Case:
    program, setting = Program(), Setting(draw, _TWO_MODES)
    rows = setting.rows[: draw(st.integers(1, len(setting.rows)))]
    x, array = shards(draw, program, setting, draw(shapes(most=2)), draw(st.sampled_from(("f32", "i8"))))
    results = program.op("collective_broadcast", [x], [(x.shape, x.dtype)], setting.attributes(rows))
    expected = np.zeros_like(array)
    for group in processes(rows, setting.mode, setting.partitions, setting.replicas):
        expected[group] = array[group[0]]
    return finish(program, setting, results, [expected])


@cases
def identifier(draw: Draw, name: str) -> Case:
    program, setting = Program(), Setting(draw, _TWO_MODES)
    ids = np.arange(setting.devices)
    expected = ids % setting.partitions if name == "partition_id" else ids // setting.partitions
    results = program.op(name, [], [((), "ui32")])
    return finish(program, setting, results, [expected.astype(DTYPES["ui32"])])


CASES: dict[str, st.SearchStrategy[Case]] = {
    "all_reduce": all_reduce(),
    "reduce_scatter": reduce_scatter(),
    "all_gather": all_gather(),
    "all_to_all": all_to_all(),
    "mhlo.all_to_all": all_to_all_of_tuple(),
    "collective_permute": collective_permute(),
    "collective_broadcast": collective_broadcast(),
    "partition_id": identifier("partition_id"),
    "replica_id": identifier("replica_id"),
}
