"""Meshes as JAX lays them over topologies: sums, gathers and rings along their axes are proved on all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt
import pytest
from jax.experimental import mesh_utils

from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.prove import prove_at_once
from hlo_verify.report import Report, Verdict
from tests.passes.prove.test_device_order import ADD, CHANNEL
from tests.support.modules import literal, tensor_type

Numbers = npt.NDArray[np.int64]
CORES = {"TPU v2": 2, "TPU v3": 2, "TPU7x": 2}
"""Kinds of chips whose cores are devices of their own."""


@dataclass(frozen=True)
class Device:
    """What `mesh_utils` asks of a device."""

    id: int
    coords: tuple[int, int, int]
    core_on_chip: int
    device_kind: str
    platform: str = "tpu"
    process_index: int = 0
    slice_index: int = 0


def topology(kind: str, bounds: str, slice_index: int = 0) -> list[Device]:
    """The devices of a topology, host by host, as `topologies.get_topology_desc` has them: 550 of libtpu's (0.0.52)
    have been compared."""
    x, y, z = (*map(int, bounds.split("x")), 1, 1)[:3]
    cores = CORES.get(kind, 1)
    chips = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    chips.sort(key=lambda c: (c[2], c[1] // 2, c[0] // 2))  # hosts of 2 by 2
    first = slice_index * x * y * z * cores
    return [
        Device(first + (i + x * (j + y * k)) * cores + core, (i, j, k), core, kind, slice_index=slice_index)
        for i, j, k in chips
        for core in range(cores)
    ]


def laid(kind: str, bounds: str, shape: Sequence[int], slices: int = 1) -> Numbers:
    """The numbers of the devices at each place of the mesh; of several slices, in its first axis."""
    devices = [device for k in range(slices) for device in topology(kind, bounds, k)]
    inner, outer = (shape[0] // slices, *shape[1:]), (slices, *[1] * (len(shape) - 1))
    mesh = mesh_utils.create_hybrid_device_mesh(inner, outer, devices, allow_split_physical_axes=True)
    return np.vectorize(lambda device: device.id, otypes=[np.int64])(mesh)


def sharding(mesh: Numbers, kept: Sequence[int]) -> str:
    """HloSharding's text of a tensor that is split along each dimension by the axis of that number, if it is kept."""
    others = [k for k in range(mesh.ndim) if k not in kept]
    tiles = [mesh.shape[k] if k in kept else 1 for k in range(mesh.ndim)]
    copies = prod(mesh.shape[k] for k in others)
    order = mesh.transpose(*kept, *others).ravel()
    last = f",{copies}" if copies > 1 else ""
    text = f"devices=[{','.join(map(str, tiles))}{last}]{','.join(map(str, order))}"
    return f'mhlo.sharding = "{{{text}{" last_tile_dim_replicate" if copies > 1 else ""}}}"'


def along(mesh: Numbers, axis: int) -> Numbers:
    """The groups of devices that differ along an axis alone."""
    return np.moveaxis(mesh, axis, -1).reshape(-1, mesh.shape[axis])


