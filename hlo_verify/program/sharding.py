"""Shardings: which shard of a tensor each device holds.

Every spelling (`sdy.sharding`, `mhlo.sharding`, HloSharding v1 to v3, a shardings file)
becomes one plain table of shard coordinates, so that nothing after this file knows how a
sharding was written.

What is not the placement of one tensor becomes None: `{manual}` and `{unknown}`, and
tile assignments with a manual subgroup (each device of the subgroup holds a tensor of
its own). A reader of None must treat the placement as not known, never as replicated.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify import jaxlib_api
from hlo_verify.diagnostics import Annotation
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program import sharding_text
from hlo_verify.program.mesh import AxisReference, Mesh, read_axes, read_mesh

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Sharding:
    """A placement of one tensor on `devices` devices.

    `tiles[k]` is the number of shards along dimension k; `coordinates[d, k]` is the shard
    that device d holds along k; a shard has `ceil(size / tiles)` elements and starts at
    `coordinate * ceil(size / tiles)` (what lies past the end of the tensor is arbitrary).
    `addends[d]` numbers the addend that device d holds of an unreduced tensor (devices with
    equal coordinates and different addends hold values that are to be summed); None when the
    tensor is not unreduced. `others[d]` numbers the devices that hold the same shard of the same
    addend. `only` is the one device that holds a maximal (single device) tensor, else None.
    `manual[d]` is the manual subgroup of device d, where there are any: then this is the placement
    of each subgroup's own tensor (see `parse_local`).
    """

    tiles: tuple[int, ...]
    coordinates: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    addends: npt.NDArray[np.int64] | None = None
    only: int | None = None
    manual: npt.NDArray[np.int64] | None = None

    @property
    def devices(self) -> int:
        return int(self.coordinates.shape[0])

    @property
    def is_plain(self) -> bool:
        """Whether every device holds a shard of the tensor: neither one of its addends, nor nothing of it."""
        return self.addends is None and self.only is None

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The addend that each device holds; 0 where there is but one."""
        return np.zeros(self.devices, np.int64) if self.addends is None else self.addends

    @property
    def addend_count(self) -> int:
        return int(self.numbers.max()) + 1

    def addend_groups(self) -> npt.NDArray[np.int64]:
        """Groups of devices, a row each, whose addends make up the tensor: one device for each addend."""
        keys = (self.numbers, self.others, *self.coordinates.T)  # the last is the first to sort by
        return np.lexsort(keys).reshape(-1, self.addend_count)

    def first_holders(self) -> npt.NDArray[np.int64]:
        """For each device, the first one that holds the same shard of the same addend."""
        rows = np.concatenate((self.coordinates, self.numbers[:, None]), axis=1)
        _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        return np.asarray(first[which.reshape(-1)], np.int64)

    def spread(self, devices: int) -> Sharding:
        """The same placement on `devices` devices, for one that was read with no number of devices known.

        Raises `InputError` where the sharding itself is about another number of devices.
        """
        if self.devices == devices:
            return self
        if self.only is not None:
            return maximal(self.only, len(self.tiles), devices)
        if self.devices != 1:
            raise InputError(
                f"a sharding is for {self.devices} devices, the module has {devices}", Annotation.WRONG_DEVICES
            )
        return unreduced(len(self.tiles), devices) if self.addends is not None else replicated(len(self.tiles), devices)


def same(one: Sharding, other: Sharding) -> bool:
    """Whether two shardings place a tensor alike: which numbers its addends have says nothing."""
    devices = max(one.devices, other.devices)
    if {one.devices, other.devices} - {1, devices}:
        return False
    one, other = one.spread(devices), other.spread(devices)
    if one.tiles != other.tiles or one.only != other.only or (one.addends is None) != (other.addends is None):
        return False
    return np.array_equal(one.coordinates, other.coordinates) and np.array_equal(_first(one), _first(other))


def _first(sharding: Sharding) -> Numbers:
    """For each device, the first one with the same addend of whatever shard."""
    _, first, which = np.unique(sharding.numbers, return_index=True, return_inverse=True)
    return np.asarray(first[which], np.int64)


Parsed = Sharding | None | tuple["Parsed", ...]
"""What a sharding's text says: a placement, None where there is none, or one of these for each element of a tuple."""


def replicated(rank: int, devices: int) -> Sharding:
    return Sharding((1,) * rank, np.zeros((devices, rank), np.int64), np.arange(devices, dtype=np.int64))


