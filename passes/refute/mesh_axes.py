"""The axes of the mesh that a pair of modules is for, as far as they can be told from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from hlo_verify.index import expr, tables
from hlo_verify.index.expr import Digit
from hlo_verify.limits import allows
from hlo_verify.program.ir import Op, operations
from hlo_verify.program.pair import Pair
from hlo_verify.program.sharding import Sharding
from hlo_verify.session import Session

Groups = list[tuple[str, npt.NDArray[np.int64]]]
"""Some axes in words, and the groups of devices along them, a row each."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Devices that differ in one digit of their number only; `low` is the digit's weight."""

    name: str
    low: int
    size: int

    def rotation(self, devices: int, step: int) -> npt.NDArray[np.int64]:
        """Source and target of a turn along the axis."""
        numbers = np.arange(devices)
        digit = numbers // self.low % self.size
        return np.stack((numbers, numbers + ((digit + step) % self.size - digit) * self.low), axis=1)


def axes_of(pair: Pair) -> list[Axis]:
    """The axes of the mesh, innermost first: as the module names them, else as its shardings split the devices.

    Shardings of several meshes, 2 by 3 and 3 by 2, have axes that overlap.
    """
    ops = operations(pair.partitioned.main)
    named = next((axes for axes in map(_named_axes, ops) if axes), None)
    if named is not None and prod(axis.size for axis in named) == pair.devices:
        return named
    breakpoints = {1, pair.devices}
    with Session().on():
        device = expr.var("d", "", pair.devices)
        for sharding in (*(pair.arguments or ()), *pair.results):
            for digit in _digits(sharding.spread(pair.devices), device):
                breakpoints.update((digit.low, digit.low * digit.radix))
    points = [point for point in sorted(breakpoints) if pair.devices % point == 0]
    parts = [(low, high) for low, high in combinations(points, 2) if high % low == 0 and not _split(low, high, points)]
    return [Axis(_apart(low, high // low, pair.devices), low, high // low) for low, high in parts]


def _split(low: int, high: int, points: list[int]) -> bool:
    """Whether what lies from one weight to another is several axes."""
    return any(low < point < high and point % low == 0 and high % point == 0 for point in points)


def groups_along(axes: list[Axis], devices: int) -> Groups:
    """For every set of axes, its name and the groups of devices along them; single axes first."""
    return list(_groups(axes, devices))


def _groups(axes: list[Axis], devices: int) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    numbers = np.arange(devices)
    for count in range(1, len(axes) + 1):
        if not allows("repair_axes", count):
            return
        for chosen in combinations(sorted(axes, key=lambda axis: axis.low), count):
            if any(high.low % (low.low * low.size) for low, high in pairwise(chosen)):
                continue  # of two meshes
            along = np.zeros(devices, np.int64)
            for axis in chosen:
                along += numbers // axis.low % axis.size * axis.low
            rows = np.lexsort((numbers, numbers - along))
            yield " and ".join(axis.name for axis in chosen), rows.reshape(-1, prod(axis.size for axis in chosen))


def _apart(low: int, size: int, devices: int) -> str:
    """A name for an axis without one."""
    if size == devices:
        return f"all {size} devices"
    return f"groups of {size} neighbouring devices" if low == 1 else f"groups of {size} devices {low} apart"


def _named_axes(op: Op) -> list[Axis]:
    mesh = op.attributes.get("mesh") if op.name == "sdy.manual_computation" else None
    if mesh is None or mesh.device_ids or mesh.only is not None:
        return []
    axes, low = [], 1
    for name, size in reversed(mesh.axes):
        axes.append(Axis(f"'{name}'", low, size))
        low *= size
    return axes


def _digits(sharding: Sharding, device: expr.Var) -> Iterator[Digit]:
    for k in range(len(sharding.tiles)):
        for atom, _ in tables.fit(sharding.coordinates[:, k], device).items:
            if isinstance(atom, Digit):
                yield atom