def modules(mesh: Numbers, groups: Numbers | None = None, turns: Numbers | None = None) -> tuple[str, str]:
    """`x` times its sum along the first axis, turned along the last one, and `x` gathered along that; other groups or
    turns make the partitioned module wrong."""
    n, axes = mesh.size, mesh.ndim
    first, last = mesh.shape[0], mesh.shape[-1]
    groups = along(mesh, 0) if groups is None else groups
    turns = along(mesh, axes - 1) if turns is None else turns
    everywhere = range(axes)

    ones = (1,) * (axes - 1)
    shapes = (2 * first, *mesh.shape[1:]), mesh.shape[1:], ones, (2, *ones), (2, *ones[1:], last)
    whole, rest, own_rest, own, row = (tensor_type(shape, "f32") for shape in shapes)
    turned = np.roll(mesh, -1, -1)  # place k of the result is with the device that place k of the operand came from
    in_place, one_row = sharding(mesh, everywhere), sharding(mesh, everywhere[:-1])
    dims = ", ".join(map(str, range(1, axes)))
    logical = f"""module attributes {{mhlo.num_partitions = {n} : i32}} {{
func.func public @main(%x: {whole} {{{in_place}}})
    -> ({whole} {{{sharding(turned, everywhere)}}}, {whole} {{{one_row}}}) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
    : ({whole}, tensor<f32>) -> {rest}
  %w = stablehlo.broadcast_in_dim %s, dims = [{dims}] : ({rest}) -> {whole}
  %y = stablehlo.multiply %x, %w : {whole}
  return %y, %x : {whole}, {whole}
}} }}"""
    pairs = [(line[k], line[(k + 1) % last]) for line in turns for k in range(last)]
    partitioned = f"""module attributes {{mhlo.num_partitions = {n} : i32}} {{
func.func public @main(%x: {own}) -> ({own}, {row}) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
    : ({own}, tensor<f32>) -> {own_rest}
  %s = "stablehlo.all_reduce"(%p) <{{replica_groups = {literal(groups)}, {CHANNEL}, use_global_device_ids}}>
    {ADD} : ({own_rest}) -> {own_rest}
  %w = stablehlo.broadcast_in_dim %s, dims = [{dims}] : ({own_rest}) -> {own}
  %z = stablehlo.multiply %x, %w : {own}
  %y = "stablehlo.collective_permute"(%z) <{{source_target_pairs = {literal(np.array(pairs))}, {CHANNEL}}}>
    : ({own}) -> {own}
  %g = "stablehlo.all_gather"(%x) <{{all_gather_dim = {axes - 1} : i64, {CHANNEL}, use_global_device_ids,
    replica_groups = {literal(along(mesh, axes - 1))}}}> : ({own}) -> {row}
  return %y, %g : {own}, {row}
}} }}"""
    return logical, partitioned


def proved(mesh: Numbers, groups: Numbers | None = None, turns: Numbers | None = None) -> Report:
    return prove_at_once(*map(load, modules(mesh, groups, turns)))


MESHES = [
    ("TPU v5 lite", "2x2", (1, 4)),
    ("TPU v5 lite", "2x2", (2, 2)),
    ("TPU v6 lite", "2x4", (1, 8)),
    ("TPU v6 lite", "2x4", (4, 2)),
    ("TPU v5 lite", "4x4", (16, 1)),
    ("TPU v5 lite", "4x8", (4, 8)),
    ("TPU v6 lite", "16x16", (16, 16)),
    ("TPU v6 lite", "16x16", (2, 8, 16)),
    ("TPU v2", "4x2", (2, 8)),
    ("TPU v3", "4x8", (4, 16)),
    ("TPU v3", "16x16", (2, 16, 16)),
    ("TPU v3", "32x32", (4, 512)),
    ("TPU v4", "2x2x4", (4, 4)),
    ("TPU v4", "4x4x8", (8, 4, 4)),
    ("TPU v5", "2x2x2", (2, 4)),
    ("TPU v5", "4x4x4", (16, 4)),
    ("TPU v5", "8x8x16", (64, 16)),
    ("TPU v5", "16x16x32", (256, 32)),
    ("TPU v5", "16x16x32", (32, 16, 16)),
    ("TPU v5p", "2x2x4", (4, 4)),
    ("TPU7x", "2x2x1", (2, 4)),
    ("TPU7x", "2x2x2", (2, 2, 4)),
    ("TPU7x", "2x2x4", (8, 4)),
    ("TPU7x", "4x4x4", (8, 16)),
]


@pytest.mark.parametrize(("kind", "bounds", "shape"), MESHES)
def test_axes(kind: str, bounds: str, shape: tuple[int, ...]) -> None:
    assert proved(laid(kind, bounds, shape)).verdict is Verdict.PROVED


@pytest.mark.parametrize("kind", ["TPU v5 lite", "TPU7x", "TPU v3"])
def test_slices(kind: str) -> None:
    mesh = laid(kind, "2x4", (4, len(topology(kind, "2x4"))), slices=4)
    assert proved(mesh).verdict is Verdict.PROVED


WRONG = [each for each in MESHES if prod(each[2]) <= 512 and min(each[2]) > 1]


@pytest.mark.parametrize(("kind", "bounds", "shape"), WRONG)
def test_two_devices_exchanged(kind: str, bounds: str, shape: tuple[int, ...]) -> None:
    mesh = laid(kind, bounds, shape)
    swapped = mesh.ravel().copy()
    swapped[[0, -1]] = swapped[[-1, 0]]  # in other places of the first axis, and of the last one
    other = swapped.reshape(shape)
    for wrong in ({"groups": along(other, 0)}, {"turns": along(other, mesh.ndim - 1)}):
        assert proved(mesh, **wrong).results[0].verdict is Verdict.UNKNOWN
