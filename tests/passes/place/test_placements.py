"""How devices may hold a tensor, by its shape and that of what each has."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.passes.place.placements import lies, paddings, placed, placements, sums, with_addends
from hlo_verify.program.sharding import Sharding, replicated, unreduced


@pytest.mark.parametrize(
    ("whole", "part", "devices", "tiles", "first"),
    [
        ((8, 4), (8, 4), 2, (1, 1), [[0, 0], [0, 0]]),
        ((8, 4), (8, 2), 2, (1, 2), [[0, 0], [0, 1]]),
        ((7,), (4,), 2, (2,), [[0], [1]]),
        ((8,), (4,), 4, (2,), [[0], [1], [0], [1]]),
        ((8, 8), (4, 4), 4, (2, 2), [[0, 0], [0, 1], [1, 0], [1, 1]]),
        ((8,), (2,), 6, (6,), [[0], [1], [2], [3], [4], [5]]),
    ],
)
def test_placements(
    whole: tuple[int, ...], part: tuple[int, ...], devices: int, tiles: tuple[int, ...], first: list[list[int]]
) -> None:
    found = list(placements(whole, part, devices))
    assert {each.tiles for each in found} == {tiles} and found[0].coordinates.tolist() == first


@pytest.mark.parametrize(
    ("whole", "part", "devices"),
    [((8,), (3,), 2), ((8,), (16,), 2), ((8, 8), (4, 4), 2), ((8,), (8, 1), 2), ((8,), (0,), 2)],
)
def test_shapes_that_devices_cannot_hold(whole: tuple[int, ...], part: tuple[int, ...], devices: int) -> None:
    assert list(placements(whole, part, devices)) == []


def test_copies_of_a_shard_are_far_apart_or_neighbours() -> None:
    found = [each.coordinates[:, 0].tolist() for each in placements((8,), (4,), 4)]
    assert found == [[0, 1, 0, 1], [0, 0, 1, 1]]
    for each in placements((8,), (4,), 4):
        assert sorted(zip(each.coordinates[:, 0].tolist(), each.others.tolist(), strict=True)) == [
            (0, 0), (0, 1), (1, 0), (1, 1),
        ]  # fmt: skip


def test_those_that_communicate_hold_different_shards() -> None:
    groups = np.array([[3, 0], [1, 2]])
    first, *others = placements((8,), (4,), 4, [groups, np.array([[0, 1, 2, 3]])])
    assert first.coordinates[:, 0].tolist() == [1, 0, 1, 0] and first.others.tolist() == [0, 1, 1, 0]
    assert all(each.coordinates.tolist() != first.coordinates.tolist() for each in others)


def test_in_words() -> None:
    (even,) = placements((8, 3), (4, 3), 2)
    (padded,) = placements((7, 3), (4, 3), 2)
    near, far = placements((8,), (4,), 4)
    assert [lies(*each) for each in ((even, (8, 3)), (padded, (7, 3)), (near, (8,)))] == [
        "dimension 0 in 2",
        "dimension 0 in 2, the last padded",
        "dimension 0 in 2, 2 copies of each shard",
    ]
    assert "in another order" in lies(far, (8,))
    assert lies(unreduced(1, 4), (8,)) == "the sum of what devices hold (4 addends)"


def test_a_verdicts_line() -> None:
    (split,) = placements((7, 3), (4, 3), 2)
    near, far = placements((8,), (4,), 4)
    (over_two,) = sums(near)
    assert [placed(*each) for each in ((split, (7, 3)), (near, (8,)), (far, (8,)), (over_two, (8,)))] == [
        "split along dimension 0 over 2 devices, the last padded",
        "split along dimension 0 in 2 over 4 devices, 2 copies of each",
        "split along dimension 0 in 2 over 4 devices, 2 copies of each, devices in another order",
        "split along dimension 0 in 2 over 4 devices, the sum of addends on 2 devices",
    ]


def test_copies_may_be_addends_over_all_devices_or_those_that_communicate() -> None:
    (whole,) = placements((8,), (8,), 4)
    found = [each.numbers.tolist() for each in sums(whole, [np.array([[0, 2], [1, 3]])])]
    assert found == [[0, 1, 2, 3], [0, 0, 1, 1]]
    (split,) = placements((8,), (2,), 4)
    assert list(sums(split, [np.array([[0, 2], [1, 3]])])) == [], "every device holds a shard of its own"


@pytest.mark.parametrize(
    ("whole", "part", "devices", "holders"),
    [
        ((4,), (1,), 8, [[0, 1, 2, 3], [0, 2, 4, 6]]),
        ((3, 5), (1, 5), 4, [[0, 1, 2]]),
        ((7,), (4,), 2, [[0, 1]]),
        ((8,), (4,), 2, []),
        ((8,), (8,), 2, []),
        ((8, 8), (4, 4), 8, []),
    ],
)
def test_zeros_beside_shards(
    whole: tuple[int, ...], part: tuple[int, ...], devices: int, holders: list[list[int]]
) -> None:
    assert [each.holders for each in paddings(whole, part, devices)] == holders


def test_copies_of_addends_are_numbered_in_one_go() -> None:
    """On 100,000 devices, each compared with all before it, this had no end."""
    generator = np.random.default_rng(3)
    for devices in (1, 2, 7, 40):
        coordinates, addends = generator.integers(0, 3, (devices, 1)), generator.integers(0, 2, devices)
        rows = np.concatenate((coordinates, addends[:, None]), axis=1)
        found = with_addends(Sharding((3,), coordinates, np.zeros(devices, np.int64)), addends).others
        assert found.tolist() == [sum((rows[:d] == rows[d]).all(axis=1)) for d in range(devices)]
    many = with_addends(replicated(1, 100_000), np.arange(100_000) % 7)
    assert many.others.tolist()[-7:] == [n // 7 for n in range(100_000 - 7, 100_000)]
