"""How the devices' values of an approximation make up what they stand for: as is said, or as shapes have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program.ir import TensorType
from hlo_verify.program.mesh import AxisReference, Mesh
from hlo_verify.program.sharding import Sharding, parse_hlo_sharding, place, replicated
from hlo_verify.sources.shardings_file import axes_of


@dataclass(frozen=True, slots=True, eq=False)
class Devices:
    """The devices that hold the values: how many, on which mesh, and which of its axes split the values of a region.

    Of a module for each device there is no mesh.
    """

    count: int
    mesh: Mesh | None = None
    axes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A placement, and in words."""

    sharding: Sharding
    said: str


def placed(text: str, whole: TensorType, part: TensorType, devices: Devices, what: str) -> Placed:
    """How values of the type `part` make up one of the type `whole`. Raises `InputError` where they do not, or in more
    than one way."""
    found = _inferred(whole, part, devices, what) if not text else _stated(text, whole, devices, what)
    if not found.sharding.is_plain:
        raise InputError(f"{what}: {text} places no shard of it on every device", Input.APPROXIMATION)
    tiles = found.sharding.tiles
    if any(size % k for size, k in zip(whole.shape, tiles, strict=True)) or part.shape != tuple(
        size // k for size, k in zip(whole.shape, tiles, strict=True)
    ):
        raise InputError(f"{what}: {part} is no shard of {whole}, {found.said}", Input.APPROXIMATION)
    return found


def _stated(text: str, whole: TensorType, devices: Devices, what: str) -> Placed:
    said = f"placed as {text}"
    if text.startswith("{"):
        if devices.mesh is not None and len(devices.axes) != len(devices.mesh.axes):
            raise InputError(
                f"{what}: some axes of the mesh are no devices there; say it as P(...)", Input.APPROXIMATION
            )
        try:
            sharding = parse_hlo_sharding(text, whole.rank, devices.count)
        except InputError as error:
            raise error.within(what) from error
        if not isinstance(sharding, Sharding):
            raise InputError(f"{what}: {text} does not place it", Input.APPROXIMATION)
        return Placed(sharding, said)
    if devices.mesh is None:
        raise InputError(
            f"{what}: a partition spec goes with a mesh, and of a module for each device none is known; write an "
            "HloSharding: {devices=[4,1]<=[4]}",
            Input.APPROXIMATION,
        )
    dimensions = axes_of(text, what)
    unknown = [axis for axes in dimensions for axis in axes if axis not in devices.axes]
    if unknown or len(dimensions) > whole.rank:
        raise InputError(
            f"{what}: {text} does not fit {whole}, split over {', '.join(devices.axes)}", Input.APPROXIMATION
        )
    return Placed(_over(devices.mesh, [*dimensions, *[()] * (whole.rank - len(dimensions))]), said)


def _inferred(whole: TensorType, part: TensorType, devices: Devices, what: str) -> Placed:
    """What the shapes allow. A dimension that is shorter is split, over the axis of that size or over all devices."""
    if whole.rank != part.rank:
        raise InputError(f"{what}: {part} is no shard of {whole}", Input.APPROXIMATION)
    sizes = list(zip(whole.shape, part.shape, strict=True))
    shorter = [k for k, (size, local) in enumerate(sizes) if size != local]
    if not shorter:
        return Placed(replicated(whole.rank, devices.count), "the same on every device")
    if any(local == 0 or size % local for size, local in sizes):
        raise InputError(f"{what}: {part} is no shard of {whole}", Input.APPROXIMATION)
    ratios = {k: sizes[k][0] // sizes[k][1] for k in shorter}
    if devices.mesh is None:
        if list(ratios.values()) != [devices.count]:
            raise _ambiguous(whole, part, devices, what)
        (k,) = shorter
        coordinates = np.zeros((devices.count, whole.rank), np.int64)
        coordinates[:, k] = np.arange(devices.count)
        tiles = tuple(devices.count if n == k else 1 for n in range(whole.rank))
        sharding = Sharding(tiles, coordinates, np.zeros(devices.count, np.int64))
        return Placed(sharding, f"dimension {k} split over the devices in their order")
    chosen: dict[int, str] = {}
    for k, ratio in ratios.items():
        fitting = [axis for axis, size in devices.mesh.axes if axis in devices.axes and size == ratio]
        if len(fitting) != 1 or fitting[0] in chosen.values():
            raise _ambiguous(whole, part, devices, what)
        chosen[k] = fitting[0]
    sharding = _over(devices.mesh, [(chosen[k],) if k in chosen else () for k in range(whole.rank)])
    said = ", ".join(f"dimension {k} split over {axis}" for k, axis in chosen.items())
    return Placed(sharding, said)


def _over(mesh: Mesh, dimensions: Sequence[Sequence[str]]) -> Sharding:
    return place(mesh, [[AxisReference(axis) for axis in axes] for axes in dimensions], (), mesh.size)


def _ambiguous(whole: TensorType, part: TensorType, devices: Devices, what: str) -> InputError:
    """That shapes allow several placements, with one as it is written."""
    dimensions = [size != local for size, local in zip(whole.shape, part.shape, strict=True)]
    if devices.mesh is None:
        tiles = ",".join(str(size // local) for size, local in zip(whole.shape, part.shape, strict=True))
        example = f"{{devices=[{tiles}]<=[{devices.count}]}}"
    else:
        axes = iter(devices.axes)
        example = f"P({', '.join(repr(next(axes, 'AXIS')) if is_split else 'None' for is_split in dimensions)})"
    return InputError(
        f"{what}: {part} may be one of several shards of {whole}; say which, as in '{what} at {example}'",
        Input.APPROXIMATION,
    )
