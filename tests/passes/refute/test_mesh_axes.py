"""The axes of a mesh, told from how modules place their tensors, and the groups of devices along them."""

from __future__ import annotations

import numpy as np

from hlo_verify.limits import Limits
from hlo_verify.passes.load.load import load
from hlo_verify.passes.refute.mesh_axes import Axis, axes_of, groups_along
from hlo_verify.program.pair import pair_of
from hlo_verify.session import Session
from tests.support.pairs import LOGICAL, PARTIAL


def test_an_axis_without_a_name_is_told_from_the_shardings() -> None:
    pair = pair_of(load(LOGICAL), load(PARTIAL))
    assert axes_of(pair) == [Axis("all 4 devices", 1, 4)]


def test_groups_are_devices_that_differ_along_the_axes_alone() -> None:
    inner, outer = Axis("inner", 1, 2), Axis("outer", 2, 3)
    groups = dict(groups_along([inner, outer], 6))
    assert groups["inner"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert groups["outer"].tolist() == [[0, 2, 4], [1, 3, 5]]
    assert groups["inner and outer"].tolist() == [[0, 1, 2, 3, 4, 5]]


def test_so_many_axes_are_taken_together() -> None:
    axes = [Axis("inner", 1, 2), Axis("middle", 2, 2), Axis("outer", 4, 2)]
    session = Session(Limits(repair_axes=2))
    with session.on():
        assert len(groups_along(axes, 8)) == 6
    assert session.spent().limits == ("repair_axes",)
    assert len(groups_along(axes, 8)) == 7


def test_a_turn_sends_every_device_to_the_next_along_the_axis_and_back() -> None:
    axis = Axis("outer", 2, 3)
    there, back = axis.rotation(6, 1), axis.rotation(6, -1)
    assert there.tolist() == [[0, 2], [1, 3], [2, 4], [3, 5], [4, 0], [5, 1]]
    assert np.array_equal(back[there[:, 1], 1], there[:, 0])


def test_axes_of_two_meshes_are_not_taken_together() -> None:
    text = """
module attributes {{mhlo.num_partitions = {devices} : i32}} {{
  func.func @main(%x: tensor<{x}xf32> {{mhlo.sharding = "{{devices=[2,3]<=[6] last_tile_dim_replicate}}"}},
                  %y: tensor<{y}xf32> {{mhlo.sharding = "{{devices=[3,2]<=[6] last_tile_dim_replicate}}"}})
      -> (tensor<{x}xf32> {{mhlo.sharding = "{{devices=[2,3]<=[6] last_tile_dim_replicate}}"}}) {{
    return %x : tensor<{x}xf32>
  }}
}}"""
    pair = pair_of(load(text.format(devices=6, x=12, y=12)), load(text.format(devices=6, x=6, y=4)))
    axes = axes_of(pair)
    assert [(axis.low, axis.size) for axis in axes] == [(1, 2), (1, 3), (2, 3), (3, 2)]
    groups = {name: rows.tolist() for name, rows in groups_along(axes, 6)}
    assert len(groups) == 6
    assert sorted(map(sorted, groups["groups of 2 neighbouring devices and groups of 3 devices 2 apart"])) == [
        [*range(6)]
    ]
    assert groups["groups of 3 neighbouring devices"] == [[0, 1, 2], [3, 4, 5]]