def unreduced(rank: int, devices: int) -> Sharding:
    """Every device holds an addend of the whole tensor."""
    numbers = np.arange(devices, dtype=np.int64)
    return Sharding((1,) * rank, np.zeros((devices, rank), np.int64), np.zeros_like(numbers), numbers)


def maximal(device: int, rank: int, devices: int) -> Sharding:
    """The tensor lies on one device; the others hold nothing of it."""
    if not 0 <= device < devices:
        raise InputError(
            f"a sharding puts a tensor on device {device}, the module has {devices} devices", Annotation.WRONG_DEVICES
        )
    numbers = np.arange(devices, dtype=np.int64)
    return Sharding((1,) * rank, np.zeros((devices, rank), np.int64), numbers, only=device)


def separate(rank: int, devices: int) -> Sharding:
    """Every device holds a tensor of its own, as in a region that is manual over the whole mesh."""
    numbers = np.arange(devices, dtype=np.int64)
    return Sharding((1,) * rank, np.zeros((devices, rank), np.int64), numbers, manual=numbers)


def place(
    mesh: Mesh,
    dimensions: Sequence[Sequence[AxisReference]],
    summed: Sequence[AxisReference],
    devices: int | None,
) -> Sharding:
    """The placement that mesh axes for each dimension (outermost first) and `summed`, the unreduced axes, give."""
    rank = len(dimensions)
    mesh.check([axis for axes in (*dimensions, summed) for axis in axes])
    if mesh.only is not None:
        return maximal(mesh.only, rank, mesh.only + 1 if devices is None else devices)
    if not mesh.axes:
        return replicated(rank, devices or 1)
    if devices is not None and devices != mesh.size:
        raise InputError(
            f"a sharding's mesh {mesh} has {mesh.size} devices, the module has {devices}", Annotation.WRONG_DEVICES
        )
    tiles, columns = [], []
    for axes in dimensions:
        radix, value = mesh.digits(axes)
        tiles.append(radix)
        columns.append(value)
    coordinates = np.stack(columns, axis=1) if columns else np.zeros((mesh.size, 0), np.int64)
    used = [axis for axes in (*dimensions, summed) for axis in axes]
    others = mesh.digits(mesh.complement(used))[1]
    return Sharding(tuple(tiles), coordinates, others, mesh.digits(summed)[1] if summed else None)


# HloSharding


def parse_hlo_sharding(text: str, rank: int | Sequence[int], devices: int | None, *, local: bool = False) -> Parsed:
    """The placement that an HloSharding's text (version 1, 2 or 3) gives a tensor of `rank`.

    A tuple's text gives a tuple, and `rank` is then the ranks of its flattened elements.
    With `devices` None, the number is the sharding's own, and 1 for one that does not say.
    With `local`, one with manual subgroups gives the placement of each one's own tensor.
    Raises `InputError` for text that is no sharding, that does not fit the rank or the
    devices, or whose devices are not each there once.
    """
    leaves = _read_hlo(text)
    if not sharding_text.is_tuple(text):
        return _from_hlo(leaves[0], text, rank if isinstance(rank, int) else rank[0], devices, local)
    ranks = [rank] * len(leaves) if isinstance(rank, int) else rank
    if len(ranks) != len(leaves):
        raise InputError(
            f"a sharding has {len(leaves)} elements for {len(ranks)} tensors: {text!r}", Annotation.WRONG_RANK
        )
    return tuple(_from_hlo(leaf, str(leaf), r, devices, local) for leaf, r in zip(leaves, ranks, strict=True))


def _read_hlo(text: str) -> list[Any]:
    try:
        return [jaxlib_api.hlo_sharding(leaf) for leaf in sharding_text.leaves(text)]
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"not a sharding: {text!r} ({str(error).splitlines()[0]})", Annotation.NOT_A_SHARDING
        ) from error


def device_counts(text: str) -> set[int]:
    """The numbers of devices that a sharding's text, in either language, says it is for; one if it is consistent."""
    if not text.startswith("#sdy."):
        return {int(leaf.num_devices()) for leaf in _read_hlo(text) if leaf.is_tiled()}
    attribute = _parse_attribute(text)
    per_value = jaxlib_api.sdy.TensorShardingPerValueAttr
    values = per_value(attribute).shardings if per_value.isinstance(attribute) else [attribute]
    meshes = [find_mesh(jaxlib_api.sdy.TensorShardingAttr(value).mesh_or_ref, {}) for value in values]
    return {mesh.size for mesh in meshes if mesh.axes}


