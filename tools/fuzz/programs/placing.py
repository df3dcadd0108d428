"""Meshes, how tensors lie on them, and what each device holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tools.fuzz.programs.elementwise import DTYPES, Array
from tools.fuzz.programs.program import Kind


@dataclass(frozen=True, slots=True)
class Mesh:
    """Named axes, and the numbers of the devices in row-major order of their coordinates."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def devices(self) -> int:
        return len(self.order)

    def size(self, axes: Sequence[str]) -> int:
        return math.prod(self.sizes[self.names.index(axis)] for axis in axes)

    def arranged(self, axes: Sequence[str]) -> Array:
        """The devices in two dimensions: the other axes, and these together, the first one outermost."""
        array = np.array(self.order).reshape(self.sizes)
        rest = [k for k, name in enumerate(self.names) if name not in axes]
        return array.transpose(*rest, *(self.names.index(axis) for axis in axes)).reshape(-1, self.size(axes))

    def groups(self, axes: Sequence[str]) -> list[list[int]]:
        """Which devices differ along these axes alone, in the order of them."""
        return [list(map(int, row)) for row in self.arranged(axes)]

    def coordinates(self, axes: Sequence[str]) -> list[int]:
        """Each device's number along these axes."""
        found = [0] * self.devices
        for row in self.arranged(axes):
            for number, device in enumerate(row):
                found[int(device)] = number
        return found


@dataclass(frozen=True, slots=True)
class Layout:
    """The axes that each dimension is split over, the outermost first, and those over which values are addends."""

    dims: tuple[tuple[str, ...], ...]
    partial: tuple[str, ...] = ()

    @property
    def used(self) -> set[str]:
        return {axis for axes in self.dims for axis in axes} | set(self.partial)

    def local(self, mesh: Mesh, kind: Kind) -> Kind:
        """The type of what a device holds."""
        return kind.shaped(*(-(-n // mesh.size(axes)) for n, axes in zip(kind.shape, self.dims, strict=True)))

    def is_even(self, mesh: Mesh, kind: Kind) -> bool:
        return all(n % mesh.size(axes) == 0 for n, axes in zip(kind.shape, self.dims, strict=True))

    def with_dim(self, dim: int, axes: Sequence[str]) -> Layout:
        return Layout((*self.dims[:dim], tuple(axes), *self.dims[dim + 1 :]), self.partial)


def whole(rank: int) -> Layout:
    return Layout(((),) * rank)


def annotation(layout: Layout, mesh: Mesh) -> str:
    """The attribute of an argument or result, with the devices as a list."""
    split = [axis for axes in layout.dims for axis in axes]
    rest = [axis for axis in mesh.names if axis not in layout.used]
    axes = [*split, *layout.partial, *rest]
    array = np.array(mesh.order).reshape(mesh.sizes).transpose(*map(mesh.names.index, axes))
    tiles = [mesh.size(axes) for axes in layout.dims]
    tail, kinds = [], []
    for name, axes_ in (("unreduced", layout.partial), ("replicated", tuple(rest))):
        if axes_:
            tail.append(mesh.size(axes_))
            kinds.append(name)
    if not split and not layout.partial:
        return '{mhlo.sharding = "{replicated}"}'
    devices = ",".join(map(str, array.reshape(-1)))
    last = f" last_tile_dims={{{', '.join(kinds)}}}" if kinds else ""
    last = " last_tile_dim_replicate" if kinds == ["replicated"] else last
    return f'{{mhlo.sharding = "{{devices=[{",".join(map(str, tiles + tail))}]{devices}{last}}}"}}'


def _places(layout: Layout, mesh: Mesh, shape: Sequence[int]) -> list[tuple[slice, ...]]:
    """For each device, which elements of a tensor it holds (inside of the tensor)."""
    numbers = [mesh.coordinates(axes) if axes else [0] * mesh.devices for axes in layout.dims]
    sizes = [-(-n // mesh.size(axes)) for n, axes in zip(shape, layout.dims, strict=True)]
    return [
        tuple(
            slice(min(number[device] * size, n), min((number[device] + 1) * size, n))
            for number, size, n in zip(numbers, sizes, shape, strict=True)
        )
        for device in range(mesh.devices)
    ]


def cut(a: Array, layout: Layout, mesh: Mesh, generator: np.random.Generator) -> Array:
    """What the devices hold of an array of one device (inputs, 1, ...); past its end, anything. Addends are random."""
    kind = Kind(a.shape[2:], next(k for k, v in DTYPES.items() if v == a.dtype))
    local = layout.local(mesh, kind)
    found = noise(generator, (a.shape[0], mesh.devices, *local.shape), a.dtype)
    parts = a[:, :1]
    shares = [parts[:, 0]] * mesh.devices
    if layout.partial:
        numbers, count = mesh.coordinates(layout.partial), mesh.size(layout.partial)
        addends = [noise(generator, parts[:, 0].shape, a.dtype) for _ in range(count - 1)]
        with np.errstate(all="ignore"):
            addends.append((parts[:, 0] - sum(addends)).astype(a.dtype))
        shares = [addends[number] for number in numbers]
    for device, places in enumerate(_places(layout, mesh, kind.shape)):
        piece = shares[device][(slice(None), *places)]
        found[(slice(None), device, *(slice(0, n) for n in piece.shape[1:]))] = piece
    return found


def noise(generator: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    return (generator.integers(-40, 40, shape) / 4).astype(dtype)


def expected(a: Array, layout: Layout, mesh: Mesh) -> list[Array]:
    """What each device has to hold of a result, a list by device of (inputs, ...)."""
    return [a[(slice(None), 0, *places)] for places in _places(layout, mesh, a.shape[2:])]


def held(a: Array, layout: Layout, mesh: Mesh, shape: Sequence[int]) -> list[Array]:
    """What each device holds of a result; where values are addends, their sum."""
    parts = [a[:, device] for device in range(mesh.devices)]
    if layout.partial:
        with np.errstate(all="ignore"):
            for group in mesh.groups(layout.partial):
                total = np.stack([a[:, device] for device in group]).sum(0, dtype=a.dtype)
                for device in group:
                    parts[device] = total
    found = []
    for part, places in zip(parts, _places(layout, mesh, shape), strict=True):
        found.append(part[(slice(None), *(slice(0, each.stop - each.start) for each in places))])
    return found
