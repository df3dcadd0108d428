"""How many replicas and partitions a module runs on, where the module does not say.

A serialized HloModuleProto does not. Shardings, meshes, replica groups and tables that are
indexed by the partition's number each tell it exactly; source-target pairs give a lower
bound. They must agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program.ir import Function, Name, Op
from hlo_verify.program.mesh import LIMIT, Mesh
from hlo_verify.program.op_families import BY_PARTITION, COLLECTIVES
from hlo_verify.program.sharding import device_counts


@dataclass(frozen=True, slots=True)
class Evidence:
    """`count` replicas, partitions or processes (both together), or at least that many."""

    of: str
    count: int
    source: str
    exact: bool = True


def infer_devices(
    main: Function,
    sharding_texts: frozenset[str],
    meshes: tuple[Mesh, ...],
    replicas: int | None,
    devices: int | None = None,
) -> tuple[int | None, int]:
    """The number of partitions (None where nothing tells it) and of replicas.

    `replicas` is what the module says, `devices` (partitions times replicas) what the user says, where
    they do. Raises `InputError` where what the module holds does not agree.
    """
    ops = list(_from_ops(main))
    if replicas is None:
        replicas = _agree([e for e in ops if e.of == "replicas"]) or 1
    if devices is not None and devices > LIMIT:
        raise InputError(f"{devices} devices; {LIMIT} at most are understood", Input.TOO_MANY_DEVICES)
    if devices is not None:
        return devices // replicas, replicas
    evidence = [*_from_shardings(sharding_texts), *_from_meshes(meshes), *ops]
    processes = [e for e in evidence if e.of == "processes"]
    for e in processes:
        if e.count % replicas and e.exact:
            raise InputError(
                f"{e.source} is for {e.count} devices, which {replicas} replicas do not divide", Input.DEVICES_UNKNOWN
            )
    partitions = [Evidence("partitions", -(-e.count // replicas), e.source, e.exact) for e in processes]
    count = _agree([e for e in evidence if e.of == "partitions"] + partitions)
    return (1 if count is None and replicas > 1 else count), replicas


def _agree(evidence: list[Evidence]) -> int | None:
    exact = [e for e in evidence if e.exact]
    if not exact:
        return None
    first = exact[0]
    for other in evidence:
        if other.count > first.count or (other.exact and other.count != first.count):
            least = "" if other.exact else "at least "
            raise InputError(
                f"the module does not say how many {first.of} it has, and what it holds does not agree: "
                f"{first.source} is for {first.count}, {other.source} for {least}{other.count}; "
                "pass the number of devices (--devices N)",
                Input.DEVICES_UNKNOWN,
            )
    return first.count


def _from_shardings(texts: frozenset[str]) -> Iterator[Evidence]:
    for text in sorted(texts):
        for count in device_counts(text):
            yield Evidence("partitions", count, f"the sharding {text}")


def _from_meshes(meshes: tuple[Mesh, ...]) -> Iterator[Evidence]:
    for mesh in meshes:
        if mesh.axes:
            yield Evidence("partitions", mesh.size, f"the mesh {mesh}")


def _from_ops(function: Function) -> Iterator[Evidence]:
    """From a body and those inside it."""
    constants: dict[Name, tuple[int, ...]] = {}
    partition_ids: set[Name] = set()
    for op in function.ops:
        if op.name == "constant":
            constants[op.results[0]] = op.types[0].shape
        elif op.name == "partition_id":
            partition_ids.add(op.results[0])
        elif op.name == "dynamic_slice":
            yield from _from_table(op, constants, partition_ids)
        elif op.name in COLLECTIVES:
            yield from _from_collective(op)
        for region in op.regions:
            yield from _from_ops(region)


def _from_table(op: Op, constants: dict[Name, tuple[int, ...]], partition_ids: set[Name]) -> Iterator[Evidence]:
    table, *starts = op.operands
    for size, taken, start in zip(constants.get(table, ()), op.attributes["slice_sizes"], starts, strict=False):
        if start in partition_ids and taken == 1:
            yield Evidence("partitions", size, f"a table of {size} entries that partition_id indexes ({op.location})")


def _from_collective(op: Op) -> Iterator[Evidence]:
    """By StableHLO's rules for what the ids in replica groups number."""
    pairs = "source_target_pairs" in op.attributes
    ids = np.unique(op.attributes["source_target_pairs" if pairs else "replica_groups"])
    ids = ids[ids >= 0]
    if not ids.size:
        return
    if op.attributes.get("use_global_device_ids"):
        of = "processes"
    elif op.attributes.get("channel_id", 0) > 0 and op.name in BY_PARTITION:
        of = "partitions"
    else:
        of = "replicas"
    exact = not pairs and op.name != "collective_broadcast" and ids.size == ids[-1] + 1
    yield Evidence(of, int(ids[-1]) + 1, f"the {op.name} at {op.location}", exact)
