"""Slices that are equal are one class, and arrays that are worked on a piece at a time are whole."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.evaluate import dense, of_dense
from hlo_verify.evaluate.blocks import compact
from hlo_verify.evaluate.maps import PIECE, Maps, in_pieces


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.uint16, np.int32, np.int64, np.float64])
@pytest.mark.parametrize("length", [3, 64, 67, 200])
def test_equal_slices_are_one_class_and_others_are_not(kind: type, length: int) -> None:
    generator = np.random.default_rng(length)
    rows = generator.integers(0, 2, (4, length)).astype(kind)
    rows[1] = rows[0]
    rows[1, -1] = not rows[0, -1]  # only the last element tells these two apart
    array = rows[generator.integers(0, 4, 40)]
    found = compact(of_dense(array), Maps())
    assert found.values.shape[1] == len(np.unique(array, axis=0))
    assert np.array_equal(dense(found, 0), array)


@pytest.mark.parametrize("shapes", [((3, 5),), ((700, 1), (1, 90)), ((2, 1, 40_000), (1, 3, 1)), ((PIECE + 1,),)])
def test_pieces_are_the_whole_in_order(shapes: tuple[tuple[int, ...], ...]) -> None:
    arrays = [np.random.default_rng(n).normal(size=shape) for n, shape in enumerate(shapes)]
    whole = sum(arrays)
    found = []
    for start, parts in in_pieces(*arrays):
        piece = np.asarray(sum(parts))
        assert piece.size <= PIECE
        assert np.array_equal(piece, whole[tuple(slice(s, s + n) for s, n in zip(start, piece.shape, strict=True))])
        found.append(piece.reshape(-1))
    assert np.array_equal(np.concatenate(found), whole.reshape(-1))
