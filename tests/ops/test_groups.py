"""Groups and permutes are worked out for all devices at once, by both engines, as the specification has each member."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from hlo_verify.evaluate import groups as evaluated
from hlo_verify.evaluate.maps import Maps
from hlo_verify.evaluate.state import Place
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.ops import groups as fitted
from hlo_verify.ops.values import Context, UnsupportedError
from hlo_verify.passes.prove.interpret import run
from hlo_verify.program.ir import Op
from hlo_verify.session import Session

NAMES = "all_reduce", "all_gather", "all_to_all", "collective_broadcast"


def as_specified(op: Op, partitions: int, replicas: int) -> list[list[int]]:
    """StableHLO, "Collective ops": cross_replica, cross_partition, cross_replica_and_partition, flattened ids."""
    rows = [[n for n in row if n >= 0] for row in np.asarray(op.attributes["replica_groups"]).tolist()]
    rows = [row for row in rows if row]
    if op.attributes["use_global_device_ids"]:
        return rows or [list(range(partitions * replicas))]
    if op.attributes["channel_id"] and op.name in ("all_to_all", "collective_broadcast"):
        return [[r * partitions + p for p in row] for r in range(replicas) for row in rows or [range(partitions)]]
    if op.attributes["channel_id"]:
        return [[r * partitions + p for r in row for p in range(partitions)] for row in rows or [range(replicas)]]
    return [[r * partitions + p for r in row] for row in rows or [range(replicas)] for p in range(partitions)]


def drawn(generator: random.Random) -> tuple[Op, int, int]:
    """A collective in some mode, its groups of any sizes and some of them wrong, on a few partitions and replicas."""
    partitions, replicas = generator.randint(1, 4), generator.randint(1, 4)
    name, channel = generator.choice(NAMES), generator.randint(0, 1)
    is_global = name in ("all_reduce", "all_gather") and channel == 1 and generator.random() < 0.5
    by_partition = channel and name in ("all_to_all", "collective_broadcast")
    count = partitions * replicas if is_global else partitions if by_partition else replicas
    ids = list(range(count))
    generator.shuffle(ids)
    if generator.random() < 0.2:
        ids[generator.randrange(count)] = generator.randint(0, count)  # a device twice, or one too many
    width = generator.randint(1, count)
    rows = [ids[k : k + width] for k in range(0, count, width)]
    rows = [row + [-1] * (width - len(row)) for row in rows]
    groups = np.array(rows, np.int64) if generator.random() < 0.8 else np.empty((0, 0), np.int64)
    attributes = {"replica_groups": groups, "channel_id": channel, "use_global_device_ids": is_global}
    return Op(name, (), (), (), attributes), partitions, replicas


def members(groups: Any) -> list[list[int]]:
    return sorted([n for n in row if n >= 0] for row in groups.tolist())


@pytest.mark.parametrize("seed", range(400))
def test_groups(seed: int) -> None:
    op, partitions, replicas = drawn(random.Random(seed))
    wanted = sorted(as_specified(op, partitions, replicas))
    flat = [n for row in wanted for n in row]
    is_right = len(set(flat)) == len(flat) and all(0 <= n < partitions * replicas for n in flat)
    place = Place(partitions * replicas, partitions, replicas)
    with Session().on():
        context = Context(None, partitions, replicas, run)
        if not is_right:
            with pytest.raises(UnsupportedError):
                fitted.process_groups(op, context, ordered=False)
            with pytest.raises(UnknownError):
                evaluated.groups_of(op, Maps(), place, ordered=False)
            return
        assert members(fitted.process_groups(op, context, ordered=False)) == wanted
        assert members(evaluated.groups_of(op, Maps(), place, ordered=False)) == wanted


@pytest.mark.parametrize("seed", range(200))
def test_permutes(seed: int) -> None:
    generator = random.Random(seed)
    partitions, replicas, channel = generator.randint(1, 4), generator.randint(1, 4), generator.randint(0, 1)
    count = partitions if channel else replicas
    targets = generator.sample(range(count), generator.randint(0, count))
    pairs = [(generator.randint(0, count - 1), target) for target in targets]
    if pairs and generator.random() < 0.2:
        pairs.append(generator.choice([pairs[0], (0, count), (count, 0)]))
    wrong = len({b for _, b in pairs}) < len(pairs) or any(n >= count for pair in pairs for n in pair)
    attributes = {"source_target_pairs": np.array(pairs, np.int64).reshape(-1, 2), "channel_id": channel}
    op, place = Op("collective_permute", (), (), (), attributes), Place(partitions * replicas, partitions, replicas)
    with Session().on():
        context = Context(None, partitions, replicas, run)
        if wrong:
            with pytest.raises(UnsupportedError):
                fitted.sources_of(op, context)
            with pytest.raises(UnknownError):
                evaluated.sources_of(op, place)
            return
        wanted = np.full(partitions * replicas, -1)
        for a, b in pairs:
            for other in range(replicas if channel else partitions):
                own = [other * partitions + n if channel else n * partitions + other for n in (a, b)]
                wanted[own[1]] = own[0]
        assert fitted.sources_of(op, context).tolist() == wanted.tolist()
        assert evaluated.sources_of(op, place).tolist() == wanted.tolist()


def test_groups_across_axes_that_are_not_manual_are_refused() -> None:
    automatic = np.array([0, 1, 0, 1])
    for rows, is_right in (([[0, 2], [1, 3]], True), ([[0, 1], [2, 3]], False), ([[0, 2, 1], [3, -1, -1]], False)):
        attributes = {"replica_groups": np.array(rows), "channel_id": 1, "use_global_device_ids": True}
        op = Op("all_reduce", (), (), (), attributes)
        with Session().on():
            context = Context(None, 4, 1, run, automatic=automatic)
            place = Place(4, 4, 1, automatic=automatic)
            if is_right:
                assert members(fitted.process_groups(op, context)) == sorted(rows)
                assert members(evaluated.groups_of(op, Maps(), place, ordered=True)) == sorted(rows)
                continue
            with pytest.raises(UnsupportedError, match="not manual"):
                fitted.process_groups(op, context)
            with pytest.raises(UnknownError, match="not manual"):
                evaluated.groups_of(op, Maps(), place, ordered=True)


def test_groups_are_read_once_for_each_attribute() -> None:
    groups = np.arange(8).reshape(2, 4)
    attributes = {"replica_groups": groups, "channel_id": 1, "use_global_device_ids": True}
    with Session().on():
        context = Context(None, 8, 1, run)
        ops = [Op(name, (), (), (), dict(attributes)) for name in ("all_reduce", "all_reduce")]
        first, second = (fitted.process_groups(op, context) for op in ops)
        assert first is second
        assert fitted.ascending(first) is fitted.ascending(second)
