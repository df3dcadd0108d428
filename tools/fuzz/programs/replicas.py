"""The program of some devices as one of replicas, or of replicas and partitions: device r P + p is partition p of
replica r.

StableHLO numbers what communicates in four ways, by whether there is a channel and whether devices' numbers are global.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tools.fuzz.programs.program import Block, Builder, Function, Kind, Node

Groups = list[list[int]]
Spelling = tuple[Groups, bool, bool]
"""Groups (or pairs), whether there is a channel, and whether numbers are of devices."""

NUMBER = Kind((), "ui32")


def as_replicas(function: Function, replicas: int, devices: int, rng: random.Random) -> Function | None:
    """The program so written; None where something that communicates cannot be."""
    found, partitions = function.copy(), devices // replicas
    for block in list(found.body.blocks()):
        for node in list(block.nodes):
            if node.op == "partition_id":
                at = block.nodes.index(node)
                block.nodes[at : at + 1] = _number(found, node, replicas, partitions)
            key = "pairs" if node.op == "collective_permute" else "groups"
            if key not in node.attributes:
                continue
            ways = list(_spellings(node, node.attributes[key], replicas, partitions))
            if not ways:
                return None
            rows, has_channel, is_global = rng.choice(ways)
            node.attributes |= {key: rows, "channel": has_channel, "global": is_global}
    return found


def _number(function: Function, node: Node, replicas: int, partitions: int) -> list[Node]:
    """A device's number."""
    if partitions == 1:
        return [Node("replica_id", (), node.outputs)]
    if replicas == 1:
        return [node]
    builder = Builder(function, Block(()))
    replica, partition = (builder.op(name, (), NUMBER) for name in ("replica_id", "partition_id"))
    first = builder.same("multiply", replica, builder.like(partitions, replica))
    builder.same("add", first, partition)
    builder.block.nodes[-1].outputs = node.outputs
    return builder.block.nodes


def _spellings(node: Node, rows: Groups, replicas: int, partitions: int) -> Iterator[Spelling]:
    is_pairs = node.op == "collective_permute"
    if node.op in ("all_reduce", "all_gather", "reduce_scatter"):
        yield rows, True, True
    by_replica = _same_for_all(rows, lambda d: divmod(d, partitions), partitions)
    if by_replica is not None:
        yield by_replica, False, False
    by_partition = _same_for_all(rows, lambda d: divmod(d, partitions)[::-1], replicas)
    if by_partition is not None and (is_pairs or node.op in ("all_to_all", "collective_broadcast")):
        yield by_partition, True, False
    together = _whole_replicas(rows, partitions)
    if together is not None and node.op == "all_reduce":
        yield together, True, False


def _same_for_all(rows: Groups, split: object, count: int) -> Groups | None:
    """The rows in numbers of replicas, if they are the same for every partition; or the other way round."""
    found: dict[int, Groups] = {other: [] for other in range(count)}
    for row in rows:
        numbers = [split(device) for device in row]  # type: ignore[operator]
        if len({other for _, other in numbers}) != 1:
            return None
        found[numbers[0][1]].append([number for number, _ in numbers])
    first = found[0]
    return first if all(sorted(each) == sorted(first) for each in found.values()) else None


def _whole_replicas(rows: Groups, partitions: int) -> Groups | None:
    """The replicas of each row, if it has all of their partitions."""
    found = []
    for row in rows:
        numbers = sorted({device // partitions for device in row})
        if len(numbers) * partitions != len(row):
            return None
        found.append(numbers)
    return found


def choices(devices: int) -> Sequence[int]:
    """How many replicas there may be."""
    return [count for count in range(2, devices + 1) if devices % count == 0]
