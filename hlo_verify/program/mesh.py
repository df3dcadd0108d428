"""Meshes: named axes over devices, and the numbers that axes and sub-axes give each device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify import jaxlib_api
from hlo_verify.diagnostics import Annotation, Input
from hlo_verify.diagnostics.errors import InputError

LIMIT = 1 << 20
"""The most devices that a mesh or a sharding may have."""


@dataclass(frozen=True, slots=True)
class AxisReference:
    """An axis of a mesh, or the part of it that a sub-axis `"x":(before)size` takes."""

    name: str
    before: int = 1
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Mesh:
    """Named axes, outermost first, over devices.

    `device_ids[p]` is the device at row-major position p; empty where that is p itself.
    `only` is the device of a maximal mesh, which has no axes.
    """

    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...] = ()
    only: int | None = None

    @property
    def size(self) -> int:
        return math.prod(size for _, size in self.axes)

    def check(self, references: Iterable[AxisReference]) -> None:
        """Raise `InputError` unless the axes are the mesh's, their parts divide them, and none is used twice."""
        sizes = dict(self.axes)
        taken: dict[str, list[tuple[int, int]]] = {}
        for reference in references:
            name = reference.name
            if name not in sizes:
                raise InputError(
                    f"a sharding names the axis {name!r}, which its mesh {self} does not have", Annotation.WRONG_MESH
                )
            before, size = reference.before, sizes[name] if reference.size is None else reference.size
            if min(before, size) < 1 or sizes[name] % (before * size):
                raise InputError(
                    f"a sharding takes {name!r}:({before}){size}, which is no part of its mesh {self}",
                    Annotation.WRONG_MESH,
                )
            if any(before < end and start < before * size for start, end in taken.get(name, ())):
                raise InputError(f"a sharding uses the axis {name!r} of its mesh {self} twice", Annotation.WRONG_MESH)
            if size > 1:
                taken.setdefault(name, []).append((before, before * size))

    def digits(self, references: Sequence[AxisReference]) -> tuple[int, npt.NDArray[np.int64]]:
        """The mixed-radix number that `references` (outermost first) form: its radix, and its value for each device.

        Raises `InputError` where they are no axes of the mesh (see `check`).
        """
        self.check(references)
        positions = np.arange(self.size, dtype=np.int64)
        if self.device_ids:
            positions = np.argsort(np.asarray(self.device_ids, np.int64))
        strides, stride = {}, 1
        for name, size in reversed(self.axes):
            strides[name] = (stride, size)
            stride *= size
        radix, value = 1, np.zeros(self.size, np.int64)
        for reference in references:
            stride, whole = strides[reference.name]
            size = whole if reference.size is None else reference.size
            after = whole // (reference.before * size)
            radix, value = radix * size, value * size + positions // (stride * after) % size
        return radix, value

    def groups(self, references: Sequence[AxisReference]) -> npt.NDArray[np.int64]:
        """Replica groups along axes: one row a group, members in the order of the axes, outermost first."""
        radix, member = self.digits(references)
        _, group = self.digits(self.complement(references))
        return np.lexsort((member, group)).reshape(-1, radix).astype(np.int64)

    def complement(self, references: Sequence[AxisReference]) -> list[AxisReference]:
        """The axes and parts of axes that `references` leave out, outermost first."""
        return [AxisReference(name, before, size) for name, before, size in _complement(self.axes, references)]

    def __str__(self) -> str:
        axes = ", ".join(f"{name!r}={size}" for name, size in self.axes)
        return f"<[{axes}]{f', device_ids={list(self.device_ids)}' if self.device_ids else ''}>"


def _complement(axes: Iterable[tuple[str, int]], references: Sequence[AxisReference]) -> Iterable[tuple[str, int, int]]:
    """The sub-axes of a mesh that `references` leave out, outermost first."""
    for name, whole in axes:
        taken = sorted((r.before, whole if r.size is None else r.size) for r in references if r.name == name)
        start = 1
        for before, size in [*taken, (whole, 1)]:
            if before > start:
                yield name, start, before // start
            start = before * size


def read_mesh(attribute: Any, axis_type: Any = jaxlib_api.sdy.MeshAxisAttr) -> Mesh:
    """The mesh in an `sdy.MeshAttr` or, with its type of axes, a `stablehlo.MeshAttr`. Raises `InputError`."""
    axes = tuple((str(axis.name), int(axis.size)) for axis in map(axis_type, attribute.axes))
    ids = () if attribute.device_ids is None else tuple(int(device) for device in attribute.device_ids)
    if not axes and len(ids) == 1:
        if not 0 <= ids[0] < LIMIT:
            raise InputError(
                f"a sharding puts a tensor on device {ids[0]}; {LIMIT} devices at most are understood",
                Input.TOO_MANY_DEVICES,
            )
        return Mesh((), (), ids[0])
    mesh = Mesh(axes, ids)
    if mesh.size > LIMIT:
        raise InputError(
            f"the mesh {mesh} has {mesh.size} devices; {LIMIT} at most are understood", Input.TOO_MANY_DEVICES
        )
    if ids and sorted(ids) != list(range(mesh.size)):
        raise InputError(f"a mesh must name each of its {mesh.size} devices once: {mesh}", Annotation.WRONG_MESH)
    return mesh


def read_axes(attributes: Iterable[Any]) -> tuple[AxisReference, ...]:
    """Axis references in `sdy.AxisRefAttr`s."""
    axes: list[AxisReference] = []
    for attribute in attributes:
        reference = jaxlib_api.sdy.AxisRefAttr(attribute)
        part = reference.sub_axis_info
        if part is None:
            axes.append(AxisReference(reference.name))
        else:
            info = jaxlib_api.sdy.SubAxisInfoAttr(part)
            axes.append(AxisReference(reference.name, int(info.pre_size), int(info.size)))
    return tuple(axes)


_MOST_DEVICES = 1 << 24
"""More than any mesh has; a damaged number may say anything."""

ORDER_MARK = " in device order "
"""Between the name of a mesh's first axis and the order of its devices, where reading has put that."""


def device_order_of(axis: str) -> tuple[int, ...]:
    """The device at each position of a mesh, from the name of its first axis; empty where that is the position.

    Raises `InputError` where it says no order.
    """
    _, mark, order = axis.partition(ORDER_MARK)
    if not mark:
        return ()
    try:
        parts = [[int(n) for n in numbers.split(",")] for numbers in order.split("T")]
    except ValueError:
        parts = []
    if len(parts) == 1:
        return tuple(parts[0])
    shape, permutation = parts if len(parts) == 2 else ([], [0])
    if sorted(permutation) != list(range(len(shape))) or not 0 < math.prod(shape) <= _MOST_DEVICES:
        raise InputError(f"the mesh of replica groups has no order of devices: {order}", Input.DAMAGED)
    return tuple(np.arange(math.prod(shape)).reshape(shape).transpose(permutation).ravel().tolist())