def _from_hlo(sharding: Any, text: str, rank: int, devices: int | None, local: bool) -> Sharding | None:
    if sharding.is_unknown():
        return None
    if sharding.is_manual():
        return separate(rank, devices or 1) if local else None
    if sharding.is_replicated():
        return replicated(rank, devices or 1)
    if sharding.is_unreduced():
        return unreduced(rank, devices or 1)
    if sharding.is_maximal():
        device = int(re.findall(r"device(?:_id)?=(\d+)", str(sharding))[0])
        return maximal(device, rank, device + 1 if devices is None else devices)
    return _from_tiles(sharding, text, rank, devices, local)


def _subgroups(sharding: Any, text: str) -> tuple[tuple[int, ...], Numbers, list[str]]:
    """A tile assignment's sizes, each device's coordinates in it, and what kind of subgroup each of its last
    dimensions is. Raises `InputError` where devices are not each there once."""
    shape = tuple(sharding.tile_assignment_dimensions())
    order = np.asarray(sharding.tile_assignment_devices(), np.int64)
    if not np.array_equal(np.sort(order), np.arange(math.prod(shape))):
        raise InputError(
            f"a sharding must name each of its {math.prod(shape)} devices once: {text!r}", Annotation.NOT_A_SHARDING
        )
    subgroups = [str(subgroup).rsplit(".", 1)[-1] for subgroup in sharding.subgroup_types()]
    if sharding.replicate_on_last_tile_dim() and not subgroups:
        subgroups = ["REPLICATED"]
    coordinates = np.empty((len(order), len(shape)), np.int64)
    coordinates[order] = np.stack(np.unravel_index(np.arange(len(order)), shape), axis=1)
    return shape, coordinates, subgroups


def _number(shape: Sequence[int], coordinates: Numbers, dimensions: Sequence[int]) -> Numbers:
    """The mixed-radix number that some coordinates form."""
    value = np.zeros(len(coordinates), np.int64)
    for k in dimensions:
        value = value * shape[k] + coordinates[:, k]
    return value


def _from_tiles(sharding: Any, text: str, rank: int, devices: int | None, local: bool) -> Sharding | None:
    shape, coordinates, subgroups = _subgroups(sharding, text)
    if devices is not None and devices != len(coordinates):
        raise InputError(
            f"a sharding is for {len(coordinates)} devices, the module has {devices}: {text!r}",
            Annotation.WRONG_DEVICES,
        )
    if len(shape) - len(subgroups) != rank:
        raise InputError(
            f"a sharding has {len(shape) - len(subgroups)} dimensions for a tensor of {rank}: {text!r}",
            Annotation.WRONG_RANK,
        )
    if not set(subgroups) <= {"REPLICATED", "UNREDUCED", *(["MANUAL"] if local else [])}:
        return None

    def number(*wanted: str) -> Numbers:
        return _number(shape, coordinates, [k for k, subgroup in enumerate(subgroups, rank) if subgroup in wanted])

    return Sharding(
        shape[:rank],
        np.ascontiguousarray(coordinates[:, :rank]),
        number("REPLICATED", "MANUAL"),
        number("UNREDUCED") if "UNREDUCED" in subgroups else None,
        manual=number("MANUAL") if "MANUAL" in subgroups else None,
    )


# Shardy


def parse_sdy_sharding(
    sharding: Any,
    devices: int | None,
    meshes: Mapping[str, Mesh] | None = None,
    manual: Sequence[str] | None = None,
) -> Parsed:
    """The placement in an `#sdy.sharding<…>` or, as a tuple, an `#sdy.sharding_per_value<…>`.

    `sharding` is the MLIR attribute or its text; `meshes` holds the meshes it may refer to by
    symbol (one that names its mesh in place needs none). With `manual` only those axes count:
    the placement of a manual computation's operand, whose other axes stay with its body.
    Priorities, open dimensions and replicated axes say nothing about where elements are.
    Raises `InputError`.
    """
    if isinstance(sharding, str):
        sharding = _parse_attribute(sharding)
    if jaxlib_api.sdy.TensorShardingPerValueAttr.isinstance(sharding):
        values = jaxlib_api.sdy.TensorShardingPerValueAttr(sharding).shardings
        return tuple(parse_sdy_sharding(value, devices, meshes, manual) for value in values)
    if not jaxlib_api.sdy.TensorShardingAttr.isinstance(sharding):
        raise InputError(f"not a sharding: {sharding}", Annotation.NOT_A_SHARDING)
    attribute = jaxlib_api.sdy.TensorShardingAttr(sharding)
    dimensions = [
        read_axes(jaxlib_api.sdy.DimensionShardingAttr(dimension).axes) for dimension in attribute.dimension_shardings
    ]
    summed = read_axes(attribute.unreduced_axes)
    if manual is not None:
        dimensions = [tuple(axis for axis in axes if axis.name in manual) for axes in dimensions]
        summed = tuple(axis for axis in summed if axis.name in manual)
    return place(find_mesh(attribute.mesh_or_ref, meshes or {}), dimensions, summed, devices)


def _parse_attribute(text: str) -> Any:
    try:
        with jaxlib_api.shared_context():
            return jaxlib_api.ir.Attribute.parse(text)
    except Exception as error:
        raise InputError(
            f"not a sharding: {text!r} ({str(error).splitlines()[0]})", Annotation.NOT_A_SHARDING
        ) from error


def mesh_of(text: str) -> Mesh | None:
    """The mesh that an `#sdy.sharding_per_value<…>` holds in place, the first of several; None for no values."""
    values = jaxlib_api.sdy.TensorShardingPerValueAttr(_parse_attribute(text)).shardings
    return find_mesh(jaxlib_api.sdy.TensorShardingAttr(values[0]).mesh_or_ref, {}) if len(values) else None


def find_mesh(mesh_or_symbol: Any, meshes: Mapping[str, Mesh]) -> Mesh:
    """The mesh that a sharding names by symbol or holds in place."""
    if not isinstance(mesh_or_symbol, jaxlib_api.ir.FlatSymbolRefAttr):
        return read_mesh(jaxlib_api.sdy.MeshAttr(mesh_or_symbol))
    if mesh_or_symbol.value not in meshes:
        raise InputError(
            f"a sharding refers to the mesh @{mesh_or_symbol.value}, which the module does not define",
            Annotation.WRONG_MESH,
        )
    return meshes[mesh_or_symbol.value]


def parse_sharding(
    text: str, ranks: Sequence[int], devices: int | None, *, local: bool = False
) -> tuple[Sharding | None, ...]:
    """The placement of each of an operation's results, from its `sharding` attribute (either language).

    One placement for several results holds for each of them. Raises `InputError`.
    """
    if text.startswith("#sdy."):
        parsed = parse_sdy_sharding(text, devices)
    elif sharding_text.is_tuple(text):
        parsed = parse_hlo_sharding(text, ranks, devices, local=local)
    else:
        parsed = tuple(parse_hlo_sharding(text, rank, devices, local=local) for rank in ranks)
    if not isinstance(parsed, tuple):
        return (parsed,) * len(ranks)
    if len(parsed) != len(ranks) or any(isinstance(p, tuple) for p in parsed):
        raise InputError(
            f"a sharding has {len(parsed)} elements for {len(ranks)} results: {text}", Annotation.WRONG_RANK
        )
    return tuple(p for p in parsed if not isinstance(p, tuple))


def parse_local(text: str, ranks: Sequence[int], devices: int | None) -> tuple[Sharding | None, ...]:
    """Likewise; within a manual region, the placement of the tensor that each manual subgroup has for itself."""
    return parse_sharding(text, ranks, devices, local=True)


@functools.lru_cache(256)
def automatic(text: str, devices: int) -> Numbers | None:
    """A number for each device, equal for those that differ along manual axes alone; None without manual axes.

    `text` is an HloSharding's; of a tuple's, the first element with manual axes counts.
    """
    for leaf in sharding_text.leaves(text):
        if "manual" in leaf:
            sharding = jaxlib_api.hlo_sharding(leaf)
            if sharding.is_manual():
                return np.zeros(devices, np.int64)
            shape, coordinates, subgroups = _subgroups(sharding, leaf)
            if "MANUAL" not in subgroups:
                continue
            rank = len(shape) - len(subgroups)
            others = [k for k in range(len(shape)) if k < rank or subgroups[k - rank] != "MANUAL"]
            return _number(shape, coordinates, others)
    return None
